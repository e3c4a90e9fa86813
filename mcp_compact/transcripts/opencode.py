"""Reads what `opencode export` writes: one JSON value with a session's messages and their parts.

A part of kind `tool` holds a call and what it gave: it becomes two records. A tool's output that opencode itself
took out of its context stays in the archive, and is given as taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.blocks import CLEARED_RESULT
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import (
    Raw,
    as_text,
    call,
    each_object,
    image_at,
    made,
    part_kind,
    result,
    text,
    texts,
    usage_of,
)
from mcp_compact.transcripts.report import UNNAMED
from mcp_compact.transcripts.translated import TranslatedReader

SILENT = frozenset(("reasoning", "step-start", "step-finish", "patch", "snapshot", "agent", "retry", "compaction"))
"""Parts that are nothing a model is sent."""
DONE = ("completed", "error")
SENT, WRITTEN = ("input", "read", "write"), ("output", "reasoning")


class OpencodeReader(TranslatedReader):
    """Turns the messages of one session into records."""

    lists = ("messages",)
    is_whole = True

    def begin(self, own: Mapping[str, Any]) -> None:  # noqa: ARG002 - a file is read whole
        """A message asks for a compaction and says what it keeps; its summary comes later, or not at all."""
        self._asked: Mapping[str, Any] = {}
        self._before = 0
        """How many of the records came before the message that asked."""
        self._records: list[tuple[str, str]] = []
        """The messages so far and their records, in their order."""

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """The session: its id and parent, title, folder. What changes at each saving is kept apart."""
        info = object_of(value, "info")
        session = self.session
        session.session_id = uuid_of(info.get("id"))
        session.cwd = text_of(info, "directory")
        session.version = text_of(info, "version")
        session.given_title = text_of(info, "title")
        self._parent_session = uuid_of(info.get("parentID"))
        passing = ("time", "summary", "title", "share", "revert")
        lasting = {key: item for key, item in info.items() if key not in passing}
        yield Entry(HEADER, {**value, "info": lasting})
        yield Entry(HEADER, {key: info[key] for key in passing if key in info})

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The records of a message: its own words, then a call and its result for each tool."""
        info = object_of(raw, "info")
        role, own, at = text_of(info, "role") or "", uuid_of(info.get("id")), object_of(info, "time").get("created")
        if role not in ("user", "assistant"):
            yield Entry(role, raw, uuid=own, at=at, body=body, unknown=(role or UNNAMED,))
            return
        parts = list(each_object(raw.get("parts")))
        asks = next((part for part in parts if part.get("type") == "compaction"), None)
        is_summary = role == "assistant" and info.get("summary") is True and bool(info.get("finish"))
        if asks is not None:
            self._asked, self._before = asks, len(self._records)
        elif is_summary:
            # The boundary is where the summary stands that was asked for.
            trigger = "auto" if self._asked.get("auto", True) is True else "manual"
            begins = f"{own}:boundary" if own else None
            yield boundary({"of": own, "trigger": trigger}, uuid=begins, at=at, trigger=trigger, kept=self._kept())
        for entry in _records_of(raw, parts, role, own, at, is_summary=is_summary):
            if own and entry.uuid and not is_summary:
                self._records.append((own, entry.uuid))
            yield entry

    def _kept(self) -> list[str]:
        """The records from the message that is kept first to the one that asked for the compaction."""
        first = text_of(self._asked, "tail_start_id")
        before = self._records[: self._before]
        start = next((at for at, (message, _) in enumerate(before) if message == first), len(before))
        return [uuid for _, uuid in before[start:]]


def _records_of(
    raw: Mapping[str, Any], parts: list[Raw], role: str, own: str | None, at: object, *, is_summary: bool
) -> Iterator[Entry]:
    """A message's own words, then a call and its result for each tool."""
    info, tools = object_of(raw, "info"), [part for part in parts if _is_call(part)]
    rest = [part for part in parts if not _is_call(part)] if tools else parts
    blocks, unknown = _blocks(rest)
    model, usage = text_of(info, "modelID"), None
    if role == "assistant" and not is_summary and (tokens := object_of(info, "tokens")):
        usage = usage_of({**tokens, **object_of(tokens, "cache")}, SENT, WRITTEN)
    # A summary is given to the model as what was said before: it stands in the user's place.
    spoken = (
        made("user", blocks, model=model)
        if is_summary
        else made(role, blocks, id=own if role == "assistant" else None, model=model, usage=usage)
    )
    meta = role == "user" and bool(blocks) and all(part.get("synthetic") is True for part in rest)
    words = {**raw, "parts": rest} if tools else raw
    yield Entry(role, words, spoken, own, at=at, is_summary=is_summary, is_meta=meta, unknown=unknown)
    for part in tools:
        call_id, state = str(part["callID"]), object_of(part, "state")
        asked = made("assistant", [call(call_id, part.get("tool"), state.get("input"))], id=own, model=model)
        of = uuid_of(part.get("id")) or (f"{own}:{call_id}" if own else None)
        yield Entry("tool", {"of": own, "part": _without_outcome(part)}, asked, of, at=at)
    for part in tools:
        yield from _outcome(part, own)


def _is_call(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "tool" and text_of(part, "callID") is not None


def _without_outcome(part: Mapping[str, Any]) -> dict[str, Any]:
    """The call alone, so that it stays what it is when its outcome comes in."""
    return {**part, "state": {"input": object_of(part, "state").get("input")}}


def _outcome(part: Mapping[str, Any], own: str | None) -> Iterator[Entry]:
    state = object_of(part, "state")
    if state.get("status") not in DONE:
        return
    call_id, time = str(part["callID"]), object_of(state, "time")
    failed = state.get("status") == "error"
    content: str | list[Any] = as_text(state.get("error") if failed else state.get("output"))
    media = [image_at(url) for each in each_object(state.get("attachments")) if (url := text_of(each, "url"))]
    if time.get("compacted"):
        content, media = CLEARED_RESULT, []
    given = result(call_id, [*texts(content), *media] if media else content, failed=failed)
    of = uuid_of(part.get("id"))
    uuid = f"{of}:result" if of else (f"{own}:{call_id}:result" if own else None)
    raw = {"of": own, "callID": call_id, "state": {key: item for key, item in state.items() if key != "input"}}
    yield Entry("result", raw, made("user", [given]), uuid, at=time.get("end"))


def _blocks(parts: list[Mapping[str, Any]]) -> tuple[list[Any], tuple[str, ...]]:
    blocks: list[Any] = []
    unknown: list[str] = []
    for part in parts:
        match part.get("type"):
            case "text":
                blocks += texts(part.get("text")) if part.get("ignored") is not True else []
            case "file":
                blocks.append(_file(part))
            case "subtask":
                blocks.append(text(f"[Sub-agent {part.get('agent')}: {as_text(part.get('prompt'))}]"))
            case kind if not isinstance(kind, str) or kind not in SILENT:
                unknown.append(part_kind(part))
    return blocks, tuple(unknown)


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    url, mime = text_of(part, "url") or "", text_of(part, "mime") or ""
    is_medium = mime.startswith("image/") or mime == "application/pdf"
    if is_medium and url.startswith(("data:", "http:", "https:")):
        return image_at(url)
    return text(f"[Attached: {text_of(part, 'filename') or url[:200]}]")
