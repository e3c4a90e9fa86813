"""Appending a batch of records: one transaction, whatever it brings."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from mcp_compact.adapters.sqlite.connection import writing
from mcp_compact.adapters.sqlite.operations import anchor, derived, facts, native, state, writing_rows
from mcp_compact.adapters.sqlite.operations.branch import Switch, settle, switch
from mcp_compact.adapters.sqlite.operations.chain import rechain
from mcp_compact.adapters.sqlite.operations.encoding import json_list, safe_id
from mcp_compact.adapters.sqlite.operations.live import recount, total
from mcp_compact.adapters.sqlite.operations.placing import Placed, Placing, place, placed_of
from mcp_compact.adapters.sqlite.operations.rows import (
    CHAIN,
    MESSAGE,
    NARROW,
    Narrow,
    parsed,
    whole_record,
)
from mcp_compact.adapters.sqlite.operations.sessions import row_of
from mcp_compact.adapters.sqlite.operations.state import Session, Totals
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import HASH_MODULUS, state_hash
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import Appended, Batch, SessionFacts, SessionKey, SourcePosition

_HELD = "SELECT uuid, seq, body_hash FROM record WHERE session = ? AND uuid"


@dataclass(slots=True)
class _Sorted:
    """A batch's records: which are new, which are known, which contradict a stored one."""

    new: list[Placed] = field(default_factory=list)
    known: int = 0
    conflicts: list[Placed] = field(default_factory=list)
    counted: list[Placed] = field(default_factory=list)
    """Stored answers that are told again with their usage: clients write it behind the answer."""


def append(conn: sqlite3.Connection, key: SessionKey, batch: Batch, now_ms: int) -> Appended:
    """Store what is new of the batch, in order, and what it says of the session.

    Raises CallerError (`no_such_session`) where the session is missing and the batch does not create it.
    """
    # Whatever needs no table is done before the lock is taken.
    records = [placed_of(item) for item in batch.records]
    with writing(conn):
        session = state.load(conn, key)
        if session is None:
            if not batch.create:
                raise CallerError(
                    "no_such_session", f"There is no session {key.session_id!r}.", "Append or import first."
                )
            session = state.create(conn, key, now_ms)
            session.active_ms = 0
        facts.take(session, batch.facts, is_import=batch.is_import)
        work = _sort(conn, session, records)
        placing = place(conn, session, work.new) if work.new else Placing([])
        if work.new:
            _store(conn, session, placing)
        if batch.boundaries or (session.awaited and work.new):
            native.take(conn, session, batch.boundaries, placing.placed, now_ms)
        anchor.measure(conn, session, placing.placed)
        if work.counted:
            anchor.tell(conn, session, work.counted)
        if work.new or batch.facts != SessionFacts():
            session.updated_ms = now_ms
        if work.new or not session.active_ms:
            derived.touch(session, (item.prepared.record.at_ms for item in work.new), now_ms)
        derived.save(conn, session)
        if work.conflicts:
            _store_conflicts(conn, session, work.conflicts, now_ms)
        if batch.position is not None:
            _store_position(conn, session, batch.position)
        return Appended(
            uuids=cast("tuple[MessageUuid, ...]", tuple([item.uuid for item in records])),
            new=len(work.new),
            known=work.known,
            conflicts=tuple(MessageUuid(item.uuid) for item in work.conflicts),
            missing_parents=tuple(map(MessageUuid, placing.missing_parents)),
            last_seq=session.last_seq,
            row=row_of(conn, session),
        )


def _sort(conn: sqlite3.Connection, session: Session, batch: Sequence[Placed]) -> _Sorted:
    work = _Sorted()
    stored = _stored(conn, session, batch) if session.last_seq and batch else {}
    next_seq = session.last_seq + 1
    if not stored and len({item.uuid for item in batch}) == len(batch):
        # Nearly always: all of it is new.
        work.new = list(batch)
        for seq, item in enumerate(batch, next_seq):
            item.seq = seq
        return work
    fresh: dict[str, Placed] = {}
    for item in batch:
        if item.uuid not in stored and item.uuid not in fresh:
            fresh[item.uuid] = item
            item.seq = next_seq
            next_seq += 1
        elif _is_same(conn, session, stored.get(item.uuid), fresh.get(item.uuid), item):
            work.known += 1
            if item.context_tokens:
                _count_late(work, stored, fresh, item)
        else:
            work.conflicts.append(item)
    work.new = list(fresh.values())
    return work


def _stored(conn: sqlite3.Connection, session: Session, batch: Sequence[Placed]) -> dict[str, tuple[int, bytes]]:
    """Those of the batch's uuids that the session holds: seq and hash of the body."""
    # A single one, as loops send them, needs no list.
    if len(batch) == 1:
        rows = conn.execute(f"{_HELD} = ?", (session.id, batch[0].uuid))
    else:
        uuids = json_list([item.uuid for item in batch])
        rows = conn.execute(f"{_HELD} IN (SELECT value FROM json_each(?))", (session.id, uuids))  # noqa: S608 - the statement above
    return {uuid: (seq, digest) for uuid, seq, digest in rows}


def _count_late(work: _Sorted, stored: dict[str, tuple[int, bytes]], fresh: dict[str, Placed], item: Placed) -> None:
    """Give the answer that an earlier line told the usage that a later one tells of it."""
    if item.uuid in stored:
        item.seq = stored[item.uuid][0]
        work.counted.append(item)
    elif not fresh[item.uuid].context_tokens:
        fresh[item.uuid].context_tokens = item.context_tokens


