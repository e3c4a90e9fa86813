"""Records of a damaged archive: a note in the place of each that is lost; those whose own row is lost made again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field, replace

from mcp_compact.adapters.sqlite.operations.encoding import ids_text, safe_id
from mcp_compact.adapters.sqlite.operations.rows import CHAIN, MARKER, MESSAGE, OTHER, inner_message, is_intact, parsed
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.adapters.sqlite.operations.writing_rows import reserve_ids
from mcp_compact.messages.codec import body_hash, canonical, decode_message, parse_time, well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import NOTHING, weigh

LOST = "lost"
"""The type of the note in a lost record's place."""
MOST_NOTES = 10_000
"""Where more are missing at a session's end, it ends before them; or the number that says so is damaged itself."""
OF_RECORD = ("call", "result", "media", "cleared")
_GAPS = (
    "SELECT before + 1, seq - 1 FROM (SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before "
    "FROM record WHERE session = ?) WHERE seq > before + 1"
)


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


def drop_strangers(conn: sqlite3.Connection, session: Session) -> None:
    """Rows whose place cannot be: damage of their own."""
    count = int(conn.execute("SELECT count(*) FROM record WHERE session = ?", (session.id,)).fetchone()[0])
    conn.execute(
        "DELETE FROM record WHERE session = ? AND (seq < 1 OR seq > ?)",
        (session.id, max(session.last_seq, count) + MOST_NOTES),
    )
    for table in (*OF_RECORD, "marker"):
        conn.execute(
            f"DELETE FROM {table} WHERE session = ? AND seq > ?",  # noqa: S608 - our own names
            (session.id, max(session.last_seq, count) + MOST_NOTES),
        )


def lost_bodies(conn: sqlite3.Connection, number: int, fate: Fate) -> None:
    """A note in the place of each record whose bytes are gone or are others."""
    rows = conn.execute(
        "SELECT r.id, r.seq, r.uuid, r.body_hash, b.data FROM record r LEFT JOIN body b ON b.id = r.body_id "
        "WHERE r.session = ? ORDER BY r.seq",
        (number,),
    )
    lost = [row[:3] for row in rows if not is_intact(row[4], row[3])]
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
    for table in OF_RECORD:
        conn.execute(f"DELETE FROM {table} WHERE session = ? AND seq = ?", (number, seq))  # noqa: S608 - our own names
    conn.execute("DELETE FROM member WHERE session = ? AND seq = ?", (number, seq))


def _note(uuid: str, why: str) -> bytes:
    return canonical({"type": LOST, "uuid": uuid, "content": f"A record stood here; {why}."})


def gaps(conn: sqlite3.Connection, session: Session, fate: Fate) -> None:
    """Records whose own rows are lost: from their bytes where these and an index are there, else a note."""
    newest = conn.execute("SELECT coalesce(max(seq), 0) FROM record WHERE session = ?", (session.id,)).fetchone()[0]
    known = conn.execute("SELECT coalesce(max(value), 0) FROM record_seq_known WHERE session = ? AND value < ?",
                         (session.id, newest + MOST_NOTES))  # fmt: skip
    last = max(newest, known.fetchone()[0])
    if session.last_seq > last + MOST_NOTES:
        fate.notes.append(f"all records after {last:,} are lost, up to {session.last_seq:,}")
    last = last if session.last_seq > last + MOST_NOTES else max(last, session.last_seq)
    for first, end in conn.execute(_GAPS, (session.id,)).fetchall():
        _infer_places(conn, session.id, first, end)
    gaps = [*conn.execute(_GAPS, (session.id,)).fetchall(), (newest + 1, last)]
    for seq in (seq for first, end in gaps for seq in range(first, end + 1)):
        number = _place(conn, session.id, seq)
        if from_bytes(conn, session, seq, number):
            fate.unproven += 1
            continue
        uuid = _known_uuid(conn, number, f"{LOST}-{session.id}-{seq}")
        _add(conn, session, seq, Record(uuid=uuid, type=LOST, body=_note(uuid, "nothing of it was left")), number)
        fate.lost.append((seq, uuid))
    session.last_seq = last


def _infer_places(conn: sqlite3.Connection, session: int, first: int, end: int) -> None:
    """Numbers of lost records from their neighbours': records that are stored one after the other are numbered so."""
    before, after = (
        conn.execute("SELECT id FROM record WHERE session = ? AND seq = ?", (session, seq)).fetchone()
        for seq in (first - 1, end + 1)
    )
    if before and after and after[0] - before[0] == end - first + 2:
        conn.executemany(
            "INSERT OR IGNORE INTO record_seq_known VALUES (?, ?, ?)",
            [(before[0] + step, session, first - 1 + step) for step in range(1, end - first + 2)],
        )


def _place(conn: sqlite3.Connection, session: int, seq: int) -> int:
    """The number that a record at this place had, 0 where no index tells."""
    row = conn.execute(
        "SELECT k.id FROM record_seq_known k WHERE k.session = ? AND k.value = ? "
        "AND NOT EXISTS (SELECT 1 FROM record r WHERE r.id = k.id)",
        (session, seq),
    ).fetchone()
    return int(row[0]) if row else 0


def _known_uuid(conn: sqlite3.Connection, number: int, otherwise: str) -> MessageUuid:
    row = conn.execute("SELECT value FROM record_uuid_known WHERE id = ?", (number,)).fetchone()
    return MessageUuid(str(row[0]) if row else otherwise)


def from_bytes(conn: sqlite3.Connection, session: Session, seq: int, number: int) -> bool:
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
    if not number or conn.execute("SELECT 1 FROM record WHERE id = ?", (number,)).fetchone():
        free = reserve_ids(conn, 1)
        conn.execute("INSERT INTO body SELECT ?, data, message FROM body WHERE id = ?", (free, number))
        number = free
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
