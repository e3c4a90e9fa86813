"""Results and media of the live context that could be cleared."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.encoding import json_list
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.compaction.micro import Clearable
from mcp_compact.compaction.snapshot import Base, CallFacts, InputFacts, MediaFacts, ResultFacts
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.weights import Weight, family_of
from mcp_compact.ports.store import SessionKey

# What a result weighs now: an image in it may have been cleared by itself.
_GONE = (
    "iif(t.media = 0, 0, coalesce((SELECT sum(c.{of}) FROM cleared c WHERE c.session = t.session AND c.seq = t.seq "
    "AND c.block = t.block AND c.part >= 0 AND c.in_effect = 1), 0))"
)
UNITS_NOW = "t.units - " + _GONE.format(of="units")
MEDIA_NOW = "t.media - " + _GONE.format(of="media")
RESULT = (
    f"t.tool_use_id, t.seq, t.block, {UNITS_NOW}, t.answers, {MEDIA_NOW}, t.cleared_units, t.cleared_answers, "
    "t.cleared_media, t.is_error, r.uuid, r.at_ms"
)
_MEDIA = "t.kind, r.uuid, t.seq, t.block, t.part, t.tokens, t.tool_use_id, t.mark_units"
# Of the active branch since the boundary, and of the preserved records: a partial index knows the uncleared ones.
_LIVE = (
    "SELECT {columns} FROM {table} JOIN record r ON r.session = t.session AND r.seq = t.seq "
    "WHERE t.session = ? AND t.seq > ? AND t.cleared_by IS NULL AND r.kind = 1 AND r.active > 0 AND r.snipped_by = 0 "
    "{more} "
    "UNION SELECT {columns} FROM member m JOIN {table} ON t.session = m.session AND t.seq = m.seq "
    "JOIN record r ON r.session = t.session AND r.seq = t.seq "
    "WHERE m.session = ? AND m.marker = ? AND m.role = 'preserved' AND t.cleared_by IS NULL AND r.snipped_by = 0 "
    "{more} "
    "ORDER BY {order}"
)
_LIVE_RESULTS = _LIVE.format(columns=RESULT, table="result t INDEXED BY result_uncleared", more="", order="2, 3")
_LIVE_MEDIA = _LIVE.format(
    columns=_MEDIA,
    table="media t",
    # What stands in a result is gone where the result is cleared.
    more="AND NOT EXISTS (SELECT 1 FROM result c WHERE c.session = t.session AND c.seq = t.seq AND c.block = t.block "
    "AND c.cleared_by IS NOT NULL)",
    order="3, 4, 5",
)


def clearable(conn: sqlite3.Connection, key: SessionKey) -> Clearable | None:
    """Uncleared results and media, old to new, and the newest answer; None where there is no such session."""
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return None
        answer_ms, answer_seq = _newest_answer(conn, session)
        rows = conn.execute(_LIVE_RESULTS, _live(session)).fetchall()
        return Clearable(
            base=Base(session.last_seq, session.marker_seq, session.live_hash.hex()),
            family=family_of(session.model),
            live_weight=session.totals.weight,
            results=result_facts(conn, session.id, rows, _calls(conn, session, {row[0] for row in rows})),
            media=[_media_facts(*row) for row in conn.execute(_LIVE_MEDIA, _live(session))],
            newest_answer_ms=answer_ms,
            newest_answer_seq=answer_seq,
            overhead_tokens=session.overhead_tokens,
            context_window=session.context_window,
        )


def _live(session: Session) -> tuple[int, int, int, int]:
    return (session.id, session.base_seq, session.id, session.boundary_seq)


def _newest_answer(conn: sqlite3.Connection, session: Session) -> tuple[int | None, int]:
    """Time of the newest live assistant record, and seq of the first one of its message; seq 0 for none."""
    row = conn.execute(
        "SELECT r.at_ms, r.need_seq FROM record r WHERE r.session = ? AND r.seq > ? AND r.kind = 1 AND r.active > 0 "
        "AND r.role = 'assistant' AND r.snipped_by = 0 ORDER BY r.seq DESC LIMIT 1",
        (session.id, session.base_seq),
    ).fetchone()
    if row is None:
        row = conn.execute(
            "SELECT r.at_ms, r.need_seq FROM member m JOIN record r ON r.session = m.session AND r.seq = m.seq "
            "WHERE m.session = ? AND m.marker = ? AND m.role = 'preserved' AND r.role = 'assistant' "
            "AND r.snipped_by = 0 ORDER BY r.seq DESC LIMIT 1",
            (session.id, session.boundary_seq),
        ).fetchone()
    return (row[0], row[1]) if row else (None, 0)


Call: TypeAlias = tuple[str, CallFacts | None]
"""A call's tool, and its facts."""