def _is_same(
    conn: sqlite3.Connection, session: Session, stored: tuple[int, bytes] | None, fresh: Placed | None, item: Placed
) -> bool:
    """Does the record say what the one with its uuid says? Bytes first, then what the model was sent."""
    known_digest = stored[1] if stored else fresh.body_hash if fresh else b""
    if known_digest == item.body_hash:
        return True
    known = whole_record(conn, session.id, stored[0]) if stored else fresh.prepared.record if fresh else None
    record = item.prepared.record
    if known is None or known.type != record.type or (known.message is None) != (record.message is None):
        return False
    if known.message is not None and record.message is not None:
        return (known.message.role, known.message.content) == (record.message.role, record.message.content)
    fields = parsed(known.body)
    return bool(fields) and fields == parsed(record.body)


def _store(conn: sqlite3.Connection, session: Session, placing: Placing) -> None:
    """Write the new rows, move the head, and bring branch and live totals up to date."""
    placed = placing.placed
    old_head = session.head_seq
    is_next = placing.root_parent == old_head
    change = Switch() if is_next else switch(conn, session.id, old_head, placing.root_parent)
    writing_rows.write(conn, session, placed)
    session.head_seq, session.head_uuid = placed[-1].seq, placed[-1].uuid
    if placing.extra or (not is_next and change != Switch()):
        _settle(conn, session, placing, change, placed[0].seq)
    _add_shares(session, placed)


def _settle(conn: sqlite3.Connection, session: Session, placing: Placing, change: Switch, first_new: int) -> None:
    """Older records may have left the branch, or come back to it."""
    off = [item.seq for item in placing.placed if item.active != CHAIN]
    moved = settle(conn, session.id, change, [*placing.extra, *off])
    by_seq = {item.seq: item for item in placing.placed}
    crossed: list[tuple[int, bool]] = []
    for seq, was, now in moved:
        if seq >= first_new:
            by_seq[seq].active = now
        elif bool(was) != bool(now):
            crossed.append((seq, bool(now)))
    if not crossed:
        return
    session.epoch += 1
    if session.natives and rechain(conn, session):
        new = _shares(placing.placed)
        session.totals = recount(conn, session) - new
        return
    entered = _shares_since(conn, session, [seq for seq, came in crossed if came])
    left = _shares_since(conn, session, [seq for seq, came in crossed if not came])
    session.totals = session.totals + entered - left


def _shares_since(conn: sqlite3.Connection, session: Session, crossed: Sequence[int]) -> Totals:
    """What records that crossed the branch's edge add to the live totals; nothing where a boundary decides."""
    since = [seq for seq in crossed if seq > session.base_seq]
    if not since:
        return Totals()
    rows = conn.execute(
        f"SELECT {NARROW} FROM record r WHERE r.session = ? AND r.seq IN (SELECT value FROM json_each(?)) "  # noqa: S608 - our own columns
        "AND r.kind = 1 AND r.snipped_by = 0 AND NOT EXISTS (SELECT 1 FROM member m WHERE m.session = r.session "
        "AND m.marker = ? AND m.role = 'preserved' AND m.seq = r.seq)",
        (session.id, json_list(since), session.boundary_seq),
    ).fetchall()
    return total(conn, session.id, map(Narrow._make, rows))


def _shares(placed: Sequence[Placed]) -> Totals:
    """What new records add to the live totals."""
    units, answers, media, messages, count, estimated, shares = _sums(placed)
    return Totals(Weight(units, answers, media, messages), count, estimated, shares)


def _add_shares(session: Session, placed: Sequence[Placed]) -> None:
    """The same, added to the row itself: for one message, values of totals would cost more than the sums."""
    units, answers, media, messages, count, estimated, shares = _sums(placed)
    session.live_units += units
    session.live_answers += answers
    session.live_media += media
    session.live_messages += messages
    session.live_count += count
    session.live_estimated += estimated
    live_hash = (int.from_bytes(session.live_hash, "big") + shares) % HASH_MODULUS
    session.live_hash = live_hash.to_bytes(state.HASH_BYTES, "big")


def _sums(placed: Sequence[Placed]) -> tuple[int, int, int, int, int, int, int]:
    """Units, answers, media, messages, records, those that are estimated, and the sum of their state hashes."""
    units = answers = media = messages = count = estimated = shares = 0
    for item in placed:
        if item.active and item.kind == MESSAGE:
            weight, exact = item.prepared.weight, item.prepared.exact_units
            units += weight.units if exact is None else exact
            answers += weight.results
            media += weight.media
            messages += weight.messages
            count += 1
            estimated += exact is None
            shares += state_hash(item.seq, item.body_hash)
    return units, answers, media, messages, count, estimated, shares


def _store_conflicts(conn: sqlite3.Connection, session: Session, conflicts: Sequence[Placed], now_ms: int) -> None:
    conn.executemany(
        "INSERT OR IGNORE INTO conflict (session, uuid, body_hash, data, at_ms) VALUES (?, ?, ?, ?, ?)",
        [(session.id, item.uuid, item.body_hash, item.prepared.record.body, now_ms) for item in conflicts],
    )


def _store_position(conn: sqlite3.Connection, session: Session, position: SourcePosition) -> None:
    conn.execute(
        "INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session.namespace,
            safe_id(position.source),
            session.id,
            position.offset,
            position.line,
            position.ordinal,
            well_formed(position.head_hash),
            well_formed(position.state),
        ),
    )
