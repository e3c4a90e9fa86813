"""Reads the sessions of pi, one entry a line. Newer ones are trees: entries name their parents.

A compaction names the first entry that it kept (by id, in older files by its place): what comes before it is
replaced with a summary. Thinking stays in the archive unless its provider signed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.entries import Entry, boundary
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
from mcp_compact.transcripts.report import UNNAMED
from mcp_compact.transcripts.translated import TranslatedReader

KNOWN = frozenset(
    ("session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary", "custom",
     "custom_message", "label", "session_info")
)  # fmt: skip
PARTS = frozenset(("text", "image", "thinking", "toolCall"))
SENT = ("input", "cacheRead", "cacheWrite")
IN_MIND = 2000
"""So many entries at most are kept in mind, and half of them when there are more: a compaction keeps the newest ones.
Of one that keeps more than these the archive tells what lies between."""


class PiReader(TranslatedReader):
    """Turns the entries of one session into records."""

    def begin(self, own: Mapping[str, Any]) -> None:
        """A compaction names the first entry that it kept: what lies between is found along the parents."""
        self._count: int = own.get("count", 0)
        """Entries behind the header: what has no id of its own is named by its place."""
        self._parents: dict[str, str | None] = {}
        """The entry before each one since the first that the last compaction kept, in the file's order: the newest."""
        self._messages: set[str] = set()
        self._last: str | None = own.get("before")
        self._before = self._last
        """The entry before those that are kept in mind."""
        self._told: list[tuple[str, str | None, int]] | None = []
        """The entries kept in mind, as `memory` gives them; None where an id came twice."""
        self._stands_for: dict[str, str] = dict(own.get("stands_for", ()))
        """The last record that an entry became, where it became several."""
        for uuid, parent, is_message in own.get("entries", ()):
            self._keep_in_mind(uuid, parent or None, is_root=parent is None, is_message=bool(is_message))

    def memory(self) -> dict[str, Any]:
        """The entries that a compaction may keep; a parent is named only where it is not the entry before."""
        return {
            "count": self._count,
            "before": self._before,
            "entries": self._entries() if self._told is None else list(self._told),
            "stands_for": list(self._stands_for.items()),
        }

    def _entries(self) -> list[tuple[str, str | None, int]]:
        entries: list[tuple[str, str | None, int]] = []
        last = self._before
        for uuid, parent in self._parents.items():
            entries.append((uuid, "" if parent == last else parent, int(uuid in self._messages)))
            last = uuid
        return entries

    def _keep_in_mind(self, uuid: str, parent: str | None, *, is_root: bool, is_message: bool) -> None:
        before = self._last
        parent = None if is_root else parent or before
        if uuid in self._parents:
            self._told = None
        elif self._told is not None:
            self._told.append((uuid, "" if parent == before else parent, int(is_message)))
        self._parents[uuid] = parent
        self._last = uuid
        if is_message:
            self._messages.add(uuid)
        if len(self._parents) > IN_MIND:
            self._forget(list(islice(self._parents, IN_MIND // 2)))

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterable[Entry]:
        """The records of one entry."""
        kind, at = text_of(raw, "type") or "", raw.get("timestamp")
        if kind == "session":
            self._begin(raw)
            return (Entry(HEADER, raw, at=at, body=body),)
        self._count += 1
        # Without ids of its own an entry is named by its place: a compaction counts places too.
        uuid, named = uuid_of(raw.get("id")) or f"entry-{self._count}", uuid_of(raw.get("parentId"))
        # The user went back to before the first entry, or it is the first.
        is_root = raw.get("parentId", "") is None
        inner = object_of(raw, "message")
        message = _message(kind, raw, inner)
        self._keep_in_mind(uuid, named, is_root=is_root, is_message=message is not None)
        parent = self._stands_for.get(named, named) if named else None
        if kind == "compaction" and (summary := text_of(raw, "summary")):
            return self._compaction(raw, uuid, parent, summary, body)
        if kind == "message":
            unknown = _unknown_parts(inner.get("content"))
            if message is None and not unknown and inner.get("excludeFromContext") is not True:
                unknown = (f"role {inner.get('role')}",)
            is_meta = message is not None and inner.get("role") == "bashExecution"
        else:
            self._look(kind, raw)
            unknown, is_meta = () if kind in KNOWN else (kind or UNNAMED,), message is not None
        return (Entry(kind, raw, message, uuid, parent, is_root, at, "", is_meta, body=body, unknown=unknown),)

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

    def _compaction(
        self, raw: Mapping[str, Any], uuid: str, parent: str | None, summary: str, body: bytes | None
    ) -> Iterator[Entry]:
        at, tokens = raw.get("timestamp"), count_of(raw, "tokensBefore")
        first = self._first_kept(raw)
        kept, segment = self._way(first, uuid), None
        if not kept and first is not None and (before := self._parents[uuid]) is not None:
            # It goes back behind what is kept in mind: the archive knows what lies between.
            segment = (first, before)
        yield boundary(
            raw, kind="compaction", uuid=uuid, parent=parent, at=at, body=body, tokens_before=tokens,
            kept=kept, segment=segment,
        )  # fmt: skip
        named = f"{uuid}:summary"
        self._stands_for[uuid] = named
        yield Entry(
            "summary", {"of": uuid, "summary": summary}, made("user", summary), named,
            parent=uuid, at=at, is_summary=True,
        )  # fmt: skip
        if first in self._parents:
            # Later compactions keep what comes later.
            self._forget(list(takewhile(lambda each: each != first, self._parents)))

    def _first_kept(self, raw: Mapping[str, Any]) -> str | None:
        first, place = uuid_of(raw.get("firstKeptEntryId")), count_of(raw, "firstKeptEntryIndex")
        # Places count from the header, which is the first line.
        return f"entry-{place}" if first is None and place else first

    def _way(self, first: str | None, uuid: str) -> list[str]:
        """The messages on the way from the first kept entry to the compaction."""
        way: list[str] = []
        at = self._parents[uuid]
        while at is not None and at in self._parents and len(way) <= len(self._parents):
            way.append(at)
            if at == first:
                return [uuid for uuid in reversed(way) if uuid in self._messages]
            at = self._parents[at]
        return []

    def _forget(self, gone: Sequence[str]) -> None:
        """Keep these oldest entries in mind no longer."""
        for uuid in gone:
            self._before = uuid
            self._messages.discard(uuid)
            del self._parents[uuid]
        if self._told is not None:
            del self._told[: len(gone)]


def _message(kind: str, raw: Mapping[str, Any], inner: Mapping[str, Any]) -> Message | None:
    if kind == "message":
        return _of_role(inner)
    if kind == "branch_summary":
        return made("user", as_text(raw.get("summary")))
    return made("user", _content(raw.get("content"))) if kind == "custom_message" else None


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
        case "bashExecution" if inner.get("excludeFromContext") is not True:
            return made("user", _ran(inner))
        case "branchSummary" | "compactionSummary" | "custom" | "hookMessage":
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
    return tuple([part_kind(part) for part in content if isinstance(part, dict) and text_of(part, "type") not in PARTS])
