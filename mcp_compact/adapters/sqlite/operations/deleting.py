"""Removing a session: its rows, the bodies that nobody shares, and what the full-text index knows of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from mcp_compact.adapters.sqlite.connection import writing
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import for_index, readable
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


def delete_session(conn: sqlite3.Connection, key: SessionKey) -> int:
    """Remove a session with everything that was made of it; the number of records removed, 0 for no session.

    Rows and bodies are overwritten in the file. The index finds none of its words any more, but words without
    their places may stand in its pages until it is merged, which `forget` does. Sub-agents' sessions and forks stay,
    with the bodies that they share.
    """
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
