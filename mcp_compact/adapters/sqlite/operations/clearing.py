"""Clearings in the tables: what of a record's content the live context leaves out."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.operations.chain import seq_of
from mcp_compact.adapters.sqlite.operations.clearable import MEDIA_NOW, UNITS_NOW
from mcp_compact.adapters.sqlite.operations.encoding import json_list, safe_id, safe_id_or_none
from mcp_compact.compaction.plan import Cleared
from mcp_compact.messages.markers import Clearing, ClearKind

_INSERT = "INSERT OR IGNORE INTO cleared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def insert(conn: sqlite3.Connection, session: int, marker: int, cleared: Sequence[Cleared]) -> list[Clearing]:
    """Write the clearings of a marker, not in effect yet; those that were written.

    What is cleared already, by itself or with the result that it is a part of, is left out, and so is
    what names no record of the session: twice is once.
    """
    written: list[Clearing] = []
    whole: set[tuple[int, int]] = set()
    # Results first: the parts of a result go with it.
    for item in sorted(cleared, key=lambda item: item.clearing.kind is not ClearKind.RESULT):
        place = item.clearing
        seq = seq_of(conn, session, safe_id(place.uuid))
        if seq is None or (place.part is not None and (seq, place.block) in whole):
            continue
        if not _is_cleared(conn, session, seq, place) and _write(conn, session, marker, seq, item):
            written.append(place)
            if place.kind is ClearKind.RESULT:
                whole.add((seq, place.block))
    return written


def _write(conn: sqlite3.Connection, session: int, marker: int, seq: int, item: Cleared) -> bool:
    """False for a place that the same plan names twice."""
    place, freed = item.clearing, item.freed
    done = conn.execute(
        _INSERT,
        (
            session,
            seq,
            place.block,
            -1 if place.part is None else place.part,
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
    return done.rowcount > 0


def _is_cleared(conn: sqlite3.Connection, session: int, seq: int, place: Clearing) -> bool:
    part = -1 if place.part is None else place.part
    row = conn.execute(
        "SELECT 1 FROM cleared WHERE session = ? AND seq = ? AND block = ? AND in_effect = 1 "
        "AND ((part = ? AND kind = ?) OR (? >= 0 AND kind = 'result'))",
        (session, seq, place.block, part, place.kind.value, part),
    ).fetchone()
    return row is not None


def insert_for_calls(conn: sqlite3.Connection, session: int, marker: int, calls: Sequence[str]) -> None:
    """The clearings of a client's own micro-compaction, which names the calls; the newest result before it counts."""
    rows = conn.execute(
        f"SELECT t.tool_use_id, max(t.seq), t.block, {UNITS_NOW} - t.cleared_units, t.answers - t.cleared_answers, "  # noqa: S608 - our own columns
        f"{MEDIA_NOW} - t.cleared_media FROM result t WHERE t.session = ? AND t.seq < ? AND t.cleared_by IS NULL "
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
