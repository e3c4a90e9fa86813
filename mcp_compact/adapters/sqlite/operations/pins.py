"""Pins: what every later context of a session must hold."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.connection import reading, writing
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.adapters.sqlite.operations.sessions import existing
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.store import Registered, SessionKey

MAX_CHARS = 400_000
"""Of a pin's text: about 100,000 tokens, more than a context could hold beside its work."""


def register(conn: sqlite3.Connection, key: SessionKey, item: Registered, now_ms: int) -> None:
    """Pin something; the same kind and name replaces what was there, in its place.

    Raises CallerError (`too_long`, `no_such_session`).
    """
    if len(item.text) > MAX_CHARS:
        raise CallerError(
            "too_long",
            f"The text has {len(item.text):,} characters; a pin has {MAX_CHARS:,} at most.",
            "Pin what must be kept word for word, and leave the rest to the archive.",
        )
    with writing(conn):
        session = existing(conn, key)
        conn.execute(
            "INSERT INTO pin (session, kind, name, ordinal, text, seq, at_ms) SELECT :session, :kind, :name, "
            "coalesce(max(ordinal), 0) + 1, :text, :seq, :now FROM pin WHERE session = :session "
            "ON CONFLICT (session, kind, name) DO UPDATE SET text = excluded.text, seq = excluded.seq, "
            "at_ms = excluded.at_ms",
            {
                "session": session.id,
                "kind": safe_id(item.kind),
                "name": safe_id(item.name),
                "text": well_formed(item.text),
                "seq": session.last_seq,
                "now": now_ms,
            },
        )
        session.updated_ms = now_ms
        state.save(conn, session)


def unregister(conn: sqlite3.Connection, key: SessionKey, kind: str, name: str) -> bool:
    """Take a pin back; False where there is none of that kind and name."""
    with writing(conn):
        session = state.load(conn, key)
        if session is None:
            return False
        done = conn.execute(
            "DELETE FROM pin WHERE session = ? AND kind = ? AND name = ?", (session.id, safe_id(kind), safe_id(name))
        )
        return done.rowcount > 0


def registered(conn: sqlite3.Connection, key: SessionKey) -> list[Registered]:
    """The pins in force, in the order in which they were first made."""
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return []
        return pins_of(conn, session.id)


def pins_of(conn: sqlite3.Connection, session: int) -> list[Registered]:
    """The same inside of a transaction that has begun."""
    rows = conn.execute("SELECT ordinal, kind, name, text, seq FROM pin WHERE session = ?", (session,))
    return [Registered(*row[1:]) for row in sorted(rows)]
