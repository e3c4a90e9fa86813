"""The live list out of the tables: its rows, their weights with clearings applied, its totals.

Live are the service records of the last boundary of the effective chain, then the records that it
preserved and what the active branch appended since, in order. Totals are kept by each operation;
`recount` is what they must always equal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice

from mcp_compact.adapters.sqlite.operations.encoding import MAX_INT, json_list
from mcp_compact.adapters.sqlite.operations.rows import NARROW, Narrow
from mcp_compact.adapters.sqlite.operations.state import Session, Totals
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.live import HASH_MODULUS, state_hash
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, Weight

# The two parts of the list, each old to new and new to old. S608: the columns are this package's own.
_SINCE = (
    f"SELECT {NARROW} FROM record r WHERE r.session = ? AND r.seq > ? AND r.seq <= ? AND r.kind = 1 "  # noqa: S608
    "AND r.active > 0 AND r.snipped_by = 0 ORDER BY r.seq"
)
_KEPT = (
    f"SELECT {NARROW} FROM member m JOIN record r ON r.session = m.session AND r.seq = m.seq "  # noqa: S608
    "WHERE m.session = ? AND m.marker = ? AND m.role = 'preserved' AND r.seq > ? AND r.seq <= ? AND r.snipped_by = 0 "
    "ORDER BY r.seq"
)
_SERVICE = (
    f"SELECT {NARROW} FROM member m JOIN record r ON r.session = m.session AND r.seq = m.seq "  # noqa: S608
    "WHERE m.session = ? AND m.marker = ? AND m.role = 'service' ORDER BY r.seq"
)
_AMONG = (
    "SELECT r.seq, r.uuid FROM record r WHERE r.session = ? AND r.seq IN (SELECT value FROM json_each(?)) "
    "AND r.snipped_by = 0 AND ((r.kind = 1 AND r.active > 0 AND r.seq > ?) OR r.seq IN (SELECT m.seq FROM member m "
    "WHERE m.session = r.session AND m.marker = ? AND m.role IN ('service', 'preserved')))"
)
_CLEARED = (
    "SELECT c.seq, c.kind, c.block, c.part, c.tool_use_id, c.units, c.answers, c.media, c.messages "
    "FROM json_each(?) e CROSS JOIN cleared c ON c.session = ? AND c.seq = e.value "
    "WHERE c.in_effect = 1 ORDER BY c.seq, c.marker, c.block, c.part"
)
_FREED = (
    "SELECT c.seq, sum(c.units), sum(c.answers), sum(c.media), sum(c.messages) "
    "FROM json_each(?) e CROSS JOIN cleared c ON c.session = ? AND c.seq = e.value WHERE c.in_effect = 1 GROUP BY c.seq"
)
FIRST_AHEAD, MOST_AHEAD = 32, 256
KINDS = {kind.value: kind for kind in ClearKind}
"""A look here costs a tenth of making the member from its value."""
_ONE = f"SELECT {NARROW} FROM record r WHERE r.session = ? AND r.seq = ?"  # noqa: S608


def narrow_row(conn: sqlite3.Connection, session: int, seq: int) -> Narrow:
    """A stored record by its seq."""
    return Narrow._make(conn.execute(_ONE, (session, seq)).fetchone())


def service_rows(conn: sqlite3.Connection, session: Session) -> list[Narrow]:
    """The service records of the last boundary that have arrived."""
    if not session.boundary_seq:
        return []
    return [Narrow._make(row) for row in conn.execute(_SERVICE, (session.id, session.boundary_seq))]


def live_rows(
    conn: sqlite3.Connection, session: Session, *, after: int = 0, up_to: int = MAX_INT, newest_first: bool = False
) -> Iterator[Narrow]:
    """Live records but service records, with a seq above `after` and up to `up_to`; read as far as the caller goes."""
    order = " DESC" if newest_first else ""
    since = map(Narrow._make, conn.execute(_SINCE + order, (session.id, max(after, session.base_seq), up_to)))
    if not session.boundary_seq:
        return since
    kept = map(Narrow._make, conn.execute(_KEPT + order, (session.id, session.boundary_seq, after, up_to)))
    return _once(merge(kept, since, key=lambda row: row.seq, reverse=newest_first))


def appended_rows(conn: sqlite3.Connection, session: Session, after: int) -> Iterator[Narrow]:
    """What the active branch appended after a seq; not what a boundary preserves though it came later."""
    return map(Narrow._make, conn.execute(_SINCE, (session.id, max(after, session.base_seq), MAX_INT)))


def _once(rows: Iterable[Narrow]) -> Iterator[Narrow]:
    """A preserved record that arrived after its boundary stands in both parts."""
    last = -1
    for row in rows:
        if row.seq != last:
            yield row
        last = row.seq


def with_clearings(
    conn: sqlite3.Connection, session: int, rows: Iterable[Narrow]
) -> Iterator[tuple[Narrow, list[tuple[Clearing, Weight]]]]:
    """Rows with the clearings in effect on each, oldest first, and what each frees: a statement for some dozens.

    Rows are read ahead, few at first: a walk back often ends soon.
    """
    source, size = iter(rows), FIRST_AHEAD
    while ahead := list(islice(source, size)):
        size = min(2 * size, MOST_AHEAD)
        found = _clearings(conn, session, [row for row in ahead if row.cleared])
        for row in ahead:
            yield row, found.get(row.seq, [])


def with_weights(conn: sqlite3.Connection, session: int, rows: Iterable[Narrow]) -> Iterator[tuple[Narrow, Weight]]:
    """Rows with what each weighs in the live context; read ahead as above."""
    source, size = iter(rows), FIRST_AHEAD
    while ahead := list(islice(source, size)):
        size = min(2 * size, MOST_AHEAD)
        cleared = [row.seq for row in ahead if row.cleared]
        freed = {seq: sums for seq, *sums in conn.execute(_FREED, (json_list(cleared), session))} if cleared else {}
        for row in ahead:
            own = freed.get(row.seq)
            yield row, row.weight if own is None else row.weight - Weight(*own)


def _clearings(
    conn: sqlite3.Connection, session: int, rows: Sequence[Narrow]
) -> dict[int, list[tuple[Clearing, Weight]]]:
    if not rows:
        return {}
    out: dict[int, list[tuple[Clearing, Weight]]] = {row.seq: [] for row in rows}
    uuids = {row.seq: row.uuid for row in rows}
    for seq, kind, *facts in conn.execute(_CLEARED, (json_list(out), session)):
        block, part, call, *freed = facts
        out[seq].append((clearing_of(kind, uuids[seq], block, part, call), Weight(*freed)))
    return out


def clearings_at(conn: sqlite3.Connection, session: int, seq: int) -> list[tuple[Clearing, Weight]]:
    """The clearings in effect on a record, oldest first, and what each frees."""
    rows = conn.execute(
        "SELECT c.kind, r.uuid, c.block, c.part, c.tool_use_id, c.units, c.answers, c.media, c.messages "
        "FROM cleared c JOIN record r ON r.session = c.session AND r.seq = c.seq "
        "WHERE c.session = ? AND c.seq = ? AND c.in_effect = 1 ORDER BY c.marker, c.block, c.part",
        (session, seq),
    )
    return [(clearing_of(*row[:5]), Weight(*row[5:])) for row in rows]


def clearing_of(kind: str, uuid: str, block: int, part: int, tool_use_id: str | None) -> Clearing:
    """The clearing of a row's columns."""
    return Clearing(
        KINDS[kind],
        MessageUuid(uuid),
        block,
        None if part < 0 else part,
        ToolUseId(tool_use_id) if tool_use_id is not None else None,
    )