def result_facts(
    conn: sqlite3.Connection, session: int, rows: Sequence[tuple[Any, ...]], calls: Mapping[str, Call] | None = None
) -> list[ResultFacts]:
    """Facts of rows of `RESULT` columns, old to new; of several results of one call the last one counts.

    Without `calls` the tools are looked up, and nothing else of the calls.
    """
    if calls is None:
        calls = _tools(conn, session, {row[0] for row in rows})
    newest = {row[0]: row[1] for row in rows}
    unknown: Call = ("", None)
    return [
        ResultFacts(
            tool_use_id=ToolUseId(row[0]),
            tool=calls.get(row[0], unknown)[0],
            uuid=MessageUuid(row[10]),
            seq=row[1],
            block=row[2],
            weight=Weight(*row[3:6]),
            cleared_weight=Weight(*row[6:9]),
            at_ms=row[11],
            is_error=bool(row[9]),
            call=calls.get(row[0], unknown)[1],
        )
        for row in rows
        if newest[row[0]] == row[1]
    ]


def _tools(conn: sqlite3.Connection, session: int, calls: set[str]) -> dict[str, Call]:
    """The tool that each call asked for; of repeated ids the newest."""
    if not calls:
        return {}
    rows = conn.execute(
        "SELECT tool_use_id, name FROM call WHERE session = ? AND tool_use_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY seq, block",
        (session, json_list(calls)),
    )
    return {call: (name, None) for call, name in rows}


_CALLS = (
    "SELECT c.tool_use_id, c.name, c.seq, c.block, c.path, c.first_line, c.end_line, c.input_hash, c.input_units, "
    "r.uuid, r.has_thinking OR EXISTS (SELECT 1 FROM record o WHERE o.session = r.session "
    "AND o.message_id = r.message_id AND o.has_thinking), "
    "r.cleared > 0 AND EXISTS (SELECT 1 FROM cleared d WHERE d.session = c.session AND d.seq = c.seq "
    "AND d.block = c.block AND d.kind = 'input' AND d.in_effect = 1), "
    "r.snipped_by = 0 AND ((r.active > 0 AND r.kind = 1 AND c.seq > ?) OR EXISTS (SELECT 1 FROM member m "
    "WHERE m.session = c.session AND m.marker = ? AND m.role = 'preserved' AND m.seq = c.seq)) "
    "FROM call c JOIN record r ON r.session = c.session AND r.seq = c.seq "
    "WHERE c.session = ? AND c.tool_use_id IN (SELECT value FROM json_each(?)) ORDER BY c.seq, c.block"
)


def _calls(conn: sqlite3.Connection, session: Session, calls: set[str]) -> dict[str, Call]:
    """The calls of those ids; of repeated ids the newest."""
    if not calls:
        return {}
    given = (session.base_seq, session.boundary_seq, session.id, json_list(calls))
    return {row[0]: (row[1], _call_facts(row) if row[12] else None) for row in conn.execute(_CALLS, given)}


def _call_facts(row: Sequence[Any]) -> CallFacts:
    lines = (row[5], row[6]) if row[5] is not None else None
    given = InputFacts(row[7] or b"", row[8], row[4] or "", lines)
    return CallFacts(MessageUuid(row[9]), row[2], row[3], given, bool(row[10]), bool(row[11]))


def _media_facts(  # noqa: PLR0913, PLR0917 - one parameter a column
    kind: str, uuid: str, seq: int, block: int, part: int, tokens: int, call: str | None, mark: int
) -> MediaFacts:
    return MediaFacts(
        kind,
        MessageUuid(uuid),
        seq,
        block,
        None if part < 0 else part,
        tokens,
        ToolUseId(call) if call is not None else None,
        mark,
    )
