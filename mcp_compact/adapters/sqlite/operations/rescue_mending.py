"""Making sessions that work out of the rows that were rescued: what is lost leaves a note in its place.

A record that is lost keeps its number, so that boundaries, parents and clearings still mean what they did. Where what
boundaries are made of is lost, the session goes on uncompacted: every message it has is live again.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field, replace

from mcp_compact.adapters.sqlite.operations.chain import effective_before, markers_of, set_head
from mcp_compact.adapters.sqlite.operations.encoding import ids_text, safe_id
from mcp_compact.adapters.sqlite.operations.live import recount
from mcp_compact.adapters.sqlite.operations.rescue_rows import Filled
from mcp_compact.adapters.sqlite.operations.rows import CHAIN, MARKER, MESSAGE, OTHER, inner_message, parsed
from mcp_compact.adapters.sqlite.operations.state import COLUMNS, Session, save
from mcp_compact.messages.codec import body_hash, canonical, decode_message, parse_time, well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Marker, MarkerKind, last_boundary
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import NOTHING, weigh

LOST = "lost"
"""The type of the note in a lost record's place."""
HOMELESS = "rescued-messages"
MOST_NOTES = 10_000
"""Where more are missing at a session's end, it ends before them; or the number that says so is damaged itself."""
_GAPS = (
    "SELECT before + 1, seq - 1 FROM (SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before "
    "FROM record WHERE session = ?) WHERE seq > before + 1"
)
_OF_RECORD = ("call", "result", "media", "cleared")
_STRUCTURE = ("marker", "member", "cleared")


