"""What a search answers of each match: where it stands, whose it is, and the words around."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.encoding import json_list, safe_id
from mcp_compact.adapters.sqlite.operations.live import live_among
from mcp_compact.adapters.sqlite.operations.searchable import masked_snippet
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Hit, SessionKey


@dataclass(frozen=True, slots=True)
class Match:
    """A record that holds all words."""

    row_id: int
    session_id: str
    session: int
    record: Record
    text: str
    at: int
    """Where the first of the words stands in the text."""
    score: int


def hits_of(conn: sqlite3.Connection, namespace: str, matches: Sequence[Match]) -> tuple[Hit, ...]:
    """The answer for some matches, in their order."""
    sessions = {match.session: match.session_id for match in matches}
    own = {number: [m for m in matches if m.session == number] for number in sessions}
    live: dict[int, frozenset[int]] = {}
    tools: dict[int, dict[str, str]] = {}
    for number, session_id in sessions.items():
        session = state.load(conn, SessionKey(namespace, session_id))
        assert session is not None  # noqa: S101 - its records' rows were joined with it
        live[number] = frozenset(live_among(conn, session, [match.record.seq for match in own[number]]))
        tools[number] = _tools(conn, number, own[number])
    return tuple(_hit(match, match.record.seq in live[match.session], tools[match.session]) for match in matches)


def _tools(conn: sqlite3.Connection, session: int, matches: Sequence[Match]) -> dict[str, str]:
    """The tools that the first results of the records answer, by tool_use id; of repeated ids the newest call."""
    asked = {safe_id(m.record.results[0].tool_use_id) for m in matches if m.record.results and not m.record.calls}
    if not asked:
        return {}
    rows = conn.execute(
        "SELECT tool_use_id, name FROM call WHERE session = ? AND tool_use_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY seq, block",
        (session, json_list(asked)),
    )
    return dict(rows.fetchall())


def _hit(match: Match, is_live: bool, tools: dict[str, str]) -> Hit:  # noqa: FBT001 - a column of the answer
    record = match.record
    if record.calls:
        tool = record.calls[0].name
    else:
        tool = tools.get(safe_id(record.results[0].tool_use_id), "") if record.results else ""
    return Hit(
        session_id=match.session_id,
        uuid=record.uuid,
        seq=record.seq,
        role=record.message.role if record.message else "",
        type=record.type,
        at_ms=record.at_ms,
        tool=tool,
        snippet=masked_snippet(match.text, match.at),
        is_live=is_live,
    )
