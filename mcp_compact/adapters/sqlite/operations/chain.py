"""Markers and their chain: which of them are in effect, and what changes where that changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from mcp_compact.adapters.sqlite.operations.encoding import json_list, json_text, json_value
from mcp_compact.adapters.sqlite.operations.live import clearing_of
from mcp_compact.adapters.sqlite.operations.state import HASH_BYTES, Session, Totals
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import effective_chain
from mcp_compact.messages.markers import Marker, MarkerKind, last_boundary
from mcp_compact.messages.weights import Weight

KINDS = {kind.value: kind for kind in MarkerKind}
_MARKERS = "SELECT uuid, seq, kind, native, parent_seq, base_seq, restores_seq FROM marker WHERE session = ?"
_LAST_BOUNDARY = (
    "WITH RECURSIVE up (parent, boundary) AS ("
    "SELECT parent_seq, iif(kind = :compact, seq, boundary_seq) FROM marker WHERE session = :session AND seq = :seq "
    "UNION ALL SELECT m.parent_seq, iif(m.kind = :compact, m.seq, m.boundary_seq) FROM up CROSS JOIN marker m "
    "ON m.session = :session AND m.seq = up.parent WHERE up.boundary IS NULL) "
    "SELECT boundary FROM up WHERE boundary > 0"
)
"""Older rows do not tell: for those the chain is walked."""
SERVICE_ROLE, PRESERVED, SNIPPED = "service", "preserved", "snipped"


def insert_marker(conn: sqlite3.Connection, session: Session, marker: Marker, before: Totals | None) -> None:
    """Write the marker's row. `before` are the live totals without it, None where nobody knows them."""
    weight = before.weight if before else Weight()
    conn.execute(
        "INSERT INTO marker VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session.id,
            marker.seq,
            marker.uuid,
            marker.kind.value,
            marker.native,
            marker.parent_seq,
            marker.base_seq,
            marker.restores_seq,
            session.epoch if before else None,
            weight.units,
            weight.results,
            weight.media,
            weight.messages,
            before.count if before else 0,
            before.estimated if before else 0,
            before.hash.to_bytes(HASH_BYTES, "big") if before else None,
            json_text(marker.metadata),
            _boundary_before(conn, session.id, marker),
        ),
    )


def _boundary_before(conn: sqlite3.Connection, session: int, marker: Marker) -> int:
    """The newest boundary that stands before the marker, 0 for none; a boundary is its own."""
    if marker.kind is MarkerKind.COMPACT:
        return marker.seq
    return _last_boundary_seq(conn, session, marker.parent_seq) or 0


def insert_members(conn: sqlite3.Connection, session: Session, marker: Marker) -> None:
    """Write the marker's service, preserved and snipped records; those that are not there yet are awaited."""
    uuids = {*marker.service, *marker.preserved, *marker.snipped}
    found = conn.execute(
        "SELECT uuid, seq FROM record WHERE session = ? AND uuid IN (SELECT value FROM json_each(?))",
        (session.id, json_list(uuids)),
    )
    seqs = dict(found.fetchall())
    roles = ((SERVICE_ROLE, marker.service), (PRESERVED, marker.preserved), (SNIPPED, marker.snipped))
    rows = [
        (session.id, marker.seq, role, ordinal, uuid, seqs.get(uuid))
        for role, members in roles
        for ordinal, uuid in enumerate(members)
    ]
    session.awaited += sum(row[-1] is None for row in rows)
    conn.executemany("INSERT INTO member VALUES (?, ?, ?, ?, ?, ?)", rows)


def seq_of(conn: sqlite3.Connection, session: int, uuid: str) -> int | None:
    """Where the session holds the record; None where it does not."""
    row = conn.execute("SELECT seq FROM record WHERE session = ? AND uuid = ?", (session, uuid)).fetchone()
    return int(row[0]) if row else None


