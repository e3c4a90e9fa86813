"""Removing a session: its rows, the bodies that nobody shares, and what the full-text index knows of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from mcp_compact.adapters.sqlite.connection import ArchiveConnection, check_point, reading, writing
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import for_index, readable
from mcp_compact.errors import ServerError
from mcp_compact.ports.store import SessionKey

TABLES = (
    "call", "result", "media", "marker", "member", "cleared", "ledger", "memory", "pin", "pending", "conflict",
    "hook_state", "source", "record",
)  # fmt: skip
"""Everything that has rows of a session; `body` has its own way."""
_INDEXED = (
    f"SELECT r.id, {WHOLE} FROM record r JOIN body b ON b.id = r.body_id "  # noqa: S608 - our own columns
    "WHERE r.session = ? AND r.id <= (SELECT indexed_record FROM archive)"
)
# A body has the id of the record that brought it; the records of forks that share it are few and have an index.
_OWN_BODIES = (
    "DELETE FROM body WHERE id IN (SELECT r.body_id FROM record r WHERE r.session = :session "
    "AND NOT EXISTS (SELECT 1 FROM record o WHERE o.id = r.body_id AND o.session <> :session) "
    "AND NOT EXISTS (SELECT 1 FROM record o INDEXED BY record_shared "
    "WHERE o.body_id = r.body_id AND o.body_id <> o.id AND o.session <> :session))"
)


NEEDS_ROOM = (
    "Removing needs some room for a while, too: free some space elsewhere on that disk, or move the archive to another "
    "one and let MCP_COMPACT_DB name it."
)
AGAIN = "Then do it again."
MERGE = "Then run `mcp-compact vacuum`."
SMALL_INDEX_BYTES = 8 * 1024 * 1024
"""An index of this size is merged in about a second, which others wait for."""


def delete_session(conn: sqlite3.Connection, key: SessionKey) -> int:
    """Remove a session with everything that was made of it; the number of records removed, 0 for no session.

    What it had is overwritten in the file, its words in the index too. Only where the index is so large that all
    others would wait long for it, words without their places stand in its pages until `forget` or `vacuum` merges it.
    Sub-agents' sessions and forks stay, with the bodies that they share.
    """
    with needing_room():
        removed = remove(conn, key)
    if removed and _index_bytes(conn) <= SMALL_INDEX_BYTES:
        erase_words(conn)
    return removed


def erase_words(conn: sqlite3.Connection) -> None:
    """Merge the index, so that no page of it holds a removed word, and empty the WAL.

    Where another process reads just then the WAL goes with the next check-point.
    """
    with needing_room("The sessions are removed, but pages of the full-text index still hold words of them.", MERGE):
        _merge_at_once(conn)
    if isinstance(conn, ArchiveConnection) and conn.journal_mode == "wal":
        check_point(conn, "TRUNCATE")


def _merge_at_once(conn: sqlite3.Connection) -> None:
    with overwriting(conn), writing(conn):
        conn.execute("INSERT INTO fts (fts) VALUES ('optimize')")


@contextmanager
def needing_room(so_far: str = "What is not removed yet is still there.", then: str = AGAIN) -> Iterator[None]:
    """A full disk stops what makes room as well: say what helps. Raises ServerError `disk_full`."""
    try:
        yield
    except ServerError as error:
        if error.code != "disk_full":
            raise
        raise ServerError(error.code, f"{error.message} {so_far}", f"{NEEDS_ROOM} {then}") from error


def _index_bytes(conn: sqlite3.Connection) -> int:
    with reading(conn):
        return int(conn.execute("SELECT coalesce(sum(length(block)), 0) FROM fts_data").fetchone()[0])


def remove(conn: sqlite3.Connection, key: SessionKey) -> int:
    """Remove a session as `delete_session` does; `erase_words` is left to the caller."""
    with overwriting(conn), writing(conn):
        session = state.load(conn, key)
        if session is None:
            return 0
        _take_out_of_index(conn, session.id)
        conn.execute(_OWN_BODIES, {"session": session.id})
        removed = 0
        for table in TABLES:
            removed = conn.execute(f"DELETE FROM {table} WHERE session = ?", (session.id,)).rowcount  # noqa: S608 - our own names
        conn.execute(
            "DELETE FROM binding WHERE namespace = ? AND session_id = ?", (session.namespace, session.session_id)
        )
        conn.execute("DELETE FROM session WHERE id = ?", (session.id,))
        # Nothing may be left that waits: ids without records would wait forever.
        conn.execute(
            "UPDATE archive SET indexed_record = last_record "
            "WHERE NOT EXISTS (SELECT 1 FROM record WHERE id > indexed_record)"
        )
        return removed


def _take_out_of_index(conn: sqlite3.Connection, session: int) -> None:
    """An index without a copy of the texts has to be told again what it was once given, to the letter."""
    rows = conn.execute(_INDEXED, (session,))
    conn.executemany(
        "INSERT INTO fts (fts, rowid, text) VALUES ('delete', ?, ?)",
        ((row[0], for_index(readable(record_of_row(row[1:])))) for row in rows),
    )


@contextmanager
def overwriting(conn: sqlite3.Connection) -> Iterator[None]:
    """Freed pages are filled with zeros meanwhile; outside of a transaction, where the setting counts at once."""
    before = int(conn.execute("PRAGMA secure_delete").fetchone()[0])
    conn.execute("PRAGMA secure_delete = ON").fetchall()
    try:
        yield
    finally:
        conn.execute(f"PRAGMA secure_delete = {('OFF', 'ON', 'FAST')[before]}").fetchall()
