"""Clearings in the tables: what of a record's content the live context leaves out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mcp_compact.adapters.sqlite.operations.chain import seq_of
from mcp_compact.adapters.sqlite.operations.encoding import json_list, safe_id, safe_id_or_none
from mcp_compact.compaction.plan import Cleared
from mcp_compact.messages.markers import Clearing

_INSERT = "INSERT OR IGNORE INTO cleared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def insert(conn: sqlite3.Connection, session: int, marker: int, cleared: Iterable[Cleared]) -> list[Clearing]:
    """Write the clearings of a marker, not in effect yet; those that were written.

    What is cleared already, or no record of the session, is left out: twice is once.
    """
    written: list[Clearing] = []
    for item in cleared:
        place, freed = item.clearing, item.freed
        seq = seq_of(conn, session, safe_id(place.uuid))
        part = -1 if place.part is None else place.part
        if seq is None or _is_cleared(conn, session, seq, place.block, part, place.kind.value):
            continue
        done = conn.execute(
            _INSERT,
            (
                session,
                seq,
                place.block,
                part,
                place.kind.value,
                marker,
                safe_id_or_none(place.tool_use_id),
                freed.units,
                freed.results,
                freed.media,
                freed.messages,
                0,
            ),
        )
        # The same place twice in one plan is written once.
        if done.rowcount:
            written.append(place)
    return written


def _is_cleared(conn: sqlite3.Connection, session: int, seq: int, block: int, part: int, kind: str) -> bool:
    return (
        conn.execute(
            "SELECT 1 FROM cleared WHERE session = ? AND seq = ? AND block = ? AND part = ? AND kind = ? "
            "AND in_effect = 1",
            (session, seq, block, part, kind),
        ).fetchone()
        is not None
    )


def insert_for_calls(conn: sqlite3.Connection, session: int, marker: int, calls: Sequence[str]) -> None:
    """The clearings of a client's own micro-compaction, which names the calls; the newest result before it counts."""
    rows = conn.execute(
        "SELECT t.tool_use_id, max(t.seq), t.block, t.units - t.cleared_units, t.answers - t.cleared_answers, "
        "t.media - t.cleared_media FROM result t WHERE t.session = ? AND t.seq < ? AND t.cleared_by IS NULL "
        "AND t.tool_use_id IN (SELECT value FROM json_each(?)) GROUP BY t.tool_use_id",
        (session, marker, json_list(calls)),
    ).fetchall()
    conn.executemany(
        _INSERT,
        [
            (session, seq, block, -1, "result", marker, call, units, answers, media, 0, 0)
            for call, seq, block, units, answers, media in rows
        ],
    )
