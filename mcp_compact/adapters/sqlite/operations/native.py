"""A client's own compactions, found in its transcript: markers for records that the transcript itself holds.

Their service and preserved records may come in the same batch, or later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.operations import clearing
from mcp_compact.adapters.sqlite.operations.chain import (
    effective_before,
    insert_marker,
    insert_members,
    rechain,
    seq_of,
)
from mcp_compact.adapters.sqlite.operations.encoding import fitting, json_list, safe_id
from mcp_compact.adapters.sqlite.operations.live import recount
from mcp_compact.adapters.sqlite.operations.placing import Placed
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Marker, MarkerKind
from mcp_compact.ports.store import NativeBoundary


def take(
    conn: sqlite3.Connection,
    session: Session,
    boundaries: Sequence[NativeBoundary],
    placed: Sequence[Placed],
    now_ms: int,
) -> None:
    """Write the markers that are new, fill in members that have arrived, and count the live list anew."""
    arrived = bool(session.awaited and placed) and _fill_in(conn, session, [item.uuid for item in placed])
    found = _in_order(conn, session, boundaries)
    for seq, boundary in found:
        _write(conn, session, seq, boundary, now_ms)
        # At once: the next marker must see what this one cleared.
        rechain(conn, session)
    if not (arrived or found):
        return
    _mark_service(conn, session)
    session.epoch += 1
    session.totals = recount(conn, session)


def _in_order(
    conn: sqlite3.Connection, session: Session, boundaries: Sequence[NativeBoundary]
) -> list[tuple[int, NativeBoundary]]:
    """The boundaries whose records are stored and have no marker yet, by seq."""
    found = []
    for boundary in boundaries:
        seq = seq_of(conn, session.id, safe_id(boundary.uuid))
        known = conn.execute("SELECT 1 FROM marker WHERE session = ? AND seq = ?", (session.id, seq)).fetchone()
        if seq is not None and known is None:
            found.append((seq, boundary))
    return sorted(dict(found).items())


def _write(conn: sqlite3.Connection, session: Session, seq: int, boundary: NativeBoundary, now_ms: int) -> None:
    chain = effective_before(conn, session.id, seq)
    parent = chain[0].seq if chain else None
    marker = Marker(
        uuid=MessageUuid(safe_id(boundary.uuid)),
        seq=seq,
        kind=MarkerKind.MICRO if boundary.micro else MarkerKind.COMPACT,
        parent_seq=parent,
        base_seq=seq,
        service=_clean(boundary.service),
        preserved=_clean(boundary.preserved),
        metadata={**boundary.metadata, "strategy": "native"},
    )
    insert_marker(conn, session, marker, None)
    insert_members(conn, session, marker)
    session.natives += 1
    if boundary.micro:
        clearing.insert_for_calls(conn, session.id, seq, [safe_id(call) for call in boundary.cleared_tool_use_ids])
    else:
        session.compactions += 1
        session.auto_failures = 0
        session.last_compaction_ms = _time(conn, session, seq, now_ms)


def _clean(uuids: Sequence[MessageUuid]) -> tuple[MessageUuid, ...]:
    return tuple(MessageUuid(safe_id(uuid)) for uuid in uuids)


def _time(conn: sqlite3.Connection, session: Session, seq: int, now_ms: int) -> int:
    row = conn.execute("SELECT at_ms FROM record WHERE session = ? AND seq = ?", (session.id, seq)).fetchone()
    return fitting(row[0]) or now_ms


def _fill_in(conn: sqlite3.Connection, session: Session, uuids: Sequence[str]) -> bool:
    """Members of markers that came with this batch."""
    rows = conn.execute(
        "SELECT m.marker, m.role, m.ordinal, r.seq FROM member m "
        "JOIN record r ON r.session = m.session AND r.uuid = m.uuid "
        "WHERE m.session = ? AND m.seq IS NULL AND m.uuid IN (SELECT value FROM json_each(?))",
        (session.id, json_list(uuids)),
    ).fetchall()
    conn.executemany(
        "UPDATE member SET seq = ? WHERE session = ? AND marker = ? AND role = ? AND ordinal = ?",
        [(seq, session.id, marker, role, ordinal) for marker, role, ordinal, seq in rows],
    )
    session.awaited -= len(rows)
    return bool(rows)


def _mark_service(conn: sqlite3.Connection, session: Session) -> None:
    """A client's summary is shown as its boundary's service record, not as a message of the dialogue."""
    conn.execute(
        "UPDATE record SET kind = 4 WHERE session = ? AND kind = 1 AND seq IN "
        "(SELECT m.seq FROM member m WHERE m.session = ? AND m.role = 'service' AND m.seq IS NOT NULL)",
        (session.id, session.id),
    )
