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

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> list[Entry]:
        """The records of a message: its own words, then a call and its result for each tool."""
        info = object_of(raw, "info")
        role, own, at = text_of(info, "role") or "", uuid_of(info.get("id")), object_of(info, "time").get("created")
        if role not in ("user", "assistant"):
            return [Entry(role, raw, uuid=own, at=at, body=body, unknown=(role or UNNAMED,))]
        tools, rest, asks = _parted(raw.get("parts"))
        if asks is not None:
            self._asked, self._before = asks, len(self._records)
        is_summary = role == "assistant" and info.get("summary") is True and bool(info.get("finish"))
        words = {**raw, "parts": rest} if tools else raw
        found = [_words(words, info, rest, own, at, is_summary=is_summary)]
        if tools:
            found += _calls(tools, own, text_of(info, "modelID"), at)
            found += _outcomes(tools, own)
        if is_summary:
            return [self._boundary(own, at), *found] if asks is None else found
        if own:
            self._records += [(own, entry.uuid) for entry in found if entry.uuid]
        return found

    def _boundary(self, own: str | None, at: object) -> Entry:
        """It stands where the summary is that was asked for."""
        trigger = "auto" if self._asked.get("auto", True) is True else "manual"
        begins = f"{own}:boundary" if own else None
        return boundary({"of": own, "trigger": trigger}, uuid=begins, at=at, trigger=trigger, kept=self._kept())

    def _kept(self) -> list[str]:
        """The records from the message that is kept first to the one that asked for the compaction."""
        first = text_of(self._asked, "tail_start_id")
        before = self._records[: self._before]
        start = next((at for at, (message, _) in enumerate(before) if message == first), len(before))
        return [uuid for _, uuid in before[start:]]


def _parted(parts: object) -> tuple[list[Raw], list[Raw], Raw | None]:
    """A message's calls, its other parts, and the first one that asks for a compaction."""
    tools: list[Raw] = []
    rest: list[Raw] = []
    asks: Raw | None = None
    for part in each_object(parts):
        kind = part.get("type")
        if kind == "tool" and text_of(part, "callID") is not None:
            tools.append(part)
            continue
        rest.append(part)
        if kind == "compaction" and asks is None:
            asks = part
    return tools, rest, asks


def _words(raw: Raw, info: Raw, parts: list[Raw], own: str | None, at: object, *, is_summary: bool) -> Entry:
    """What a message says itself: its parts but for the calls."""
    blocks, unknown = _blocks(parts)
    role, model = info["role"], text_of(info, "modelID")
    if is_summary:
        # It is given to the model as what was said before: it stands in the user's place.
        spoken = made("user", blocks, model=model)
    elif role == "assistant":
        tokens = object_of(info, "tokens")
        usage = usage_of({**tokens, **object_of(tokens, "cache")}, SENT, WRITTEN) if tokens else None
        spoken = made(role, blocks, id=own, model=model, usage=usage)
    else:
        spoken = made(role, blocks, model=model)
    meta = role == "user" and bool(blocks) and all(part.get("synthetic") is True for part in parts)
    return Entry(role, raw, spoken, own, at=at, is_summary=is_summary, is_meta=meta, unknown=unknown)


def _calls(tools: list[Raw], own: str | None, model: str | None, at: object) -> Iterator[Entry]:
    """Each call alone, so that it stays what it is when its outcome comes in."""
    for part in tools:
        call_id, given = str(part["callID"]), object_of(part, "state").get("input")
        asked = made("assistant", [call(call_id, part.get("tool"), given)], id=own, model=model)
        uuid = uuid_of(part.get("id")) or (f"{own}:{call_id}" if own else None)
        yield Entry("tool", {"of": own, "part": {**part, "state": {"input": given}}}, asked, uuid, at=at)


def _outcomes(tools: list[Raw], own: str | None) -> Iterator[Entry]:
    """What came of the calls that are done."""
    for part in tools:
        state = object_of(part, "state")
        if state.get("status") not in DONE:
            continue
        call_id, of = str(part["callID"]), uuid_of(part.get("id"))
        uuid = f"{of}:result" if of else (f"{own}:{call_id}:result" if own else None)
        told = {**state}
        told.pop("input", None)
        raw = {"of": own, "callID": call_id, "state": told}
        time = object_of(state, "time")
        message = made("user", [_given(call_id, state, is_cleared=bool(time.get("compacted")))])
        yield Entry("result", raw, message, uuid, at=time.get("end"))


def _given(call_id: str, state: Raw, *, is_cleared: bool) -> dict[str, Any]:
    """The result that the model is sent."""
    failed = state.get("status") == "error"
    if is_cleared:
        return result(call_id, CLEARED_RESULT, failed=failed)
    content = as_text(state.get("error" if failed else "output"))
    media = [image_at(url) for each in each_object(state.get("attachments")) if (url := text_of(each, "url"))]
    return result(call_id, [*texts(content), *media] if media else content, failed=failed)


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
