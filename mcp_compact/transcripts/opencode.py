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
from mcp_compact.transcripts.translated import TranslatedReader

SILENT = frozenset(("reasoning", "step-start", "step-finish", "patch", "snapshot", "agent", "retry", "compaction"))
"""Parts that are nothing a model is sent."""
DONE = ("completed", "error")


class OpencodeReader(TranslatedReader):
    """Turns the messages of one session into records."""

    lists = ("messages",)
    is_whole = True

    def begin(self, own: Mapping[str, Any]) -> None:  # noqa: ARG002 - a file is read whole
        """Who asked for a compaction is told before its summary."""
        self._trigger = "auto"

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
        parts = list(each_object(raw.get("parts")))
        if role not in ("user", "assistant"):
            yield Entry(role, raw, uuid=own, at=at, body=body, unknown=(role or "(none)",))
            return
        asks = [part for part in parts if part.get("type") == "compaction"]
        if asks:
            # The boundary is where the summary stands that was asked for: it may not have come.
            self._trigger = "auto" if asks[0].get("auto") is True else "manual"
        elif role == "assistant" and info.get("summary") is True and info.get("finish"):
            begins = f"{own}:boundary" if own else None
            yield boundary({"of": own, "trigger": self._trigger}, uuid=begins, at=at, trigger=self._trigger)
        yield from self._message(raw, role, own, at)

    def _message(self, raw: Mapping[str, Any], role: str, own: str | None, at: object) -> Iterator[Entry]:
        info, parts = object_of(raw, "info"), list(each_object(raw.get("parts")))
        tools = [part for part in parts if _is_call(part)]
        rest = [part for part in parts if not _is_call(part)]
        blocks, unknown = _blocks(rest)
        is_summary = role == "assistant" and info.get("summary") is True and bool(info.get("finish"))
        cache = object_of(object_of(info, "tokens"), "cache")
        usage = usage_of({**object_of(info, "tokens"), **cache}, ("input", "read", "write"), ("output", "reasoning"))
        model = text_of(info, "modelID")
        spoken = made(
            # A summary is given to the model as what was said before: it stands in the user's place.
            "user" if is_summary else role,
            blocks,
            id=own if role == "assistant" and not is_summary else None,
            model=model,
            usage=usage if role == "assistant" and not is_summary else None,
        )
        meta = role == "user" and bool(blocks) and all(part.get("synthetic") is True for part in rest)
        yield Entry(
            role, {**raw, "parts": rest}, spoken, own, at=at, is_summary=is_summary, is_meta=meta, unknown=unknown
        )
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
