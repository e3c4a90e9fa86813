"""Writes live turns as a session file of Claude Code that can be resumed.

One line a turn, each the child of the one before. A turn that is a record of the transcript keeps
its uuid and its envelope; what a repair added gets a uuid made from its place and content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_compact.messages.codec import canonical, clean, format_time
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.anthropic_out import content_of
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.kinds import BOUNDARY, NO_MODEL
from mcp_compact.transcripts.parsed import derived_uuid

_KEPT = ("promptId", "requestId", "slug", "userType", "entrypoint", "isMeta", "thinkingMetadata", "sourceToolUseID")
"""What a record's line keeps beside what is written anew."""
_KEPT_WHOLE = ("toolUseResult", "todos", "imagePasteIds", "planContent")
"""Copies of the content: kept only where the content is unchanged."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session file needs beside its turns so that the client opens it as one of its own."""

    session_id: str
    boundary_uuid: MessageUuid
    facts: SessionFacts
    """Of the session that it goes on from; `cwd` is the new one's."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the turns, by our count."""
    overhead_tokens: int = 0
    """What the client sends beside its messages: system prompt and tools."""
    last_uuid: MessageUuid | None = None
    """The newest record of the session that it goes on from."""


def session_entries(
    turns: Sequence[Turn], new: NewSession, records: Mapping[MessageUuid, Record]
) -> Iterator[dict[str, Any]]:
    """The objects of a whole new session file: a boundary where the turns begin with a summary, the turns, a title.

    The client tells how full its context is by the usage of the last answer: that of the old session
    would make it compact at once. So each answer's usage says what the new context holds.
    """
    parent: MessageUuid | None = None
    entries = list(to_entries(turns, new.facts, new.session_id, records))
    if entries and entries[0].get("isCompactSummary"):
        yield _boundary(new, entries[0]["timestamp"])
        parent = new.boundary_uuid
    usage = {
        "input_tokens": new.tokens_after + new.overhead_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
    }
    for entry in entries:
        if parent is not None and entry["parentUuid"] is None:
            entry["parentUuid"] = parent
        if entry["type"] == "assistant":
            entry["message"] = {**entry["message"], "usage": usage}
        yield entry
    if new.facts.title:
        yield clean({"type": "custom-title", "customTitle": new.facts.title, "sessionId": new.session_id})


def _boundary(new: NewSession, at: str) -> dict[str, Any]:
    figures = {"trigger": "manual", "preTokens": new.tokens_before, "postTokens": new.tokens_after}
    entry = {
        "parentUuid": None,
        "logicalParentUuid": new.last_uuid,
        "isSidechain": False,
        "userType": "external",
        "cwd": new.facts.cwd or "",
        "sessionId": new.session_id,
        "version": new.facts.version or "",
        "gitBranch": new.facts.git_branch or "",
        "type": "system",
        "subtype": BOUNDARY,
        "content": "Conversation compacted",
        "isMeta": False,
        "level": "info",
        "compactMetadata": figures,
        "uuid": new.boundary_uuid,
        "timestamp": at,
    }
    return {key: clean(value) for key, value in entry.items()}


def to_lines(
    turns: Iterable[Turn],
    facts: SessionFacts,
    session_id: str,
    records: Mapping[MessageUuid, Record] | None = None,
) -> Iterator[bytes]:
    """The lines of a new session `session_id`, each with its LF; see `to_entries`."""
    for entry in to_entries(turns, facts, session_id, records):
        yield canonical(entry) + b"\n"


def to_entries(
    turns: Iterable[Turn],
    facts: SessionFacts,
    session_id: str,
    records: Mapping[MessageUuid, Record] | None = None,
) -> Iterator[dict[str, Any]]:
    """The objects of these lines.

    `records` are the records that turns were made from: a turn whose record is missing gets a plain
    envelope, and the time of the turn before it (at first that of the first turn that has one).
    """
    known = records or {}
    turns = list(turns)
    parent: MessageUuid | None = None
    written: set[MessageUuid] = set()
    times = (record.at_ms for turn in turns if turn.uuid and (record := known.get(turn.uuid)) and record.at_ms)
    at_ms = next(times, facts.last_ms or 0)
    for ordinal, turn in enumerate(turns):
        record = known.get(turn.uuid) if turn.uuid is not None else None
        if record is not None and record.at_ms is not None:
            at_ms = record.at_ms
        message = _message(turn, record, facts)
        uuid = turn.uuid
        if uuid is None or uuid in written:
            uuid = derived_uuid(session_id, ordinal, canonical(message))
        written.add(uuid)
        if turn.role == "assistant":
            # The client joins neighbours of one id; answers without an id would be taken for one.
            message.setdefault("id", f"msg_{uuid}")
        entry = {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": facts.cwd or "",
            "sessionId": session_id,
            "version": facts.version or "",
            "gitBranch": facts.git_branch or "",
            **_own(turn, record),
            "type": turn.role,
            "message": message,
            "uuid": uuid,
            "timestamp": format_time(at_ms),
        }
        yield clean(entry)
        parent = uuid


def _own(turn: Turn, record: Record | None) -> dict[str, Any]:
    if record is None:
        return {}
    keys = (*_KEPT, *_KEPT_WHOLE) if turn.whole else _KEPT
    own = {key: record.raw[key] for key in keys if key in record.raw}
    if record.is_summary:
        own |= {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    return own


def _message(turn: Turn, record: Record | None, facts: SessionFacts) -> dict[str, Any]:
    content = content_of(turn, record)
    if turn.role != "assistant":
        return {"role": turn.role, "content": content}
    own = record.raw.get("message") if record is not None else None
    return {**(own if isinstance(own, Mapping) else _blank_answer(turn, facts)), "role": turn.role, "content": content}


def _blank_answer(turn: Turn, facts: SessionFacts) -> dict[str, Any]:
    """The answer's fields that a client expects, where nothing is known of them."""
    id_ = {"id": turn.message_id} if turn.message_id else {}
    usage = {"input_tokens": 0, "output_tokens": 0}
    ends: dict[str, Any] = {"stop_reason": None, "stop_sequence": None, "usage": usage}
    return {"type": "message", "model": facts.model or NO_MODEL, **id_, **ends}
