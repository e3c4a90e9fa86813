"""Writing what a plan says, and taking it back: each one transaction that appends and changes nothing stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile

from mcp_compact.adapters.sqlite.connection import writing
from mcp_compact.adapters.sqlite.operations import bodies, clearing, derived
from mcp_compact.adapters.sqlite.operations.chain import (
    StoredMarkers,
    before_marker,
    enter,
    insert_marker,
    insert_members,
    last_boundary_from,
    leave,
    marker_at,
    seq_of,
    set_head,
)
from mcp_compact.adapters.sqlite.operations.clearing import Written
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.adapters.sqlite.operations.live import (
    appended_rows,
    live_among,
    live_rows,
    narrow_row,
    recount,
    service_rows,
    total,
)
from mcp_compact.adapters.sqlite.operations.marker_records import write_marker, write_service
from mcp_compact.adapters.sqlite.operations.memory import insert_memory
from mcp_compact.adapters.sqlite.operations.sessions import existing
from mcp_compact.adapters.sqlite.operations.state import Session, Totals
from mcp_compact.adapters.sqlite.operations.writing_rows import reserve_ids
from mcp_compact.compaction.plan import ClearingPlan, CompactionPlan
from mcp_compact.compaction.snapshot import Base
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import HASH_MODULUS, state_hash
from mcp_compact.messages.markers import Marker, MarkerKind, chain
from mcp_compact.ports.store import Committed, SessionKey, Stamp

BASE_CHANGED = Committed(None, "base_changed")


def commit(
    conn: sqlite3.Connection, key: SessionKey, plan: CompactionPlan | ClearingPlan | SnipPlan, stamp: Stamp
) -> Committed:
    """Write the plan's marker and what belongs to it.

    Not written, with the reason, where the live context has changed since in another way than by records
    appended (`base_changed`), or where nothing is left to clear or snip (`nothing_to_clear`, `nothing_to_snip`).
    Raises CallerError (`no_such_session`).
    """
    with writing(conn):
        session = existing(conn, key)
        match plan:
            case CompactionPlan():
                return _commit_boundary(conn, session, plan, stamp)
            case ClearingPlan():
                return _commit_clearing(conn, session, plan, stamp)
            case SnipPlan():
                return _commit_snip(conn, session, plan, stamp)


def _commit_boundary(conn: sqlite3.Connection, session: Session, plan: CompactionPlan, stamp: Stamp) -> Committed:
    uuids = [MessageUuid(safe_id(uuid)) for uuid in stamp.uuids]
    if len(uuids) <= len(plan.service):
        raise ValueError(f"{len(plan.service) + 1} uuids are needed, {len(uuids)} were given")
    if not _stands(conn, session, plan):
        return BASE_CHANGED
    before = session.totals
    marker = _marker(session, uuids[0], MarkerKind.COMPACT, plan.base.last_seq)
    marker = replace(
        marker,
        service=tuple(uuids[1 : 1 + len(plan.service)]),
        preserved=tuple(MessageUuid(safe_id(entry.uuid)) for entry in plan.preserved),
    )
    row_id = write_service(conn, session, marker, plan.service, stamp.now_ms)
    insert_members(conn, session, marker)
    seqs = clearing.seqs_of(conn, session.id, plan.cleared)
    written = clearing.insert(conn, session.id, marker.seq, plan.cleared, seqs)
    enter(conn, session.id, marker.seq)
    if plan.memory is not None:
        update = plan.memory
        insert_memory(conn, session, update.text, update.mark_uuid, update.writer, stamp.now_ms)
    set_head(session, marker.seq, marker)
    session.totals = recount(conn, session)
    session.compactions += 1
    session.auto_failures = 0
    session.last_compaction_ms = stamp.now_ms
    marker = replace(marker, cleared=written.cleared, metadata=bodies.boundary_metadata(session, plan, marker, stamp))
    return _finish(conn, session, marker, before, stamp, row_id)


def _stands(conn: sqlite3.Connection, session: Session, plan: CompactionPlan) -> bool:
    """Is the live context still what the plan was made for, mere appends aside?"""
    if session.marker_seq != plan.base.marker_seq or _markers_since(conn, session, plan.base):
        return False
    appended = total(conn, session.id, appended_rows(conn, session, plan.base.last_seq))
    if (session.totals.hash - appended.hash) % HASH_MODULUS != int(plan.base.live_hash, 16):
        return False
    live = live_among(conn, session, [entry.seq for entry in plan.preserved])
    return all(live.get(entry.seq) == safe_id(entry.uuid) for entry in plan.preserved)


def _markers_since(conn: sqlite3.Connection, session: Session, base: Base, *, but_micro: bool = False) -> bool:
    row = conn.execute(
        "SELECT 1 FROM marker WHERE session = ? AND seq > ? AND (kind <> ? OR NOT ?) LIMIT 1",
        (session.id, base.last_seq, MarkerKind.MICRO.value, but_micro),
    ).fetchone()
    return row is not None


def _commit_clearing(conn: sqlite3.Connection, session: Session, plan: ClearingPlan, stamp: Stamp) -> Committed:
    if _markers_since(conn, session, plan.base, but_micro=True):
        return BASE_CHANGED
    before = session.totals
    marker = _marker(session, MessageUuid(safe_id(stamp.uuids[0])), MarkerKind.MICRO, session.last_seq)
    live = clearing.live_records(conn, session, plan.cleared)
    seqs = {uuid: seq for uuid, (seq, _) in live.items()}
    written = clearing.insert(conn, session.id, marker.seq, plan.cleared, seqs)
    if not written.places:
        return Committed(None, "nothing_to_clear")
    enter(conn, session.id, marker.seq)
    live_hash = (before.hash + _change(written, dict(live.values()))) % HASH_MODULUS
    session.totals = replace(before, weight=before.weight - written.freed, hash=live_hash)
    session.marker_seq = marker.seq
    marker = replace(marker, cleared=written.cleared, metadata=bodies.micro_metadata(session, plan, written.cleared))
    _write(conn, session, marker, before, stamp, reserve_ids(conn, 1))
    # It may name thousands of places: they are not read back.
    marker = replace(marker, at_ms=stamp.now_ms)
    return Committed(marker, live_hash=session.live_hash.hex(), live_weight=session.totals.weight)


def _change(written: Written, body_hashes: Mapping[int, bytes]) -> int:
    """What the live hash gains by the clearings of a marker."""
    return sum(
        state_hash(seq, body_hashes[seq], places) - state_hash(seq, body_hashes[seq], written.before.get(seq, ()))
        for seq, places in written.after().items()
    )


def _commit_snip(conn: sqlite3.Connection, session: Session, plan: SnipPlan, stamp: Stamp) -> Committed:
    """What has left the live context since is skipped; service records never leave."""
    if session.marker_seq != plan.base.marker_seq or _markers_since(conn, session, plan.base):
        return BASE_CHANGED
    before = session.totals
    named = {seq_of(conn, session.id, safe_id(uuid)) for uuid in plan.snipped}
    live = live_among(conn, session, [seq for seq in named if seq is not None])
    service = {row.seq for row in service_rows(conn, session)}
    going = sorted(live.keys() - service)
    if not going:
        return Committed(None, "nothing_to_snip")
    marker = _marker(session, MessageUuid(safe_id(stamp.uuids[0])), MarkerKind.SNIP, session.last_seq)
    marker = replace(marker, snipped=tuple(MessageUuid(live[seq]) for seq in going))
    session.totals = before - _shares(conn, session, going)
    session.marker_seq = marker.seq
    insert_members(conn, session, marker)
    enter(conn, session.id, marker.seq)
    marker = replace(marker, metadata=bodies.snip_metadata(session, marker, before.weight))
    return _finish(conn, session, marker, before, stamp, reserve_ids(conn, 1))


def _shares(conn: sqlite3.Connection, session: Session, seqs: Iterable[int]) -> Totals:
    return total(conn, session.id, (narrow_row(conn, session.id, seq) for seq in seqs))


def undo(conn: sqlite3.Connection, key: SessionKey, stamp: Stamp) -> Committed:
    """Take back the last compact boundary and the clearings and snips that came with or after it.

    Without a boundary the last clearing or snip. Nothing is removed: an `undo` marker makes the older
    state current; with nothing appended since, the live hash is the former one. Answers
    `nothing_to_undo` where no marker is in effect. Raises CallerError (`no_such_session`).
    """
    with writing(conn):
        session = existing(conn, key)
        by_seq = StoredMarkers(conn, session.id)
        current = by_seq.get(session.marker_seq)
        target = last_boundary_from(conn, session.id, session.marker_seq) or current
        if current is None or target is None:
            return Committed(None, "nothing_to_undo")
        now = session.totals
        undone = [*takewhile(lambda marker: marker.seq != target.seq, chain(current, by_seq)), target]
        for marker in undone:
            leave(conn, session.id, marker.seq)
        written = replace(
            _marker(session, MessageUuid(safe_id(stamp.uuids[0])), MarkerKind.UNDO, session.last_seq),
            restores_seq=target.parent_seq,
        )
        restored = by_seq.get(target.parent_seq) if target.parent_seq is not None else None
        set_head(session, restored.seq if restored else 0, last_boundary_from(conn, session.id, target.parent_seq))
        session.totals = _restored(conn, session, target)
        written = replace(written, metadata=bodies.undo_metadata(session, target, restored))
        return _finish(conn, session, written, now, stamp, reserve_ids(conn, 1))


def _restored(conn: sqlite3.Connection, session: Session, target: Marker) -> Totals:
    """The totals before the marker, and what was appended since; counted anew where older records moved meanwhile."""
    before = before_marker(conn, session, target.seq)
    if before is None:
        return recount(conn, session)
    return before + total(conn, session.id, live_rows(conn, session, after=target.seq))


def _marker(session: Session, uuid: MessageUuid, kind: MarkerKind, base_seq: int) -> Marker:
    return Marker(uuid, session.last_seq + 1, kind, session.marker_seq or None, base_seq)


def _finish(
    conn: sqlite3.Connection, session: Session, marker: Marker, before: Totals, stamp: Stamp, row_id: int
) -> Committed:
    """Write the marker, and read back what stands there now."""
    _write(conn, session, marker, before, stamp, row_id)
    return Committed(
        marker_at(conn, session.id, marker.seq), live_hash=session.live_hash.hex(), live_weight=session.totals.weight
    )


def _write(
    conn: sqlite3.Connection, session: Session, marker: Marker, before: Totals, stamp: Stamp, row_id: int
) -> None:
    """Write the marker's row and record, and the session's row."""
    insert_marker(conn, session, marker, before)
    write_marker(conn, session, marker, row_id, stamp.now_ms)
    session.updated_ms = stamp.now_ms
    derived.touch(session, (), stamp.now_ms)
    derived.save(conn, session)
