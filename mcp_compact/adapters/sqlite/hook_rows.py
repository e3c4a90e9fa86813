"""What a client's hook reads and notes: single statements on a connection, without loading the other operations.

Those cost a process twelve times its bare start, and a hook runs at every prompt. What a hook writes here is
never more than a row or two; archive and memory are brought up to date by the operations themselves.
"""

from __future__ import annotations

import os
import sqlite3

from mcp_compact.adapters.sqlite.waiting import begin_writing

APPLICATION_ID = 0x4D435043
_SCHEMA = os.path.join(os.path.dirname(__file__), "schema")
BUSY_SECONDS = 2.0
"""How long a hook waits for another process: its client waits for it."""
KEPT_MS = 30 * 24 * 3600 * 1000
"""Bindings of clients that were started longer ago are forgotten."""


def newest_schema() -> int:
    """The version that an archive of this release has: that of its last migration."""
    return max(int(name[:-4]) for name in os.listdir(_SCHEMA) if name.endswith(".sql"))


def open_known(path: str, *, full_sync: bool = False) -> sqlite3.Connection | None:
    """A connection to an archive of the newest schema; None where it is to be made or brought up to date first.

    `full_sync` as for `connection.connect`. Raises sqlite3.Error where the file cannot be read or is no archive.
    """
    if not os.path.isfile(path):
        return None
    conn = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        known = conn.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        if not known or conn.execute("PRAGMA user_version").fetchone()[0] != newest_schema():
            conn.close()
            return None
        # A rollback journal (on network folders) needs it for more than a power loss.
        full = full_sync or conn.execute("PRAGMA journal_mode").fetchone()[0] != "wal"
        conn.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
        # Check-points are made under a file lock alone, by those who write much.
        conn.execute("PRAGMA wal_autocheckpoint=0")
    except BaseException:
        conn.close()
        raise
    return conn


def bind(conn: sqlite3.Connection, client: str, session: tuple[str, str], at: tuple[str, str], now_ms: int) -> None:
    """Note which session (namespace, id) a client's process is at, with its transcript and folder."""
    begin_writing(conn)
    try:
        conn.execute("DELETE FROM binding WHERE at_ms < ?", (now_ms - KEPT_MS,))
        conn.execute("DELETE FROM follower WHERE at_ms < ?", (now_ms - KEPT_MS,))
        conn.execute(
            "INSERT INTO binding (client, namespace, session_id, transcript, cwd, at_ms) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (client) DO UPDATE SET namespace = excluded.namespace, session_id = excluded.session_id, "
            "transcript = excluded.transcript, cwd = excluded.cwd, at_ms = excluded.at_ms",
            (client, *session, *at, now_ms),
        )
        conn.execute("COMMIT")
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def bound(conn: sqlite3.Connection, client: str) -> tuple[str, str, str, str] | None:
    """Namespace, session id, transcript and folder of what a client's process is at; None where no hook said so."""
    row = conn.execute(
        "SELECT namespace, session_id, transcript, cwd FROM binding WHERE client = ?", (client,)
    ).fetchone()
    return (row[0], row[1], row[2], row[3]) if row else None


def follow(conn: sqlite3.Connection, client: str, server: str, now_ms: int) -> None:
    """Note that a server follows the transcript of what a client is at."""
    conn.execute("INSERT OR REPLACE INTO follower (client, server, at_ms) VALUES (?, ?, ?)", (client, server, now_ms))


def follower(conn: sqlite3.Connection, client: str) -> str:
    """The server's process that follows for a client; empty for none. Whether it still runs is not looked at."""
    row = conn.execute("SELECT server FROM follower WHERE client = ?", (client,)).fetchone()
    return str(row[0]) if row else ""


def rules_kept(conn: sqlite3.Connection, namespace: str, session_id: str) -> int:
    """Rules of a session as they were last counted; else its standing instructions and pins, revoked ones too."""
    row = conn.execute(
        "SELECT coalesce("
        "(SELECT h.rules FROM hook_state h WHERE h.session = s.id), "
        "(SELECT count(*) FROM ledger l WHERE l.session = s.id AND l.kind = 'instruction') + "
        "(SELECT count(*) FROM pin p WHERE p.session = s.id AND p.kind = 'instruction')) "
        "FROM session s WHERE s.namespace = ? AND s.session_id = ?",
        (namespace, session_id),
    ).fetchone()
    return int(row[0]) if row else 0


def last_compaction(conn: sqlite3.Connection, namespace: str, session_id: str) -> tuple[int, int]:
    """How often a session was compacted, and when last (milliseconds since 1970; 0 for never)."""
    row = conn.execute(
        "SELECT compactions, last_compaction_ms FROM session WHERE namespace = ? AND session_id = ?",
        (namespace, session_id),
    ).fetchone()
    return (int(row[0]), int(row[1] or 0)) if row else (0, 0)


def injection(conn: sqlite3.Connection, namespace: str, session_id: str) -> str:
    """What is ready for the start after a compaction; empty for nothing. It is noted as given."""
    return _taken(conn, "injection", namespace, session_id, "given = injection, injection = ''")


def refinement(conn: sqlite3.Connection, namespace: str, session_id: str) -> str:
    """What is ready for the next prompt, once; empty for nothing."""
    return _taken(conn, "refinement", namespace, session_id, "refinement = ''")


def given(conn: sqlite3.Connection, namespace: str, session_id: str) -> str:
    """What was given after the last compaction; empty for nothing."""
    row = conn.execute(
        "SELECT h.given FROM hook_state h JOIN session s ON s.id = h.session "
        "WHERE s.namespace = ? AND s.session_id = ?",
        (namespace, session_id),
    ).fetchone()
    return str(row[0]) if row else ""


def place_read(conn: sqlite3.Connection, namespace: str, source: str) -> tuple[int, str]:
    """How far a file was looked through, and what was noted of it; (0, empty) where it never was."""
    row = conn.execute(
        "SELECT offset, state FROM source WHERE namespace = ? AND source = ?", (namespace, source)
    ).fetchone()
    return (int(row[0]), str(row[1])) if row else (0, "")


def note_place(conn: sqlite3.Connection, session: tuple[str, str], source: str, place: tuple[int, str]) -> None:
    """Note how far a session's file was looked through; nothing where the session is not known."""
    conn.execute(
        "INSERT OR REPLACE INTO source (namespace, source, session, offset, line, ordinal, head_hash, state) "
        "SELECT namespace, ?, id, ?, 1, 0, '', ? FROM session WHERE namespace = ? AND session_id = ?",
        (source, *place, *session),
    )


def _taken(conn: sqlite3.Connection, column: str, namespace: str, session_id: str, then: str) -> str:
    """A text that is given once. The lock is taken only where there is one: most prompts find none."""
    find = (
        f"SELECT h.session, h.{column} FROM hook_state h JOIN session s ON s.id = h.session "  # noqa: S608 - our own columns
        f"WHERE s.namespace = ? AND s.session_id = ? AND h.{column} <> ''"
    )
    if conn.execute(find, (namespace, session_id)).fetchone() is None:
        return ""
    begin_writing(conn)
    try:
        row = conn.execute(find, (namespace, session_id)).fetchone()
        if row is not None:
            conn.execute(f"UPDATE hook_state SET {then} WHERE session = ?", (row[0],))  # noqa: S608 - as above
        conn.execute("COMMIT")
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
    return str(row[1]) if row else ""