def live_weight(conn: sqlite3.Connection, session: int, row: Narrow) -> Weight:
    """What the record weighs in the live context."""
    if not row.cleared:
        return row.weight
    return row.weight - sum((freed for _, freed in clearings_at(conn, session, row.seq)), NOTHING)


def total(conn: sqlite3.Connection, session: int, rows: Iterable[Narrow]) -> Totals:
    """What live records add to the totals, all together."""
    units = answers = media = messages = count = estimated = states = 0
    for row, found in with_clearings(conn, session, rows):
        units += row.units
        answers += row.answers
        media += row.media
        messages += row.messages
        for _, freed in found:
            units -= freed.units
            answers -= freed.results
            media -= freed.media
            messages -= freed.messages
        count += 1
        estimated += row.estimated
        states += state_hash(row.seq, row.body_hash, [clearing for clearing, _ in found])
    return Totals(Weight(units, answers, media, messages), count, estimated, states % HASH_MODULUS)


def recount(conn: sqlite3.Connection, session: Session) -> Totals:
    """The totals of the whole live list, from its rows."""
    service = total(conn, session.id, service_rows(conn, session))
    counted = total(conn, session.id, live_rows(conn, session))
    return counted + Totals(service.weight, 0, service.estimated, service.hash)


def is_live(conn: sqlite3.Connection, session: Session, seq: int) -> bool:
    """Is the record part of the live list, service records included?"""
    return bool(live_among(conn, session, [seq]))


def live_among(conn: sqlite3.Connection, session: Session, seqs: Iterable[int]) -> dict[int, str]:
    """Those of the records that are part of the live list, service records included, with their uuids."""
    rows = conn.execute(_AMONG, (session.id, json_list(seqs), session.base_seq, session.boundary_seq))
    return dict(rows.fetchall())