def before_marker(conn: sqlite3.Connection, session: Session, seq: int) -> Totals | None:
    """The live totals just before the marker, None where they no longer tell anything."""
    row = conn.execute(
        "SELECT before_epoch, before_units, before_answers, before_media, before_messages, before_count, "
        "before_estimated, before_hash FROM marker WHERE session = ? AND seq = ?",
        (session.id, seq),
    ).fetchone()
    if row is None or row[0] != session.epoch:
        return None
    return Totals(Weight(*row[1:5]), row[5], row[6], int.from_bytes(row[7], "big"))


def narrow_markers(conn: sqlite3.Connection, session: int) -> list[Marker]:
    """All markers in order, without members, clearings and metadata."""
    return [_narrow(*row) for row in conn.execute(f"{_MARKERS} ORDER BY seq", (session,))]


def last_boundary_from(conn: sqlite3.Connection, session: int, seq: int | None) -> Marker | None:
    """The newest compact boundary of the chain that ends with a marker."""
    found = _last_boundary_seq(conn, session, seq)
    return StoredMarkers(conn, session).get(found) if found else None


def _last_boundary_seq(conn: sqlite3.Connection, session: int, seq: int | None) -> int | None:
    row = conn.execute(_LAST_BOUNDARY, {"session": session, "seq": seq, "compact": MarkerKind.COMPACT.value}).fetchone()
    return int(row[0]) if row else None


class StoredMarkers(Mapping[int, Marker]):
    """The same by seq, each read when it is asked for: a chain is walked a few steps, however long it is."""

    def __init__(self, conn: sqlite3.Connection, session: int) -> None:
        self._conn, self._session = conn, session

    def __getitem__(self, seq: int) -> Marker:
        row = self._conn.execute(f"{_MARKERS} AND seq = ?", (self._session, seq)).fetchone()
        if row is None:
            raise KeyError(seq)
        return _narrow(*row)

    def __iter__(self) -> Iterator[int]:
        return iter([marker.seq for marker in narrow_markers(self._conn, self._session)])

    def __len__(self) -> int:
        return len(narrow_markers(self._conn, self._session))


def _narrow(  # noqa: PLR0913, PLR0917 - one parameter a column
    uuid: str, seq: int, kind: str, native: int, parent: int | None, base: int, restores: int | None
) -> Marker:
    metadata = {"strategy": "native"} if native else {}
    return Marker(MessageUuid(uuid), seq, KINDS[kind], parent, base, restores_seq=restores, metadata=metadata)


def markers_of(conn: sqlite3.Connection, session: int) -> list[Marker]:
    """All markers, whole, in order."""
    seqs = conn.execute("SELECT seq FROM marker WHERE session = ? ORDER BY seq", (session,)).fetchall()
    return [marker_at(conn, session, seq) for (seq,) in seqs]


def marker_at(conn: sqlite3.Connection, session: int, seq: int) -> Marker:
    """One marker, whole."""
    uuid, kind, parent, base, restores, metadata, at_ms = conn.execute(
        "SELECT m.uuid, m.kind, m.parent_seq, m.base_seq, m.restores_seq, m.metadata, r.at_ms FROM marker m "
        "LEFT JOIN record r ON r.session = m.session AND r.seq = m.seq WHERE m.session = ? AND m.seq = ?",
        (session, seq),
    ).fetchone()
    members: dict[str, list[MessageUuid]] = {}
    for role, member in conn.execute(
        "SELECT role, uuid FROM member WHERE session = ? AND marker = ? ORDER BY role, ordinal", (session, seq)
    ):
        members.setdefault(role, []).append(MessageUuid(member))
    cleared = conn.execute(
        "SELECT c.kind, r.uuid, c.block, c.part, c.tool_use_id FROM cleared c "
        "JOIN record r ON r.session = c.session AND r.seq = c.seq WHERE c.session = ? AND c.marker = ? "
        "ORDER BY c.seq, c.block, c.part",
        (session, seq),
    )
    return Marker(
        uuid=MessageUuid(uuid),
        seq=seq,
        kind=MarkerKind(kind),
        parent_seq=parent,
        base_seq=base,
        service=tuple(members.get(SERVICE_ROLE, ())),
        preserved=tuple(members.get(PRESERVED, ())),
        cleared=tuple(clearing_of(*row) for row in cleared),
        snipped=tuple(members.get(SNIPPED, ())),
        restores_seq=restores,
        metadata=json_value(metadata),
        at_ms=at_ms,
    )


