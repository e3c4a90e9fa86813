"""Results and media of the live context that could be cleared."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.encoding import json_list
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.compaction.micro_request import Clearable
from mcp_compact.compaction.snapshot import Base, CallFacts, InputFacts, MediaFacts, ResultFacts
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.repeats import counting_results
from mcp_compact.messages.weights import Weight, family_of
from mcp_compact.ports.store import LiveMedia, SessionKey

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
# The call that it answers (of repeated ids each one), and its record: thinking, an input cleared already, is it live?
_CALL = (
    "k.name, k.seq, k.block, k.path, k.first_line, k.end_line, k.input_hash, k.input_units, o.uuid, "
    "o.has_thinking OR EXISTS (SELECT 1 FROM record w WHERE w.session = o.session AND w.message_id = o.message_id "
    "AND w.has_thinking), "
    "o.cleared > 0 AND EXISTS (SELECT 1 FROM cleared d WHERE d.session = k.session AND d.seq = k.seq "
    "AND d.block = k.block AND d.kind = 'input' AND d.in_effect = 1), "
    "o.snipped_by = 0, o.active > 0 AND o.kind = 1"
)
_ITS_CALL = (
    "LEFT JOIN call k ON k.session = t.session AND k.tool_use_id = t.tool_use_id AND k.seq < t.seq "
    "LEFT JOIN record o ON o.session = k.session AND o.seq = k.seq "
)
_MEDIA = "t.kind, r.uuid, t.seq, t.block, t.part, t.tokens, t.tool_use_id, t.mark_units, t.bytes"
# What the active branch appended since the boundary, and what that preserved (a record that came late is both).
# A partial index knows the uncleared results.
_SINCE = (
    "SELECT {columns} FROM {table} JOIN record r ON r.session = t.session AND r.seq = t.seq {joined}"
    "WHERE t.session = ? AND t.seq > ? AND t.cleared_by IS NULL AND r.kind = 1 AND r.active > 0 AND r.snipped_by = 0 "
    "{more} "
)
_KEPT = (
    "SELECT {columns} FROM member m JOIN {table} ON t.session = m.session AND t.seq = m.seq "
    "JOIN record r ON r.session = t.session AND r.seq = t.seq {joined}"
    "WHERE m.session = ? AND m.marker = ? AND m.role = 'preserved' AND t.cleared_by IS NULL AND r.snipped_by = 0 "
    "{more} "
)
_RESULTS: dict[str, str] = {
    "columns": f"{RESULT}, {_CALL}",
    "table": "result t INDEXED BY result_uncleared",
    "joined": _ITS_CALL,
    "more": "",
}
_ALL_MEDIA: dict[str, str] = {
    "columns": _MEDIA,
    "table": "media t INDEXED BY media_uncleared",
    "joined": "",
    # What stands in a result is gone where the result is cleared.
    "more": "AND NOT EXISTS (SELECT 1 FROM result c WHERE c.session = t.session AND c.seq = t.seq "
    "AND c.block = t.block AND c.cleared_by IS NOT NULL)",
}


def _live_sql(parts: Mapping[str, str], order: str) -> tuple[str, str]:
    """The statement for a session without a boundary, and for one with."""
    since, kept = _SINCE.format_map(parts), _KEPT.format_map(parts)
    return f"{since} ORDER BY {order}", f"{since} UNION {kept} ORDER BY {order}"


# Of an id that stands twice in one answer the first call is kept.
_LIVE_RESULTS = _live_sql(_RESULTS, "2, 3, 14, 15 DESC")
_LIVE_MEDIA = _live_sql(_ALL_MEDIA, "3, 4, 5")
_LIVE_SIZES = _live_sql(_ALL_MEDIA | {"columns": "t.seq, t.block, t.part, t.bytes"}, "1, 2, 3")
_CLEARED_TOO = (
    "SELECT t.tool_use_id, t.is_error, t.seq, t.block FROM result t "
    "JOIN record r ON r.session = t.session AND r.seq = t.seq WHERE t.session = ? "
    "AND t.tool_use_id IN (SELECT value FROM json_each(?)) AND t.cleared_by IS NOT NULL "
    "AND r.active > 0 AND r.snipped_by = 0"
)


def clearable(conn: sqlite3.Connection, key: SessionKey) -> Clearable | None:
    """Uncleared results and media, old to new, and the newest answer; None where there is no such session."""
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return None
        answer_ms, answer_seq = _newest_answer(conn, session)
        return Clearable(
            base=Base(session.last_seq, session.marker_seq, session.live_hash.hex()),
            family=family_of(session.model),
            live_weight=session.totals.weight,
            results=_results(conn, session),
            media=[_media_facts(*row) for row in _rows(conn, session, _LIVE_MEDIA)],
            newest_answer_ms=answer_ms,
            newest_answer_seq=answer_seq,
            overhead_tokens=session.overhead_tokens,
            context_window=session.context_window,
        )


def media_of(conn: sqlite3.Connection, session: Session) -> LiveMedia:
    """How many images and documents the live context holds, and their bytes. Reads a narrow row of each."""
    if not session.live_media:
        return LiveMedia()
    sizes = [row[3] for row in _rows(conn, session, _LIVE_SIZES)]
    return LiveMedia(len(sizes), sum(sizes))


def _rows(conn: sqlite3.Connection, session: Session, sql: tuple[str, str]) -> list[tuple[Any, ...]]:
    if not session.boundary_seq:
        return conn.execute(sql[0], (session.id, session.base_seq)).fetchall()
    return conn.execute(sql[1], (session.id, session.base_seq, session.id, session.boundary_seq)).fetchall()


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


def _results(conn: sqlite3.Connection, session: Session) -> list[ResultFacts]:
    """The uncleared results of the live context with what is known of the calls that they answer."""
    rows = {(row[1], row[2]): row for row in _rows(conn, session, _LIVE_RESULTS)}
    # What stands before its call answers nothing and counts by itself.
    counting = _counting(conn, session.id, [(row[0], row[13] is not None, row) for row in rows.values()])
    old = [row[13] for row in rows.values() if row[13] is not None and row[13] <= session.base_seq]
    kept = _preserved(conn, session, old) if old else set()
    return [
        _fact(row, row[12] or "", _call(row) if _is_live(row, session.base_seq, kept) else None)
        for place, row in rows.items()
        if place in counting
    ]


def _counting(
    conn: sqlite3.Connection, session: int, rows: Sequence[tuple[str, bool, Sequence[Any]]]
) -> AbstractSet[tuple[int, int]]:
    """Places of the results that count among repeated ones: each with its call, whether that is known, and its row.

    One that was cleared still counts: what it stands for does not come back into question.
    """
    results = [((call, known), row[9] == 1, (row[1], row[2])) for call, known, row in rows]
    cleared = conn.execute(_CLEARED_TOO, (session, json_list({call for call, _, _ in rows}))).fetchall()
    if cleared:
        results += [((call, True), is_error == 1, (seq, block)) for call, is_error, seq, block in cleared]
        results.sort(key=lambda result: result[2])
    return set(counting_results(results).values())


def _is_live(row: Sequence[Any], base_seq: int, kept: Container[int]) -> bool:
    """Is the call of a row part of the live context? Before the boundary that is what it preserved."""
    seq, not_snipped, is_active = row[13], row[23], row[24]
    return bool(not_snipped and ((is_active and seq > base_seq) or seq in kept))


def _call(row: Sequence[Any]) -> CallFacts:
    lines = (row[16], row[17]) if row[16] is not None else None
    given = InputFacts(row[18] or b"", row[19], row[15] or "", lines)
    return CallFacts(row[20], row[13], row[14], given, row[21] == 1, row[22] == 1)


def _preserved(conn: sqlite3.Connection, session: Session, seqs: Sequence[int]) -> set[int]:
    rows = conn.execute(
        "SELECT seq FROM member WHERE session = ? AND marker = ? AND role = 'preserved' "
        "AND seq IN (SELECT value FROM json_each(?))",
        (session.id, session.boundary_seq, json_list(seqs)),
    )
    return {row[0] for row in rows}


def result_facts(conn: sqlite3.Connection, session: int, rows: Sequence[tuple[Any, ...]]) -> list[ResultFacts]:
    """Facts of rows of `RESULT` columns, old to new, with the tools' names; of several results of one call one."""
    names = _names(conn, session, {row[0] for row in rows})
    counting = _counting(conn, session, [(row[0], True, row) for row in rows])
    return [_fact(row, names.get(row[0], ""), None) for row in rows if (row[1], row[2]) in counting]


def _fact(row: Sequence[Any], tool: str, call: CallFacts | None) -> ResultFacts:
    return ResultFacts(
        tool_use_id=row[0],
        tool=tool,
        uuid=row[10],
        seq=row[1],
        block=row[2],
        weight=Weight(row[3], row[4], row[5]),
        cleared_weight=_weight(row[6], row[7], row[8]),
        at_ms=row[11],
        is_error=row[9] == 1,
        call=call,
    )


# Most results would leave the same text behind.
_weight = lru_cache(maxsize=256)(Weight)


def _names(conn: sqlite3.Connection, session: int, calls: set[str]) -> dict[str, str]:
    """The tool that each call asked for; of repeated ids the newest."""
    if not calls:
        return {}
    rows = conn.execute(
        "SELECT tool_use_id, name FROM call WHERE session = ? AND tool_use_id IN (SELECT value FROM json_each(?)) "
        "ORDER BY seq, block",
        (session, json_list(calls)),
    )
    return dict(rows.fetchall())


def _media_facts(  # noqa: PLR0913, PLR0917 - one parameter a column
    kind: str, uuid: str, seq: int, block: int, part: int, tokens: int, call: str | None, mark: int, size: int
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
        size,
    )
