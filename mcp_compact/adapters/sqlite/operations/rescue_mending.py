"""Making sessions that work out of the rows that were rescued: what is lost leaves a note in its place.

A record that is lost keeps its number, so that boundaries, parents and clearings still mean what they did. Where what
boundaries are made of is lost, the session goes on uncompacted: every message it has is live again.
"""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.operations import derived
from mcp_compact.adapters.sqlite.operations.chain import effective_before, markers_of, set_head
from mcp_compact.adapters.sqlite.operations.live import recount
from mcp_compact.adapters.sqlite.operations.rescue_parts import PARTS, make_parts
from mcp_compact.adapters.sqlite.operations.rescue_records import (
    MOST_NOTES,
    OF_RECORD,
    Fate,
    drop_strangers,
    from_bytes,
    gaps,
    lost_bodies,
)
from mcp_compact.adapters.sqlite.operations.rescue_rows import Filled
from mcp_compact.adapters.sqlite.operations.rows import MESSAGE, OTHER, parsed
from mcp_compact.adapters.sqlite.operations.state import COLUMNS, Session
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.markers import Marker, MarkerKind, last_boundary

HOMELESS = "rescued-messages"
# A body has its record's number, unless a fork shares it: what points to no body is damaged.
_OWN_BODY = (
    "UPDATE record SET body_id = id WHERE body_id <> id AND EXISTS (SELECT 1 FROM body b WHERE b.id = record.id) "
    "AND NOT EXISTS (SELECT 1 FROM body b WHERE b.id = record.body_id)"
)
_STRUCTURE = ("marker", "member", "cleared")


def mend(conn: sqlite3.Connection, filled: Filled) -> list[Fate]:
    """Bring every session in order; of each what became of it. Inside a transaction."""
    newest = conn.execute(
        "SELECT max((SELECT coalesce(max(id), 0) FROM record), (SELECT coalesce(max(id), 0) FROM body))"
    )
    reach = newest.fetchone()[0] + MOST_NOTES
    # An index that is damaged may name numbers that never were.
    conn.execute("DELETE FROM record_seq_known WHERE id > ? OR id IN (SELECT id FROM record)", (reach,))
    conn.execute("UPDATE archive SET last_record = ?", (reach,))
    conn.execute(_OWN_BODY)
    if "session" not in filled.damaged:
        # All sessions are known: what names another one is damaged itself.
        conn.execute("DELETE FROM record WHERE session NOT IN (SELECT id FROM session)")
    numbers = [row[0] for row in conn.execute("SELECT id FROM session UNION SELECT session FROM record ORDER BY 1")]
    fates = [_mended_somehow(conn, number, filled) for number in numbers]
    for table in (*OF_RECORD, *_STRUCTURE, "ledger", "memory", "pin", "conflict"):
        conn.execute(f"DELETE FROM {table} WHERE session NOT IN (SELECT id FROM session)")  # noqa: S608 - our own names
    if "record" in filled.damaged:
        fates += _homeless(conn, max(numbers, default=0) + 1)
    conn.execute("DELETE FROM body WHERE id NOT IN (SELECT body_id FROM record)")
    conn.execute("UPDATE archive SET indexed_record = 0, last_record = (SELECT coalesce(max(id), 0) FROM record)")
    return fates


def _homeless(conn: sqlite3.Connection, number: int) -> list[Fate]:
    """Messages of which nothing says where they belong: in a session of their own, in the order they were stored."""
    found = conn.execute("SELECT id FROM body WHERE id NOT IN (SELECT body_id FROM record) ORDER BY id").fetchall()
    if not found:
        return []
    conn.execute(
        "INSERT INTO session (id, namespace, session_id, title, created_ms, updated_ms) "
        "VALUES (?, 'local', ?, ?, 0, 0)",
        (number, f"{HOMELESS}-{number}", "messages of which the session is not known"),
    )
    session, _ = _session(conn, number)
    fate = Fate(session.session_id)
    for (body,) in found:
        if from_bytes(conn, session, session.last_seq + 1, body):
            session.last_seq += 1
    fate.unproven = session.last_seq
    make_parts(conn, number)
    _count(conn, session)
    _find_head(conn, session)
    session.totals = recount(conn, session)
    derived.save(conn, session)
    return [fate]


