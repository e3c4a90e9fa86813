"""Reads trajectories in ATIF (the Agent Trajectory Interchange Format): one JSON value with `steps`.

A step of the agent holds its message, its calls and what came of them: it becomes a record of its own, and one for
each result. What was observed without a call follows as a user's record that nobody typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import as_text, call, each_object, image_at, made, result, text, texts, usage_of
from mcp_compact.transcripts.translated import TranslatedReader

ROLES = {"user": "user", "agent": "assistant", "system": "system"}


class AtifReader(TranslatedReader):
    """Turns the steps of one trajectory into records."""

    lists = ("steps",)

    is_whole = True

    def begin(self, own: Mapping[str, Any]) -> None:  # noqa: ARG002 - a file is read whole
        """A compaction may be the last thing that a file tells."""
        self._compacted: Entry | None = None
        """A compaction that nothing followed yet: the conversation may go on in another file."""

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """The session and its agent."""
        agent = object_of(value, "agent")
        session = self.session
        session.session_id = uuid_of(value.get("session_id"))
        session.model = text_of(agent, "model_name")
        session.version = text_of(agent, "version")
        yield Entry(HEADER, value)

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The records of a step."""
        # No uuid is made of the step's number: a session goes on in another file, which counts from one again.
        source, at = text_of(raw, "source") or "", raw.get("timestamp")
        role = ROLES.get(source)
        if role is None:
            yield Entry(source, raw, at=at, body=body, unknown=(source or "(none)",))
            return
        yield from self.closing(followed=True)
        if object_of(object_of(raw, "extra"), "context_management").get("type") == "compaction":
            self._compacted = Entry(source, raw, at=at, body=body)
            return
        message = _answer(raw) if role == "assistant" else made(role, _content(raw.get("message")))
        yield Entry(source, raw, message, at=at, body=body)
        yield from _observed(raw, at)

    def closing(self, *, followed: bool = False) -> Iterator[Entry]:
        """A compaction is a boundary where something follows it; at the end of the file it is a step like others."""
        held, self._compacted = self._compacted, None
        if held is not None and followed:
            yield boundary(held.raw, kind=held.kind, at=held.at, body=held.body, trigger="auto")
        elif held is not None:
            yield held


def _answer(raw: Mapping[str, Any]) -> Message:
    said = _content(raw.get("message"))
    calls = [
        call(call_id, each.get("function_name"), each.get("arguments"))
        for each in each_object(raw.get("tool_calls"))
        if (call_id := text_of(each, "tool_call_id"))
    ]
    usage = usage_of(raw.get("metrics"), ("prompt_tokens",), ("completion_tokens",))
    blocks = [*(texts(said) if isinstance(said, str) else said), *calls]
    return made("assistant", blocks, model=raw.get("model_name"), usage=usage)


def _observed(raw: Mapping[str, Any], at: object) -> Iterator[Entry]:
    for each in each_object(object_of(raw, "observation").get("results")):
        content, call_id = _content(each.get("content")), text_of(each, "source_call_id")
        if not content and call_id is None:
            continue
        message = made("user", [result(call_id, content)] if call_id else content)
        yield Entry("observation", {"of": raw.get("step_id"), "result": each}, message, at=at, is_meta=call_id is None)


def _content(content: object) -> str | list[Any]:
    if not isinstance(content, list):
        return as_text(content)
    blocks: list[Any] = []
    for part in each_object(content):
        source = object_of(part, "source")
        if isinstance(part.get("text"), str):
            blocks.append(text(part["text"]))
        elif place := text_of(source, "path", "url"):
            blocks.append(image_at(place) if "://" in place or place.startswith("data:") else text(f"[Image: {place}]"))
    return blocks
