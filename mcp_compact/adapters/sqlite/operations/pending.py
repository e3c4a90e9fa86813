"""Compactions that wait for their summary: they survive a restart, lock nothing, and work once."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.connection import reading, writing
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.adapters.sqlite.operations.sessions import existing
from mcp_compact.compaction.snapshot import Base
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.store import Pending, SessionKey

_PUT = (
    "INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (namespace, compaction_id) DO UPDATE SET "
    "session = excluded.session, request = excluded.request, last_seq = excluded.last_seq, "
    "marker_seq = excluded.marker_seq, live_hash = excluded.live_hash, created_ms = excluded.created_ms, "
    "expires_ms = excluded.expires_ms WHERE used = 0"
)
_GET = (
    "SELECT p.compaction_id, s.namespace, s.session_id, p.request, p.last_seq, p.marker_seq, p.live_hash, "
    "p.created_ms, p.expires_ms, p.used FROM pending p JOIN session s ON s.id = p.session "
    "WHERE p.namespace = ? AND p.compaction_id = ?"
)


def put_pending(conn: sqlite3.Connection, pending: Pending) -> None:
    """Remember it, and forget whatever had expired when it was made.

    The same id again replaces it while it is unused. Raises CallerError (`no_such_session`).
    """
    with writing(conn):
        session = existing(conn, pending.key)
        conn.execute("DELETE FROM pending WHERE expires_ms < ?", (pending.created_ms,))
        conn.execute(
            _PUT,
            (
                session.namespace,
                safe_id(pending.compaction_id),
                session.id,
                well_formed(pending.request),
                pending.base.last_seq,
                pending.base.marker_seq,
                pending.base.live_hash,
                pending.created_ms,
                pending.expires_ms,
            ),
        )


def pending(conn: sqlite3.Connection, namespace: str, compaction_id: str) -> Pending | None:
    """The one of this id, used and expired ones too; None where the namespace has none."""
    with reading(conn):
        row = conn.execute(_GET, (safe_id(namespace), safe_id(compaction_id))).fetchone()
    if row is None:
        return None
    own_id, space, session_id, request, last_seq, marker_seq, live_hash, created_ms, expires_ms, used = row
    base = Base(last_seq, marker_seq, live_hash)
    return Pending(own_id, SessionKey(space, session_id), request, base, created_ms, expires_ms, bool(used))


def use_pending(conn: sqlite3.Connection, namespace: str, compaction_id: str, now_ms: int) -> bool:
    """Mark it as used; False where it was used before, has expired, or is not there."""
    with writing(conn):
        done = conn.execute(
            "UPDATE pending SET used = 1 WHERE namespace = ? AND compaction_id = ? AND used = 0 AND expires_ms >= ?",
            (safe_id(namespace), safe_id(compaction_id), now_ms),
        )
        return done.rowcount > 0
