"""Reads the trajectories of SWE-agent and mini-swe-agent: one JSON value each.

Where the model calls functions, calls and results have ids. Where it writes its command as text, the command
becomes a call whose id is made from its place, and the observation after it the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.entries import Entry
from mcp_compact.transcripts.fields import object_of, text_of, texts_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import as_text, call, each_object, image_at, made, result, text, texts, usage_of
from mcp_compact.transcripts.translated import TranslatedReader

COMMAND = "bash"
FENCES = ("```mswea_bash_command\n", "```bash\n")
"""How a command begins in a text of mini-swe-agent."""
NO_OUTPUT = "(no output)"


class SweAgentReader(TranslatedReader):
    """Turns the history of one run into records."""

    lists = ("history", "messages")
    is_whole = True

    def begin(self, own: Mapping[str, Any]) -> None:  # noqa: ARG002 - a file is read whole
        """Commands have no ids: they are named by their place, and answered by what follows."""
        self._place = 0
        self._waiting: list[str] = []
        """Calls that are not answered."""
        self._asked = False

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """The run: its configuration and outcome. The steps say the same as the history, and more."""
        info = object_of(value, "info")
        model = object_of(object_of(info, "config"), "model")
        self.session.model = text_of(model, "model_name") or text_of(info, "model")
        if value:
            yield Entry(HEADER, value)

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of an item of the history."""
        self._place += 1
        role = text_of(raw, "role") or ""
        match role:
            case "system":
                yield Entry(role, raw, made("system", _content(raw.get("content"))), body=body)
            case "assistant":
                yield Entry(role, raw, self._answer(raw), body=body)
            case "user" | "tool" | "exit":
                yield self._given(raw, role, body)
            case _:
                yield Entry(role, raw, body=body, unknown=(role or "(none)",))

    def _answer(self, raw: Mapping[str, Any]) -> Message:
        calls = [
            call(call_id, object_of(each, "function").get("name"), object_of(each, "function").get("arguments"))
            for each in each_object(raw.get("tool_calls"))
            if (call_id := text_of(each, "id"))
        ]
        words: object = raw.get("content")
        if not calls and (found := self._command(raw)) is not None:
            words, command = found
            calls = [call(f"call-{self._place}", COMMAND, {"command": command})]
        self._waiting = [each["id"] for each in calls]
        response = object_of(object_of(raw, "extra"), "response")
        usage = usage_of(response.get("usage"), ("prompt_tokens",), ("completion_tokens",))
        said = _content(words)
        blocks = [*(texts(said) if isinstance(said, str) else said), *calls]
        return made("assistant", blocks, model=text_of(response, "model"), usage=usage)

    def _command(self, raw: Mapping[str, Any]) -> tuple[str, str] | None:
        """What was said before the command, and the command; None where there is none."""
        action = text_of(raw, "action")
        if action is not None:
            return text_of(raw, "thought") or "", action.strip()
        said = raw.get("content")
        if not isinstance(said, str):
            return None
        for fence in FENCES:
            before, begins, rest = said.partition(fence)
            command, ends, after = rest.partition("\n```")
            if begins and ends and not after.strip():
                return before.rstrip(), command
        return None

    def _given(self, raw: Mapping[str, Any], role: str, body: bytes | None) -> Entry:
        content = _content(raw.get("content"))
        ids = texts_of(raw, "tool_call_ids") or ((call_id,) if (call_id := text_of(raw, "tool_call_id")) else ())
        if not ids and self._waiting and role != "exit":
            ids = tuple(self._waiting[:1])
        if ids:
            self._waiting = [open_id for open_id in self._waiting if open_id not in ids]
            first = result(ids[0], content or NO_OUTPUT)
            return Entry(role, raw, made("user", [first, *(result(more, NO_OUTPUT) for more in ids[1:])]), body=body)
        # Only the first is the task that somebody set; what follows a text without a command is the program's.
        is_meta, self._asked = self._asked or raw.get("is_demo") is True, True
        return Entry(role, raw, made("user", content), body=body, is_meta=is_meta)


def _content(content: object) -> str | list[Any]:
    if not isinstance(content, list):
        return as_text(content)
    blocks: list[Any] = []
    for part in each_object(content):
        if isinstance(part.get("text"), str):
            blocks.append(text(part["text"]))
        elif url := text_of(object_of(part, "image_url"), "url"):
            blocks.append(image_at(url))
    return blocks
