"""What a damaged archive has lost, out of its backups: bytes only where their hash proves them."""

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


_SEQS = "SELECT seq FROM record WHERE session = ?"


def fill_from(conn: sqlite3.Connection, backups: Sequence[Path]) -> int:
    """Fill in what is missing from these files, the newest (last) first; how many messages that was.

    A backup that cannot be read, or is damaged where it is needed, is passed over.
    """
    found = 0
    for backup in reversed(backups):
        try:
            if is_archive(backup):
                with closing(open_to_read(backup, is_copy=True)) as source:
                    found += _rows(conn, source)
        except (OSError, sqlite3.Error):
            continue
    return found + _fill_bytes(conn, backups)


def _rows(conn: sqlite3.Connection, source: sqlite3.Connection) -> int:
    """Rows of records that are lost, with their bytes; of sessions whose own rows are there."""
    number = 0
    here = _columns(conn, "record")
    names = [name for name in _columns(source, "record") if name in here]
    for session, namespace, session_id, last in conn.execute(
        "SELECT id, namespace, session_id, last_seq FROM session"
    ).fetchall():
        known = {row[0] for row in conn.execute(_SEQS, (session,))}
        theirs = source.execute(
            "SELECT id FROM session WHERE namespace = ? AND session_id = ?", (namespace, session_id)
        ).fetchone()
        if theirs is None or len(known) >= last:
            continue
        lost = [seq for (seq,) in source.execute(_SEQS, theirs) if seq not in known and seq <= last]
        number += sum(_row(conn, source, names, (session, *theirs, seq)) for seq in lost)
    return number


def _columns(conn: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in conn.execute(f"PRAGMA table_info({table})")]


def _row(
    conn: sqlite3.Connection, source: sqlite3.Connection, names: Sequence[str], place: tuple[int, int, int]
) -> bool:
    session, theirs, seq = place
    found = source.execute(
        f"SELECT {', '.join(f'r.{name}' for name in names)}, b.data, b.message FROM record r "  # noqa: S608 - columns of our own table
        "JOIN body b ON b.id = r.body_id WHERE r.session = ? AND r.seq = ?",
        (theirs, seq),
    ).fetchone()
    if found is None:
        return False
    row = dict(zip(names, found, strict=False))
    if not is_intact(found[-2], row["body_hash"]):
        return False
    # Numbers are those of the archive that the backup was made of; another one may have taken them since.
    row |= {"session": session, "body_id": row["id"]}
    marks = ", ".join("?" * len(names))
    done = conn.execute(f"INSERT OR IGNORE INTO record ({', '.join(names)}) VALUES ({marks})", [*row.values()])  # noqa: S608 - as above
    if done.rowcount == 1:
        conn.execute("INSERT OR REPLACE INTO body (id, data, message) VALUES (?, ?, ?)", (row["id"], *found[-2:]))
    return done.rowcount == 1


def _fill_bytes(conn: sqlite3.Connection, backups: Sequence[Path]) -> int:
    """Bytes of records whose rows are there."""
    needed = [row[:5] for row in conn.execute(_NEEDED) if not is_intact(row[5], row[2])]
    missing = len(needed)
    for backup in reversed(backups):
        if not needed:
            break
        try:
            if is_archive(backup):
                with closing(open_to_read(backup, is_copy=True)) as source:
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
