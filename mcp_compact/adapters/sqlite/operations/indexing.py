"""Filling the full-text index: in batches, for one row at a time costs ten times as much."""

from __future__ import annotations

import sqlite3
import time

from mcp_compact.adapters.sqlite.connection import BUSY_SECONDS, reading, writing
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import for_index, readable
from mcp_compact.errors import ServerError

BATCH = 200
"""Records a batch; a writer fills one in when so many wait."""
_NEXT = (
    f"SELECT r.id, {WHOLE} FROM record r JOIN body b ON b.id = r.body_id "  # noqa: S608 - our own columns
    "WHERE r.id > ? ORDER BY r.id LIMIT ?"
)


def waiting(conn: sqlite3.Connection) -> int:
    """Records that are not in the index yet."""
    with reading(conn):
        row = conn.execute("SELECT last_record - indexed_record FROM archive").fetchone()
        return int(row[0])


def index_batch(conn: sqlite3.Connection, limit: int = BATCH) -> int:
    """Index the oldest records that wait; how many. Texts are made before the lock is taken."""
    with reading(conn):
        start = _indexed(conn)
        rows = conn.execute(_NEXT, (start, limit)).fetchall()
    texts = [(row[0], for_index(readable(record_of_row(row[1:])))) for row in rows]
    with writing(conn):
        if not texts or _indexed(conn) != start:
            return 0
        # A session may have been deleted meanwhile.
        there = {
            row[0] for row in conn.execute("SELECT id FROM record WHERE id > ? AND id <= ?", (start, texts[-1][0]))
        }
        conn.executemany("INSERT INTO fts (rowid, text) VALUES (?, ?)", [item for item in texts if item[0] in there])
        conn.execute("UPDATE archive SET indexed_record = ?", (texts[-1][0],))
    return len(texts)


def catch_up(conn: sqlite3.Connection, seconds: float) -> None:
    """Index what waits, for so long at most; not at all where another process writes, or nothing can be written."""
    deadline = time.monotonic() + seconds
    _wait_for_locks(conn, 0.0)
    try:
        while time.monotonic() < deadline and waiting(conn) and index_batch(conn):
            pass
    except ServerError as error:
        if error.code not in ("store_locked", "store_read_only", "disk_full"):
            raise
    finally:
        _wait_for_locks(conn, BUSY_SECONDS)


def _wait_for_locks(conn: sqlite3.Connection, seconds: float) -> None:
    conn.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")


def _indexed(conn: sqlite3.Connection) -> int:
    return int(conn.execute("SELECT indexed_record FROM archive").fetchone()[0])
