"""Looking at everything that the archive holds: structure, references, bytes, index, and each session's live context.

Read in parts, each its own short transaction, so that writers and check-points go on meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mcp_compact.adapters.sqlite.connection import failing_clearly, reading, writing
from mcp_compact.adapters.sqlite.operations.checks import MAX_FINDINGS
from mcp_compact.adapters.sqlite.operations.encoding import MAX_INT
from mcp_compact.adapters.sqlite.operations.live import recount
from mcp_compact.adapters.sqlite.operations.originals import live
from mcp_compact.adapters.sqlite.operations.rows import is_intact
from mcp_compact.adapters.sqlite.operations.state import COLUMNS, Session
from mcp_compact.compaction.in_memory import turns_of
from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import ServerError
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.ports.store import SessionKey

UNREADABLE = (sqlite3.DatabaseError, ValueError, TypeError, LookupError, AssertionError)
"""What operations may raise over rows that do not fit together."""
BODIES_AT_ONCE = 2_000
PAGE_RECORDS, PAGE_BYTES = 2_000, 32 << 20

Progress = Callable[[int, int, str], None]
"""Told how much is done, of how much, and of what."""

# What must be found where something points to; each query gives the rows that point to nothing.
_POINTERS = {
    "records without a session": "FROM record t LEFT JOIN session s ON s.id = t.session WHERE s.id IS NULL",
    "bodies without a record": "FROM body t WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.id = t.id) "
    "AND NOT EXISTS (SELECT 1 FROM record r WHERE r.body_id = t.id AND r.body_id <> r.id)",
    "parents that are not there": "FROM record t LEFT JOIN record r ON r.session = t.session AND r.seq = t.parent_seq "
    "WHERE t.parent_seq > 0 AND r.id IS NULL",
    "calls without a record": "FROM call t LEFT JOIN record r USING (session, seq) WHERE r.id IS NULL",
    "results without a record": "FROM result t LEFT JOIN record r USING (session, seq) WHERE r.id IS NULL",
    "media without a record": "FROM media t LEFT JOIN record r USING (session, seq) WHERE r.id IS NULL",
    "clearings without a record": "FROM cleared t LEFT JOIN record r USING (session, seq) WHERE r.id IS NULL",
    "markers without a record": "FROM marker t LEFT JOIN record r USING (session, seq) WHERE r.id IS NULL",
    "markers whose boundary is missing": "FROM marker t LEFT JOIN marker m ON m.session = t.session "
    "AND m.seq = t.boundary_seq WHERE t.boundary_seq > 0 AND m.kind IS NOT 'compact_boundary'",
    "members of no marker": "FROM member t LEFT JOIN marker m ON m.session = t.session AND m.seq = t.marker "
    "WHERE m.seq IS NULL",
    "sessions whose newest record is missing": "FROM session t WHERE t.last_seq > 0 AND NOT EXISTS "
    "(SELECT 1 FROM record r WHERE r.session = t.id AND r.seq = t.last_seq)",
    "sessions whose records are not all there": "FROM session t WHERE t.last_seq <> "
    "(SELECT count(*) FROM record r WHERE r.session = t.id)",
    "sessions whose marker is missing": "FROM session t WHERE t.marker_seq > 0 AND NOT EXISTS "
    "(SELECT 1 FROM marker m WHERE m.session = t.id AND m.seq = t.marker_seq)",
    "memories without a session": "FROM memory t LEFT JOIN session s ON s.id = t.session WHERE s.id IS NULL",
    "pins without a session": "FROM pin t LEFT JOIN session s ON s.id = t.session WHERE s.id IS NULL",
}


@dataclass(slots=True)
class Depths:
    """What a whole look found; the archive is sound where every list is empty."""

    sessions: int = 0
    bodies: int = 0
    """Records whose bytes were compared with their hash."""
    damage: list[str] = field(default_factory=list)
    """What SQLite says of the file's structure."""
    index: list[str] = field(default_factory=list)
    """What is wrong with the full-text index: search is affected, no message is."""
    lost_references: list[str] = field(default_factory=list)
    wrong_bodies: list[tuple[SessionKey, int, str]] = field(default_factory=list)
    """Session, seq and uuid of records whose bytes are not those that were stored."""
    wrong_totals: list[SessionKey] = field(default_factory=list)
    wrong_contexts: list[tuple[SessionKey, str]] = field(default_factory=list)
    """Sessions whose live context cannot be read, or would not be accepted, and why."""

    @property
    def is_sound(self) -> bool:
        """Was nothing found?"""
        return not (
            self.damage
            or self.index
            or self.lost_references
            or self.wrong_bodies
            or self.wrong_totals
            or self.wrong_contexts
        )


def _silent(done: int, total: int, what: str) -> None:
    """No progress is shown."""


def deep_check(conn: sqlite3.Connection, progress: Progress = _silent) -> Depths:
    """Look at everything. What cannot be read is found, not raised; raises ServerError where nothing can be."""
    found = Depths()
    with failing_clearly():
        found.sessions = int(conn.execute("SELECT count(*) FROM session").fetchone()[0])
    progress(0, 0, "structure")
    for look in (_structure, _references, _index):
        look(conn, found)
    _bodies(conn, found, progress)
    _sessions(conn, found, progress)
    return found


