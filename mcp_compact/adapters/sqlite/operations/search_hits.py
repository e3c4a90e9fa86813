"""What a search answers of each match: where it stands, whose it is, and the words around."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.encoding import json_list
from mcp_compact.adapters.sqlite.operations.live import live_among
from mcp_compact.adapters.sqlite.operations.searchable import masked_snippets
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.values import value
from mcp_compact.ports.search import Hit
from mcp_compact.ports.store import SessionKey


@value
class Match:
    """A record that holds all words."""

    row_id: int
    session_id: str
    session: int
    uuid: str
    seq: int
    role: str
    type: str
    at_ms: int | None
    call: str
    """Name of the first call."""
    result: str
    """The tool_use id that the first result answers."""
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
        live[number] = frozenset(live_among(conn, session, [match.seq for match in own[number]]))
        tools[number] = _tools(conn, number, own[number])
    snippets = masked_snippets([(match.text, match.at) for match in matches])
    return tuple(
        [
            _hit(match, snippet, match.seq in live[match.session], tools[match.session])
            for match, snippet in zip(matches, snippets, strict=True)
        ]
    )


def _tools(conn: sqlite3.Connection, session: int, matches: Sequence[Match]) -> dict[str, str]:
    """The tools that the first results of the records answer, by tool_use id; of repeated ids the newest call."""
    asked = {match.result for match in matches if match.result and not match.call}
    if not asked:
        return {}
    rows = conn.execute(
        "SELECT tool_use_id, name FROM call WHERE session = ? AND tool_use_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY seq, block",
        (session, json_list(asked)),
    )
    return dict(rows.fetchall())


def _hit(match: Match, snippet: str, is_live: bool, tools: dict[str, str]) -> Hit:  # noqa: FBT001 - a column of the answer
    return Hit(
        session_id=match.session_id,
        uuid=MessageUuid(match.uuid),
        seq=match.seq,
        role=match.role,
        type=match.type,
        at_ms=match.at_ms,
        tool=match.call or tools.get(match.result, ""),
        snippet=snippet,
        is_live=is_live,
    )
