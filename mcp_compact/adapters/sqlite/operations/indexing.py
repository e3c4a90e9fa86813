"""Filling the full-text index: in batches, for one row at a time costs ten times as much."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress

from mcp_compact.adapters.sqlite.connection import (
    ArchiveConnection,
    check_point,
    failing_clearly,
    has_grown,
    reading,
    writing,
)
from mcp_compact.adapters.sqlite.operations.append import append
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import for_index, readable
from mcp_compact.adapters.sqlite.waiting import patience_ms_of, set_patience_ms
from mcp_compact.errors import ServerError
from mcp_compact.ports.store import Appended, Batch, SessionKey

BATCH = 200
"""Records a batch; a writer fills one in when so many wait."""
_NEXT = (
    f"SELECT r.id, {WHOLE} FROM record r JOIN body b ON b.id = r.body_id "  # noqa: S608 - our own columns
    "WHERE r.id > ? ORDER BY r.id LIMIT ?"
)


def waiting(conn: sqlite3.Connection) -> int:
    """Records that are not in the index yet."""
    with failing_clearly():
        row = conn.execute("SELECT last_record - indexed_record FROM archive").fetchone()
        return int(row[0])


def index_batch(conn: sqlite3.Connection, limit: int = BATCH) -> int:
    """Index the oldest records that wait; how many. Texts are made before the lock is taken."""
    with reading(conn):
        start, newest = conn.execute("SELECT indexed_record, last_record FROM archive").fetchone()
        rows = conn.execute(_NEXT, (start, limit)).fetchall()
    texts = [(row[0], for_index(readable(record_of_row(row[1:])))) for row in rows]
    reached = texts[-1][0] if texts else newest
    with writing(conn):
        if _indexed(conn) != start:
            return 0
        # A session may have been deleted meanwhile.
        there = {row[0] for row in conn.execute("SELECT id FROM record WHERE id > ? AND id <= ?", (start, reached))}
        conn.executemany("INSERT INTO fts (rowid, text) VALUES (?, ?)", [item for item in texts if item[0] in there])
        conn.execute("UPDATE archive SET indexed_record = ?", (reached,))
    return len(texts)


def append_and_index(conn: sqlite3.Connection, key: SessionKey, batch: Batch, now_ms: int) -> Appended:
    """`append`, and a batch for the index where one waits; an import leaves its records to the searches."""
    done = append(conn, key, batch, now_ms)
    if not batch.is_import and done.new < BATCH <= waiting(conn):
        # What was appended is acknowledged, whatever becomes of the index.
        with suppress(ServerError):
            index_batch(conn)
    return done


def is_due(conn: ArchiveConnection) -> bool:
    """Has `tidy` something to do?"""
    return waiting(conn) >= BATCH or has_grown(conn)


def tidy(conn: ArchiveConnection) -> None:
    """What writers do beside their own work: a batch for the index, a check-point. Its failure is nobody's fault."""
    with suppress(ServerError):
        if waiting(conn) >= BATCH:
            index_batch(conn)
        if has_grown(conn):
            check_point(conn)


def index_more(conn: sqlite3.Connection) -> tuple[int, int]:
    """A batch of `catch_up`: how many records were indexed, and how many still wait."""
    before = waiting(conn)
    catch_up(conn, 1.0, batches=1)
    left = waiting(conn)
    return max(0, before - left), left


def catch_up(conn: sqlite3.Connection, seconds: float, batches: int = 1 << 30) -> None:
    """Index what waits, for so long at most; not at all where another process writes, or nothing can be written.

    Nor past a record that cannot be read: who searches reads what is not indexed, and passes over what cannot be read.
    """
    deadline, patience_ms = time.monotonic() + seconds, patience_ms_of(conn)
    try:
        if waiting(conn):
            set_patience_ms(conn, 0)
            while batches > 0 and time.monotonic() < deadline and index_batch(conn) and waiting(conn):
                batches -= 1
    except ServerError as error:
        if error.code not in ("store_locked", "store_read_only", "disk_full", "store_damaged"):
            raise
    finally:
        if patience_ms_of(conn) != patience_ms:
            set_patience_ms(conn, patience_ms)


def _indexed(conn: sqlite3.Connection) -> int:
    return int(conn.execute("SELECT indexed_record FROM archive").fetchone()[0])
