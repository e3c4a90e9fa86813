"""Bytes that a damaged archive has lost, out of its backups: taken only where their hash proves them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mcp_compact.adapters.sqlite.operations.inspecting import is_archive, open_to_read
from mcp_compact.adapters.sqlite.operations.rows import is_intact

_NEEDED = (
    "SELECT r.body_id, r.uuid, r.body_hash, s.namespace, s.session_id, b.data FROM record r "
    "JOIN session s ON s.id = r.session LEFT JOIN body b ON b.id = r.body_id"
)
_FOUND = (
    "SELECT b.data, b.message FROM session s JOIN record r ON r.session = s.id JOIN body b ON b.id = r.body_id "
    "WHERE s.namespace = ? AND s.session_id = ? AND r.uuid = ?"
)


def fill_from(conn: sqlite3.Connection, backups: Sequence[Path]) -> int:
    """Fill in what is missing from these files, the newest (last) first; how many messages that was.

    A backup that cannot be read, or is damaged where it is needed, is passed over.
    """
    needed = [row[:5] for row in conn.execute(_NEEDED) if not is_intact(row[5], row[2])]
    missing = len(needed)
    for backup in reversed(backups):
        if not needed:
            break
        try:
            if is_archive(backup):
                with closing(open_to_read(backup)) as source:
                    needed = [row for row in needed if not _filled(conn, source, row)]
        except (OSError, sqlite3.Error):
            continue
    return missing - len(needed)


def _filled(conn: sqlite3.Connection, source: sqlite3.Connection, needed: tuple[int, str, bytes, str, str]) -> bool:
    body, uuid, digest, namespace, session_id = needed
    try:
        row = source.execute(_FOUND, (namespace, session_id, uuid)).fetchone()
    except sqlite3.DatabaseError:
        return False
    if row is None or not is_intact(row[0], digest):
        return False
    conn.execute("INSERT OR REPLACE INTO body (id, data, message) VALUES (?, ?, ?)", (body, *row))
    return True