def _structure(conn: sqlite3.Connection, found: Depths) -> None:
    try:
        rows = conn.execute(f"PRAGMA integrity_check({MAX_FINDINGS})").fetchall()
    except sqlite3.DatabaseError as error:
        rows = [(str(error),)]
    said = [str(row[0]) for row in rows if row[0] != "ok"]
    # Newer releases of SQLite look into the index as well.
    found.index += [text for text in said if "fts5" in text]
    found.damage += [text for text in said if "fts5" not in text]


def _references(conn: sqlite3.Connection, found: Depths) -> None:
    for name, query in _POINTERS.items():
        try:
            number = int(conn.execute(f"SELECT count(*) {query}").fetchone()[0])
        except sqlite3.DatabaseError as error:
            found.lost_references.append(f"{name}: {error}")
            continue
        if number:
            found.lost_references.append(f"{number} {name}")


def _index(conn: sqlite3.Connection, found: Depths) -> None:
    try:
        with writing(conn):
            conn.execute("INSERT INTO fts (fts) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        found.index.append(str(error))
    except ServerError as error:
        if error.code not in ("store_read_only", "store_locked"):
            found.index.append(error.message)


def _bodies(conn: sqlite3.Connection, found: Depths, progress: Progress) -> None:
    newest = int(conn.execute("SELECT last_record FROM archive").fetchone()[0])
    following: int | None = 0
    while following is not None:
        reached = following
        progress(reached, newest, "messages")
        try:
            following = _wrong(conn, found, reached, BODIES_AT_ONCE)
        except sqlite3.DatabaseError:
            # A page of them cannot be read: record by record, so that each is named.
            upper = reached + BODIES_AT_ONCE
            for at in range(reached, min(upper, newest)):
                found.wrong_bodies += _wrong_one(conn, found, at)
            following = upper if upper < newest else None


def _wrong(conn: sqlite3.Connection, found: Depths, after: int, limit: int, up_to: int = MAX_INT) -> int | None:
    """Look at records by their numbers, so many at most; the last one's number, None where there are no more."""
    rows = conn.execute(
        "SELECT r.id, s.namespace, s.session_id, r.seq, r.uuid, r.body_hash, b.data FROM record r "
        "JOIN session s ON s.id = r.session LEFT JOIN body b ON b.id = r.body_id "
        "WHERE r.id > ? AND r.id <= ? ORDER BY r.id LIMIT ?",
        (after, up_to, limit),
    )
    last, number, wrong = None, 0, []
    for last, namespace, session_id, seq, uuid, digest, data in rows:  # noqa: B007 - the last one's number is the result
        number += 1
        if not is_intact(data, digest):
            wrong.append((SessionKey(namespace, session_id), seq, uuid))
    found.bodies += number
    found.wrong_bodies += wrong
    return last


def _wrong_one(conn: sqlite3.Connection, found: Depths, after: int) -> list[tuple[SessionKey, int, str]]:
    try:
        _wrong(conn, found, after, 1, after + 1)
    except sqlite3.DatabaseError:
        pass
    else:
        return []
    try:
        row = conn.execute(
            "SELECT s.namespace, s.session_id, r.seq, r.uuid FROM record r JOIN session s ON s.id = r.session "
            "WHERE r.id = ?",
            (after + 1,),
        ).fetchone()
    except sqlite3.DatabaseError:
        return [(SessionKey("", ""), 0, f"record number {after + 1}")]
    return [(SessionKey(row[0], row[1]), row[2], row[3])] if row else []


def _sessions(conn: sqlite3.Connection, found: Depths, progress: Progress) -> None:
    try:
        sessions = [Session(*row) for row in conn.execute(f"SELECT {COLUMNS} FROM session")]  # noqa: S608 - our own
    except sqlite3.DatabaseError as error:
        found.damage.append(f"the list of sessions: {error}")
        return
    for at, listed in enumerate(sessions):
        progress(at, len(sessions), "live contexts")
        key = SessionKey(listed.namespace, listed.session_id)
        try:
            if not _has_its_totals(conn, listed.id):
                found.wrong_totals.append(key)
            fault = _fault(conn, key)
        except ServerError as error:
            fault = error.message
        except UNREADABLE as error:
            fault = f"it cannot be read ({type(error).__name__}: {error})"
        if fault:
            found.wrong_contexts.append((key, fault))


def _has_its_totals(conn: sqlite3.Connection, session: int) -> bool:
    """Are the kept totals those of the rows? Both of one moment: somebody may write meanwhile."""
    with reading(conn):
        row = conn.execute(f"SELECT {COLUMNS} FROM session WHERE id = ?", (session,)).fetchone()  # noqa: S608 - our own
        return row is None or recount(conn, Session(*row)) == Session(*row).totals


def _fault(conn: sqlite3.Connection, key: SessionKey) -> str:
    """Why the live context would not do; empty where it does. What is given out must need no further repair."""
    records = list(_live_records(conn, key))
    turns, _ = valid_turns(turns_of(LiveContext((), tuple(records), {}), Surroundings(session_id=key.session_id)))
    _, repairs = valid_turns(turns)
    return repairs[0] if repairs else ""


def _live_records(conn: sqlite3.Connection, key: SessionKey) -> Iterator[Record]:
    after = 0
    while True:
        part = live(conn, key, after=after, limit=PAGE_RECORDS, max_bytes=PAGE_BYTES)
        if part is None:
            return
        yield from part.records
        if part.next_after is None:
            return
        after = part.next_after
