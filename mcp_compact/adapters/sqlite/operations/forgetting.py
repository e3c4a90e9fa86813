"""Forgetting: sessions with their sub-agents, out of the tables, the full-text index and the WAL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations.deleting import erase_words, needing_room, remove
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.store import SessionKey


def keys_of_session(conn: sqlite3.Connection, key: SessionKey) -> list[SessionKey]:
    """The session and those of its sub-agents, of theirs, and so on; forks are sessions of their own."""
    return _keys(
        conn,
        key.namespace,
        "WITH RECURSIVE own (session_id) AS (VALUES (?) UNION SELECT s.session_id FROM session s JOIN own "
        "ON s.parent_session_id = own.session_id WHERE s.namespace = ? AND s.forked_at IS NULL) "
        "SELECT s.session_id FROM session s JOIN own USING (session_id) WHERE s.namespace = ?",
        (safe_id(key.session_id), safe_id(key.namespace), safe_id(key.namespace)),
    )


def keys_of_project(conn: sqlite3.Connection, namespace: str, cwd: str) -> list[SessionKey]:
    """Every session of a working directory, and those of their sub-agents."""
    found = _keys(
        conn,
        namespace,
        "SELECT session_id FROM session WHERE namespace = ? AND cwd = ?",
        (safe_id(namespace), well_formed(cwd)),
    )
    return list(dict.fromkeys(own for key in found for own in keys_of_session(conn, key)))


def forget(conn: sqlite3.Connection, keys: Sequence[SessionKey]) -> int:
    """Remove sessions for good; the number of records removed.

    What they had is overwritten in the file; the index is merged, so that no page of it holds their words, and
    the WAL is emptied (where another process reads just then, by the next check-point).
    """
    with needing_room():
        removed = sum(remove(conn, key) for key in keys)
    erase_words(conn)
    return removed


def _keys(conn: sqlite3.Connection, namespace: str, query: str, values: tuple[object, ...]) -> list[SessionKey]:
    with reading(conn):
        return [SessionKey(namespace, row[0]) for row in conn.execute(query, values)]