def _mended_somehow(conn: sqlite3.Connection, number: int, filled: Filled) -> Fate:
    """Rows whose damage shows in no hash may hold anything: where they do not fit, only what is needed is taken."""
    conn.execute("SAVEPOINT mending")
    try:
        return _mended(conn, number, filled)
    except (sqlite3.IntegrityError, ValueError, TypeError, LookupError, AssertionError):
        conn.execute("ROLLBACK TO mending")
        return _mended(conn, number, filled, is_cautious=True)
    finally:
        if conn.in_transaction:
            conn.execute("RELEASE mending")


def _mended(conn: sqlite3.Connection, number: int, filled: Filled, *, is_cautious: bool = False) -> Fate:
    session, is_made = _session(conn, number)
    fate = Fate(session.session_id)
    if is_made:
        fate.notes.append("its own row was lost: title and counters are made again from its messages")
    drop_strangers(conn, session)
    hold = not is_cautious and _markers_hold(conn, session, filled, is_made=is_made)
    lost_bodies(conn, number, fate)
    gaps(conn, session, fate)
    for table in (*OF_RECORD, "marker"):
        conn.execute(
            f"DELETE FROM {table} WHERE session = ? AND seq NOT IN (SELECT seq FROM record WHERE session = ?)",  # noqa: S608 - our own names
            (number, number),
        )
    conn.execute(
        "DELETE FROM member WHERE session = ? AND marker NOT IN (SELECT seq FROM marker WHERE session = ?)",
        (number, number),
    )
    if not hold:
        _uncompact(conn, session)
        fate.notes.append("what its compactions did was lost: every message is live again")
    if not is_cautious and (fate.unproven or filled.damaged & set(PARTS)):
        make_parts(conn, number)
    _count(conn, session)
    if is_made:
        _find_head(conn, session)
    before = session.totals
    session.totals = recount(conn, session)
    if before != session.totals:
        # What the provider counted was of what is lost too.
        session.anchor_seq = 0
    if before != session.totals and not fate.lost and not fate.unproven and hold:
        fate.notes.append("what of it is live is not quite what it was")
    derived.save(conn, session)
    fate.records = session.last_seq - len(fate.lost) - fate.unproven
    return fate


def _session(conn: sqlite3.Connection, number: int) -> tuple[Session, bool]:
    """The session's row, made where it is lost."""
    ask = f"SELECT {COLUMNS} FROM session WHERE id = ?"  # noqa: S608 - our own columns
    row = conn.execute(ask, (number,)).fetchone()
    if row is not None:
        return Session(*row), False
    first = conn.execute(
        "SELECT b.data, r.at_ms FROM record r JOIN body b ON b.id = r.body_id WHERE r.session = ? ORDER BY r.seq",
        (number,),
    ).fetchone()
    raw = parsed(first[0]) if first else {}
    said, at_ms = raw.get("sessionId"), (first[1] if first else None) or 0
    known = conn.execute("SELECT session, value FROM session_known WHERE id = ?", (number,)).fetchone()
    space, name = known or ("local", well_formed(said) if isinstance(said, str) and said else f"rescued-{number}")
    if conn.execute("SELECT 1 FROM session WHERE namespace = ? AND session_id = ?", (space, name)).fetchone():
        name = f"{name}-rescued-{number}"
    parent, _, agent = name.rpartition("/")
    conn.execute(
        "INSERT INTO session (id, namespace, session_id, parent_session_id, agent_id, cwd, created_ms, updated_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(number, space, name, parent or None, agent if parent else None),
            *(well_formed(str(raw.get("cwd") or "")), at_ms, at_ms),
        ),
    )
    return Session(*conn.execute(ask, (number,)).fetchone()), True


# ------------------------------------------------------------------ boundaries, totals