def effective_before(conn: sqlite3.Connection, session: int, seq: int | None = None) -> list[Marker]:
    """The effective chain (newest first), of the markers before `seq` where that is given."""
    markers = [marker for marker in narrow_markers(conn, session) if seq is None or marker.seq < seq]
    active = {
        row[0]
        for row in conn.execute(
            "SELECT m.seq FROM marker m JOIN record r ON r.session = m.session AND r.seq = m.seq "
            "WHERE m.session = ? AND m.native = 1 AND r.active > 0",
            (session,),
        )
    }
    return effective_chain(markers, active)


def rechain(conn: sqlite3.Connection, session: Session) -> bool:
    """Find the effective chain anew; True where another one is in effect now."""
    chain = effective_before(conn, session.id)
    head = chain[0].seq if chain else 0
    if head == session.marker_seq:
        return False
    old, new = set(_ancestors(conn, session.id, session.marker_seq)), {marker.seq for marker in chain}
    for seq in sorted(old - new):
        leave(conn, session.id, seq)
    for seq in sorted(new - old):
        enter(conn, session.id, seq)
    set_head(session, head, last_boundary(chain))
    return True


def set_head(session: Session, head_seq: int, boundary: Marker | None) -> None:
    """Note which marker is in effect, and the newest compact boundary up to it."""
    session.marker_seq = head_seq
    session.boundary_seq = boundary.seq if boundary else 0
    session.base_seq = boundary.base_seq if boundary else 0


def _ancestors(conn: sqlite3.Connection, session: int, seq: int) -> list[int]:
    return [
        row[0]
        for row in conn.execute(
            "WITH RECURSIVE up (seq) AS (VALUES (?) UNION ALL "
            "SELECT m.parent_seq FROM marker m JOIN up ON m.seq = up.seq "
            "WHERE m.session = ? AND m.parent_seq IS NOT NULL) SELECT seq FROM up WHERE seq > 0",
            (seq, session),
        )
    ]


def enter(conn: sqlite3.Connection, session: int, marker: int) -> None:
    """The marker's clearings and snips take effect."""
    _set_effect(conn, session, marker, by=marker, step=1)


def leave(conn: sqlite3.Connection, session: int, marker: int) -> None:
    """The marker's clearings and snips are taken back."""
    _set_effect(conn, session, marker, by=None, step=-1)


def _set_effect(conn: sqlite3.Connection, session: int, marker: int, *, by: int | None, step: int) -> None:
    places = conn.execute(
        "SELECT seq, block, part, kind FROM cleared WHERE session = ? AND marker = ? AND in_effect = ?",
        (session, marker, int(by is None)),
    ).fetchall()
    conn.executemany(
        "UPDATE record SET cleared = cleared + ? WHERE session = ? AND seq = ?",
        [(step, session, seq) for seq, _, _, _ in places],
    )
    conn.executemany(
        "UPDATE result SET cleared_by = ? WHERE session = ? AND seq = ? AND block = ?",
        [(by, session, seq, block) for seq, block, _, kind in places if kind == "result"],
    )
    conn.executemany(
        "UPDATE media SET cleared_by = ? WHERE session = ? AND seq = ? AND block = ? AND part = ?",
        [(by, session, seq, block, part) for seq, block, part, kind in places if kind == "media"],
    )
    conn.execute(
        "UPDATE cleared SET in_effect = ? WHERE session = ? AND marker = ?", (int(by is not None), session, marker)
    )
    conn.execute(
        "UPDATE record SET snipped_by = ? WHERE session = ? AND seq IN "
        "(SELECT seq FROM member WHERE session = ? AND marker = ? AND role = 'snipped')",
        (by or 0, session, session, marker),
    )