@dataclass(slots=True)
class Fate:
    """What became of a session."""

    session_id: str
    records: int = 0
    """Those that are as they were."""
    lost: list[tuple[int, str]] = field(default_factory=list)
    """Number and uuid (empty where it is lost too) of records that are gone."""
    unproven: int = 0
    """Records whose own row was lost: made again from their bytes, which nothing proves."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return not (self.lost or self.unproven or self.notes)


def mend(conn: sqlite3.Connection, filled: Filled) -> list[Fate]:
    """Bring every session in order; of each what became of it. Inside a transaction."""
    newest = conn.execute(
        "SELECT max((SELECT coalesce(max(id), 0) FROM record), (SELECT coalesce(max(id), 0) FROM body))"
    )
    reach = newest.fetchone()[0] + MOST_NOTES
    # An index that is damaged may name numbers that never were.
    conn.execute("DELETE FROM record_seq_known WHERE id > ? OR id IN (SELECT id FROM record)", (reach,))
    conn.execute("UPDATE archive SET last_record = ?", (reach,))
    numbers = [row[0] for row in conn.execute("SELECT id FROM session UNION SELECT session FROM record ORDER BY 1")]
    fates = [_mended(conn, number, filled) for number in numbers]
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
        if _from_bytes(conn, session, session.last_seq + 1, body):
            session.last_seq += 1
    fate.unproven = session.last_seq
    _count(conn, session)
    _find_head(conn, session)
    session.totals = recount(conn, session)
    save(conn, session)
    return [fate]


def _mended(conn: sqlite3.Connection, number: int, filled: Filled) -> Fate:
    session, is_made = _session(conn, number)
    fate = Fate(session.session_id)
    if is_made:
        fate.notes.append("its own row was lost: title and counters are made again from its messages")
    _drop_strangers(conn, session)
    hold = _markers_hold(conn, session, filled, is_made=is_made)
    _lost_bodies(conn, number, fate)
    _gaps(conn, session, fate)
    for table in (*_OF_RECORD, "marker"):
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
    _count(conn, session)
    if is_made:
        _find_head(conn, session)
    before = session.totals
    session.totals = recount(conn, session)
    if before != session.totals and not fate.lost and not fate.unproven and hold:
        fate.notes.append("what of it is live is not quite what it was")
    save(conn, session)
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


# ------------------------------------------------------------------ records


def _drop_strangers(conn: sqlite3.Connection, session: Session) -> None:
    """Rows whose place cannot be: damage of their own."""
    count = _number(conn, "record WHERE session = ?", session)
    conn.execute(
        "DELETE FROM record WHERE session = ? AND (seq < 1 OR seq > ?)",
        (session.id, max(session.last_seq, count) + MOST_NOTES),
    )
    for table in (*_OF_RECORD, "marker"):
        conn.execute(
            f"DELETE FROM {table} WHERE session = ? AND seq > ?",  # noqa: S608 - our own names
            (session.id, max(session.last_seq, count) + MOST_NOTES),
        )


def _lost_bodies(conn: sqlite3.Connection, number: int, fate: Fate) -> None:
    """A note in the place of each record whose bytes are gone or are others."""
    rows = conn.execute(
        "SELECT r.id, r.seq, r.uuid, r.body_hash, b.data FROM record r LEFT JOIN body b ON b.id = r.body_id "
        "WHERE r.session = ? ORDER BY r.seq",
        (number,),
    )
    lost = [row[:3] for row in rows if row[4] is None or body_hash(row[4]) != row[3]]
    for record, seq, uuid in lost:
        data = _note(uuid, "its bytes were lost")
        conn.execute(
            "UPDATE record SET kind = CASE kind WHEN ? THEN kind ELSE ? END, type = ?, role = NULL, message_id = NULL, "
            "units = 0, exact_units = NULL, answers = 0, media = 0, messages = 0, text_holding = 0, has_thinking = 0, "
            "cleared = 0, calls = NULL, results = NULL, content_hash = NULL, body_hash = ?, body_id = id WHERE id = ?",
            (MARKER, OTHER, LOST, body_hash(data), record),
        )
        conn.execute("INSERT OR REPLACE INTO body (id, data) VALUES (?, ?)", (record, data))
        _forget_parts(conn, number, seq)
        fate.lost.append((seq, uuid))


def _forget_parts(conn: sqlite3.Connection, number: int, seq: int) -> None:
    for table in _OF_RECORD:
        conn.execute(f"DELETE FROM {table} WHERE session = ? AND seq = ?", (number, seq))  # noqa: S608 - our own names
    conn.execute("DELETE FROM member WHERE session = ? AND seq = ?", (number, seq))


def _note(uuid: str, why: str) -> bytes:
    return canonical({"type": LOST, "uuid": uuid, "content": f"A record stood here; {why}."})


def _gaps(conn: sqlite3.Connection, session: Session, fate: Fate) -> None:
    """Records whose own rows are lost: from their bytes where these and an index are there, else a note."""
    newest = conn.execute("SELECT coalesce(max(seq), 0) FROM record WHERE session = ?", (session.id,)).fetchone()[0]
    known = conn.execute("SELECT coalesce(max(value), 0) FROM record_seq_known WHERE session = ? AND value < ?",
                         (session.id, newest + MOST_NOTES))  # fmt: skip
    last = max(newest, known.fetchone()[0])
    if session.last_seq > last + MOST_NOTES:
        fate.notes.append(f"all records after {last:,} are lost, up to {session.last_seq:,}")
    last = last if session.last_seq > last + MOST_NOTES else max(last, session.last_seq)
    gaps = [*conn.execute(_GAPS, (session.id,)).fetchall(), (newest + 1, last)]
    for seq in (seq for first, end in gaps for seq in range(first, end + 1)):
        number = _place(conn, session.id, seq)
        if _from_bytes(conn, session, seq, number):
            fate.unproven += 1
            continue
        uuid = _known_uuid(conn, number, f"{LOST}-{session.id}-{seq}")
        _add(conn, session, seq, Record(uuid=uuid, type=LOST, body=_note(uuid, "nothing of it was left")), number)
        fate.lost.append((seq, uuid))
    session.last_seq = last


def _place(conn: sqlite3.Connection, session: int, seq: int) -> int:
    """The number that a record at this place had, 0 where no index tells."""
    row = conn.execute("SELECT id FROM record_seq_known WHERE session = ? AND value = ?", (session, seq)).fetchone()
    return int(row[0]) if row else 0


def _known_uuid(conn: sqlite3.Connection, number: int, otherwise: str) -> MessageUuid:
    row = conn.execute("SELECT value FROM record_uuid_known WHERE id = ?", (number,)).fetchone()
    return MessageUuid(str(row[0]) if row else otherwise)


def _from_bytes(conn: sqlite3.Connection, session: Session, seq: int, number: int) -> bool:
    """Make a record again whose bytes are there, but not its row; False where they are not, or tell nothing."""
    row = conn.execute("SELECT data, message FROM body WHERE id = ?", (number,)).fetchone() if number else None
    if row is None or not parsed(row[0]) or (row[1] is not None and not parsed(row[1])):
        return False
    raw = parsed(row[0])
    message = inner_message(parsed(row[1]) if row[1] is not None else raw)
    role = message.get("role") if "content" in message else None
    said, message_id = raw.get("uuid"), message.get("id")
    uuid = _known_uuid(conn, number, said if isinstance(said, str) and said else f"{LOST}-{session.id}-{seq}")
    made = Record(
        uuid=MessageUuid(safe_id(uuid)),
        type=well_formed(str(raw.get("type") if isinstance(raw.get("type"), str) else role or "other")),
        body=row[0],
        raw=raw,
        message=decode_message(message, role) if isinstance(role, str) else None,
        at_ms=parse_time(raw.get("timestamp")),
    )
    _add(conn, session, seq, made, number, safe_id(message_id) if isinstance(message_id, str) and role else None)
    return True


def _add(
    conn: sqlite3.Connection, session: Session, seq: int, made: Record, number: int, message_id: str | None = None
) -> None:
    if not number:
        number = conn.execute("UPDATE archive SET last_record = last_record + 1 RETURNING last_record").fetchone()[0]
    if conn.execute("SELECT 1 FROM record WHERE session = ? AND uuid = ?", (session.id, made.uuid)).fetchone():
        made = replace(made, uuid=MessageUuid(f"{made.uuid}-{LOST}-{seq}"))
    weight = weigh([made.blocks])[0] if made.is_message else NOTHING
    if made.type == LOST:
        conn.execute("INSERT OR REPLACE INTO body (id, data) VALUES (?, ?)", (number, made.body))
    conn.execute(
        "INSERT INTO record (id, session, seq, uuid, parent_seq, is_root, kind, type, subtype, role, message_id, "
        "units, answers, media, messages, text_holding, has_thinking, is_meta, is_summary, active, need_seq, "
        "body_hash, body_id, at_ms, calls, results) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(number, session.id, seq, made.uuid, seq - 1, seq == 1),
            *(MESSAGE if made.is_message else OTHER, made.type, made.message.role if made.message else None),
            message_id,
            *(weight.units, weight.results, weight.media, weight.messages),
            *(made.is_text_holding, made.has_thinking, CHAIN, seq, body_hash(made.body), number, made.at_ms),
            ids_text([safe_id(call.id) for call in made.calls]),
            ids_text([safe_id(result.tool_use_id) for result in made.results]),
        ),
    )
    if made.type == LOST:
        _forget_parts(conn, session.id, seq)


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
    if is_intact or recount(conn, session) == session.totals:
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