def _markers_hold(conn: sqlite3.Connection, session: Session, filled: Filled, *, is_made: bool) -> bool:
    """Is everything there that the session's boundaries are made of? Where its row is lost, they are found anew."""
    is_intact = not filled.damaged & set(_STRUCTURE)
    if is_made:
        if is_intact:
            chain = effective_before(conn, session.id)
            set_head(session, chain[0].seq if chain else 0, last_boundary(chain))
            session.natives = _number(conn, "marker WHERE native = 1 AND session = ?", session)
            session.awaited = _number(conn, "member WHERE seq IS NULL AND session = ?", session)
        return is_intact
    if is_intact:
        return True
    if not session.marker_seq and not session.natives:
        return not _number(conn, "cleared WHERE session = ?", session)
    try:
        return _is_complete(markers_of(conn, session.id), session)
    except (ValueError, TypeError):
        return False


def _is_complete(markers: list[Marker], session: Session) -> bool:
    """Are all markers of the chain there, each boundary with the records that it says it has?"""
    by_seq = {marker.seq: marker for marker in markers}
    seq: int | None = session.marker_seq
    while seq:
        marker = by_seq.pop(seq, None)
        if marker is None:
            return False
        segment = marker.metadata.get("preservedSegment")
        kept = segment.get("preservedMessageUuids") if isinstance(segment, dict) else []
        is_own = marker.kind is MarkerKind.COMPACT and marker.metadata.get("strategy") != "native"
        if is_own and (not marker.service or list(marker.preserved) != kept):
            return False
        seq = marker.parent_seq
    return True


def _number(conn: sqlite3.Connection, of: str, session: Session) -> int:
    return int(conn.execute(f"SELECT count(*) FROM {of}", (session.id,)).fetchone()[0])  # noqa: S608 - our own queries


def _uncompact(conn: sqlite3.Connection, session: Session) -> None:
    for table in _STRUCTURE:
        conn.execute(f"DELETE FROM {table} WHERE session = ?", (session.id,))  # noqa: S608 - our own names
    for table in ("result", "media"):
        conn.execute(f"UPDATE {table} SET cleared_by = NULL WHERE session = ?", (session.id,))  # noqa: S608 - our own names
    conn.execute(
        "UPDATE record SET cleared = 0, snipped_by = 0, kind = CASE WHEN kind > ? THEN ? ELSE kind END "
        "WHERE session = ?",
        (MESSAGE, OTHER, session.id),
    )
    session.marker_seq = session.boundary_seq = session.base_seq = session.natives = session.awaited = 0
    session.epoch += 1


def _count(conn: sqlite3.Connection, session: Session) -> None:
    """The counters that are sums of rows."""
    session.message_count, session.body_bytes = conn.execute(
        "SELECT count(*) FILTER (WHERE r.kind = 1), coalesce(sum(length(b.data)), 0) FROM record r "
        "JOIN body b ON b.id = r.body_id WHERE r.session = ?",
        (session.id,),
    ).fetchone()
    memory = conn.execute(
        "SELECT version, mark_seq FROM memory WHERE session = ? ORDER BY version DESC LIMIT 1", (session.id,)
    ).fetchone()
    session.memory_version, session.memory_mark_seq = memory or (0, None)
    conn.execute("UPDATE record SET parent_seq = seq - 1 WHERE session = ? AND parent_seq >= seq", (session.id,))
    there = conn.execute(
        "SELECT 1 FROM record WHERE session = ? AND seq = ? AND kind = 1", (session.id, session.anchor_seq)
    ).fetchone()
    if not there:
        session.anchor_seq = 0


def _find_head(conn: sqlite3.Connection, session: Session) -> None:
    row = conn.execute(
        "SELECT seq, uuid FROM record WHERE session = ? AND kind IN (?, ?) AND active > 0 ORDER BY seq DESC LIMIT 1",
        (session.id, OTHER, MESSAGE),
    ).fetchone()
    session.head_seq, session.head_uuid = row or (0, "")
