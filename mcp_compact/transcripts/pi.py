"""Reads the sessions of pi, one entry a line. Newer ones are trees: entries name their parents.

A compaction names the first entry that it kept (by id, in older files by its place): what comes before it is
replaced with a summary. Thinking stays in the archive unless its provider signed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import (
    as_text,
    call,
    each_object,
    image,
    made,
    part_kind,
    result,
    texts,
    usage_of,
)
from mcp_compact.transcripts.translated import Entry, TranslatedReader, boundary

KNOWN = frozenset(
    ("session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom",
     "custom_message", "label", "session_info")
)  # fmt: skip
SENT = ("input", "cacheRead", "cacheWrite")


class PiReader(TranslatedReader):
    """Turns the entries of one session into records."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - a reader's own
        super().__init__(*arguments, **named)
        self._order: list[str | None] = []
        """The uuid of each entry behind the header, in the file's order; None for what is no message."""
        self._ids: list[str] = []
        self._parents: dict[str, str | None] = {}
        self._messages: set[str] = set()
        self._stands_for: dict[str, str] = {}
        """The last record that an entry became, where it became several."""

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The records of one entry."""
        kind = text_of(raw, "type") or ""
        place = len(self._ids) + 1
        # Without ids of its own an entry is named by its place: a compaction counts places too.
        own = uuid_of(raw.get("id")) if kind != "session" else None
        uuid = own or f"entry-{place}"
        parent = uuid_of(raw.get("parentId")) if kind != "session" else None
        entry = Entry(
            kind,
            raw,
            uuid=uuid if kind != "session" else None,
            parent=self._stands_for.get(parent, parent) if parent else None,
            at=raw.get("timestamp"),
            body=body,
            unknown=() if kind in KNOWN else (kind or "(none)",),
        )
        if kind == "session":
            self._begin(raw)
            yield replace(entry, kind=HEADER)
            return
        self._parents[uuid] = parent or (self._ids[-1] if self._ids else None)
        self._ids.append(uuid)
        self._look(kind, raw)
        if kind == "compaction" and text_of(raw, "summary"):
            yield from self._compaction(entry, raw)
        else:
            yield from self._said(entry, _message(kind, raw))

    def _begin(self, raw: Mapping[str, Any]) -> None:
        session = self.session
        session.session_id = session.session_id or uuid_of(raw.get("id"))
        session.cwd = session.cwd or text_of(raw, "cwd")
        session.model = session.model or text_of(raw, "modelId")
        version = raw.get("version")
        session.version = str(version) if version is not None else session.version

    def _look(self, kind: str, raw: Mapping[str, Any]) -> None:
        if kind == "model_change":
            self.session.model = text_of(raw, "modelId") or self.session.model
        elif kind == "session_info":
            self.session.given_title = text_of(raw, "name") or self.session.given_title

    def _said(self, entry: Entry, message: Message | None) -> Iterator[Entry]:
        inner = object_of(entry.raw, "message")
        unknown = entry.unknown
        if entry.kind == "message":
            unknown = _unknown_parts(inner.get("content"))
            unknown = (f"role {inner.get('role')}"[:60],) if message is None and not unknown else unknown
        meta = entry.kind in ("custom_message", "branch_summary") or inner.get("role") == "bashExecution"
        if message is not None and entry.uuid:
            self._messages.add(entry.uuid)
        yield replace(entry, message=message, unknown=unknown, is_meta=meta and message is not None)

    def _compaction(self, entry: Entry, raw: Mapping[str, Any]) -> Iterator[Entry]:
        yield boundary(
            raw,
            kind=entry.kind,
            uuid=entry.uuid,
            parent=entry.parent,
            at=entry.at,
            body=entry.body,
            tokens_before=count_of(raw, "tokensBefore"),
            kept=self._kept(entry.uuid or "", raw),
        )
        summary, named = text_of(raw, "summary") or "", f"{entry.uuid}:summary"
        self._stands_for[entry.uuid or ""] = named
        yield Entry(
            "summary", {"of": entry.uuid, "summary": summary}, made("user", summary), named,
            parent=entry.uuid, at=entry.at, is_summary=True,
        )  # fmt: skip

    def _kept(self, uuid: str, raw: Mapping[str, Any]) -> list[str]:
        """The messages on the way from the first kept entry to the compaction."""
        first: str | None = uuid_of(raw.get("firstKeptEntryId"))
        place = count_of(raw, "firstKeptEntryIndex")
        if first is None and place is not None:
            # Places count from the header, which is the first line.
            first = self._ids[place - 1] if 0 < place <= len(self._ids) else None
        way: list[str] = []
        at = self._parents.get(uuid)
        while at is not None and len(way) <= len(self._ids):
            way.append(at)
            if at == first:
                return [uuid for uuid in reversed(way) if uuid in self._messages]
            at = self._parents.get(at)
        return []


def _message(kind: str, raw: Mapping[str, Any]) -> Message | None:
    if kind == "branch_summary":
        return made("user", as_text(raw.get("summary")))
    if kind == "custom_message":
        return made("user", _content(raw.get("content")))
    return _of_role(object_of(raw, "message")) if kind == "message" else None


def _of_role(inner: Mapping[str, Any]) -> Message | None:
    match inner.get("role"):
        case "user":
            return made("user", _content(inner.get("content")))
        case "assistant":
            return made(
                "assistant",
                _content(inner.get("content"), is_signed="anthropic" in (inner.get("api"), inner.get("provider"))),
                model=inner.get("model"),
                usage=usage_of(inner.get("usage"), SENT, ("output",)),
            )
        case "toolResult" if call_id := text_of(inner, "toolCallId"):
            return made("user", [result(call_id, _content(inner.get("content")), failed=inner.get("isError") is True)])
        case "bashExecution":
            return made("user", _ran(inner))
        case "branchSummary" | "compactionSummary" | "custom":
            return made("user", _content(inner.get("summary", inner.get("content"))))
        case _:
            return None


def _ran(inner: Mapping[str, Any]) -> str:
    """A command that the user ran beside the conversation, and what it wrote."""
    code = inner.get("exitCode")
    failed = f"\n[exit code {code}]" if isinstance(code, int) and code else ""
    return f"[Ran: {as_text(inner.get('command'))}]\n{as_text(inner.get('output'))}{failed}"


def _content(content: object, *, is_signed: bool = False) -> str | list[Any]:
    """Text or blocks. `is_signed`: thinking's signature is one that its provider takes back."""
    if not isinstance(content, list):
        return as_text(content)
    blocks: list[Any] = []
    for part in each_object(content):
        match part.get("type"):
            case "text":
                blocks += texts(part.get("text"))
            case "image":
                blocks.append(image(part.get("mimeType"), part.get("data")))
            case "thinking" if is_signed and text_of(part, "thinkingSignature"):
                thought = {"thinking": as_text(part.get("thinking")), "signature": part["thinkingSignature"]}
                blocks.append({"type": "thinking", **thought})
            case "toolCall" if call_id := text_of(part, "id"):
                blocks.append(call(call_id, part.get("name"), part.get("arguments")))
    return blocks


def _unknown_parts(content: object) -> tuple[str, ...]:
    if not isinstance(content, list):
        return ()
    known = ("text", "image", "thinking", "toolCall")
    return tuple([part_kind(part) for part in each_object(content) if part.get("type") not in known])
