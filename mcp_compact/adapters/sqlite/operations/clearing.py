"""Clearings in the tables: what of a record's content the live context leaves out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mcp_compact.adapters.sqlite.operations.clearable import MEDIA_NOW, UNITS_NOW
from mcp_compact.adapters.sqlite.operations.encoding import json_list, safe_id, safe_id_or_none
from mcp_compact.adapters.sqlite.operations.live import clearing_of
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.repeats import counting_results
from mcp_compact.messages.weights import Weight, total_weight

if TYPE_CHECKING:
    from mcp_compact.compaction.plan import Cleared

_INSERT = "INSERT OR IGNORE INTO cleared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_LIVE = (
    "SELECT r.uuid, r.seq, r.body_hash FROM record r WHERE r.session = ? "
    "AND r.uuid IN (SELECT value FROM json_each(?)) AND r.snipped_by = 0 "
    "AND ((r.kind = 1 AND r.active > 0 AND r.seq > ?) OR r.seq IN (SELECT m.seq FROM member m "
    "WHERE m.session = r.session AND m.marker = ? AND m.role IN ('service', 'preserved')))"
)


class Written(NamedTuple):
    """The clearings that a marker wrote, what they free, and those in effect on their records before, by seq."""

    places: list[tuple[int, Clearing]]
    freed: Weight
    before: dict[int, list[Clearing]]

    @property
    def cleared(self) -> tuple[Clearing, ...]:
        """The places in the order in which a marker names them."""
        return tuple([place for _, place in sorted(self.places, key=_order)])

    def after(self) -> dict[int, list[Clearing]]:
        """What is in effect on each record that was touched, once the marker counts."""
        found: dict[int, list[Clearing]] = {}
        for seq, place in self.places:
            found.setdefault(seq, list(self.before.get(seq, ()))).append(place)
        return found


def insert(
    conn: sqlite3.Connection, session: int, marker: int, cleared: Sequence[Cleared], seqs: Mapping[str, int]
) -> Written:
    """Write the clearings of a marker, not in effect yet.

    What is cleared already, by itself or with the result that it is a part of, is left out, and so is
    what names none of the records whose seqs are given: twice is once.
    """
    before = in_effect(conn, session, seqs.values())
    taken = {(seq, place.block, place.part, place.kind) for seq, places in before.items() for place in places}
    whole = {(seq, block) for seq, block, _, kind in taken if kind is ClearKind.RESULT}
    written: list[tuple[int, Clearing]] = []
    rows: list[tuple[object, ...]] = []
    freed: list[Weight] = []
    # Results first: the parts of a result go with it.
    for item in sorted(cleared, key=lambda item: item.clearing.kind is not ClearKind.RESULT):
        place = item.clearing
        seq = seqs.get(safe_id(place.uuid))
        if seq is None or (place.part is not None and (seq, place.block) in whole):
            continue
        named = (seq, place.block, place.part, place.kind)
        if named in taken:
            continue
        taken.add(named)
        if place.kind is ClearKind.RESULT:
            whole.add((seq, place.block))
        written.append((seq, _stored(place)))
        freed.append(item.freed)
        rows.append(_row(session, marker, seq, item))
    conn.executemany(_INSERT, rows)
    return Written(written, total_weight(freed), before)


def seqs_of(conn: sqlite3.Connection, session: int, cleared: Sequence[Cleared]) -> dict[str, int]:
    """Where the session holds the records that clearings name, by their stored uuids."""
    uuids = {safe_id(item.clearing.uuid) for item in cleared}
    rows = conn.execute(
        "SELECT uuid, seq FROM record WHERE session = ? AND uuid IN (SELECT value FROM json_each(?))",
        (session, json_list(uuids)),
    )
    return dict(rows.fetchall())


def in_effect(conn: sqlite3.Connection, session: int, seqs: Iterable[int]) -> dict[int, list[Clearing]]:
    """The clearings in effect on some records, by seq: kinds and places, without the ids."""
    rows = conn.execute(
        "SELECT seq, kind, block, part FROM cleared WHERE session = ? "
        "AND seq IN (SELECT value FROM json_each(?)) AND in_effect = 1",
        (session, json_list(seqs)),
    )
    found: dict[int, list[Clearing]] = {}
    for seq, kind, block, part in rows:
        found.setdefault(seq, []).append(clearing_of(kind, "", block, part, None))
    return found


def live_records(
    conn: sqlite3.Connection, session: Session, cleared: Sequence[Cleared]
) -> dict[str, tuple[int, bytes]]:
    """Of the records that clearings name the live ones: seq and hash of the body, by their stored uuids."""
    uuids = {safe_id(item.clearing.uuid) for item in cleared}
    rows = conn.execute(_LIVE, (session.id, json_list(uuids), session.base_seq, session.boundary_seq))
    return {uuid: (seq, body_hash) for uuid, seq, body_hash in rows}


def _order(placed: tuple[int, Clearing]) -> tuple[int, int, int]:
    seq, place = placed
    return seq, place.block, -1 if place.part is None else place.part


def _stored(place: Clearing) -> Clearing:
    """The clearing with its ids as they are stored."""
    uuid, call = safe_id(place.uuid), safe_id_or_none(place.tool_use_id)
    if uuid == place.uuid and call == place.tool_use_id:
        return place
    return replace(place, uuid=MessageUuid(uuid), tool_use_id=None if call is None else ToolUseId(call))


def _row(session: int, marker: int, seq: int, item: Cleared) -> tuple[object, ...]:
    place, freed = item.clearing, item.freed
    return (
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
    )


def insert_for_calls(conn: sqlite3.Connection, session: int, marker: int, calls: Sequence[str]) -> None:
    """The clearings of a client's own micro-compaction, which names the calls: of each the result that counts."""
    rows = conn.execute(
        f"SELECT t.tool_use_id, t.seq, t.block, {UNITS_NOW} - t.cleared_units, t.answers - t.cleared_answers, "  # noqa: S608 - our own columns
        f"{MEDIA_NOW} - t.cleared_media, t.is_error FROM result t WHERE t.session = ? AND t.seq < ? "
        "AND t.cleared_by IS NULL AND t.tool_use_id IN (SELECT value FROM json_each(?)) ORDER BY t.seq, t.block",
        (session, marker, json_list(calls)),
    ).fetchall()
    counting = counting_results((row[0], row[6] == 1, row) for row in rows)
    conn.executemany(
        _INSERT,
        [
            (session, seq, block, -1, "result", marker, call, units, answers, media, 0, 0)
            for call, seq, block, units, answers, media, _ in counting.values()
        ],
    )
