"""Sessions: their counters, lists of them, what was noted of them, and how far their sources were read."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.connection import failing_clearly, reading, writing
from mcp_compact.adapters.sqlite.operations import derived, state
from mcp_compact.adapters.sqlite.operations.encoding import json_text, json_value, safe_id
from mcp_compact.adapters.sqlite.operations.state import COLUMNS, Session
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import SessionKey, SessionRow, SourcePosition

NO_DECLINES = "{}"


def existing(conn: sqlite3.Connection, key: SessionKey) -> Session:
    """The session's row, inside of an open transaction. Raises CallerError (`no_such_session`)."""
    session = state.load(conn, key)
    if session is None:
        raise CallerError("no_such_session", f"There is no session {key.session_id!r}.", "list_sessions names them.")
    return session


def session(conn: sqlite3.Connection, key: SessionKey) -> SessionRow | None:
    """The session's counters, None where there is no such session."""
    # One statement needs no transaction around it; what an older release wrote is read with some more.
    with failing_clearly():
        found = state.load(conn, key)
        if found is None or found.media_count is not None:
            return row_of(conn, found) if found else None
    with reading(conn):
        found = state.load(conn, key)
        return row_of(conn, found) if found else None


def sessions(
    conn: sqlite3.Connection, namespace: str, *, cwd: str | None, limit: int, before_ms: int | None
) -> list[SessionRow]:
    """Sessions of a namespace, the one last at work first; `cwd` keeps those of one working directory."""
    with reading(conn):
        rows = conn.execute(
            f"SELECT {COLUMNS} FROM session WHERE namespace = ? AND (? IS NULL OR cwd = ?) "  # noqa: S608 - our own columns
            "AND (? IS NULL OR active_ms < ?) ORDER BY active_ms DESC, id DESC LIMIT ?",
            (safe_id(namespace), *(2 * [None if cwd is None else well_formed(cwd)]), before_ms, before_ms, limit),
        ).fetchall()
        return [row_of(conn, Session(*row)) for row in rows]


def note(
    conn: sqlite3.Connection,
    key: SessionKey,
    *,
    decline: str = "",
    attempt: str = "",
    auto_failed: bool | None = None,
) -> None:
    """Count a decline by its reason and a failure in a row; remember an attempt that came to nothing.

    Does nothing to a missing session.
    """
    with writing(conn):
        found = state.load(conn, key)
        if found is None:
            return
        if decline:
            counts = json_value(found.declines)
            counts[decline] = counts.get(decline, 0) + 1
            found.declines = json_text(counts)
        if attempt:
            found.last_attempt = well_formed(attempt)
        if auto_failed is not None:
            found.auto_failures = found.auto_failures + 1 if auto_failed else 0
        state.save(conn, found)


def position(conn: sqlite3.Connection, namespace: str, source: str) -> SourcePosition | None:
    """How far a source was read, None where it never was."""
    with reading(conn):
        row = conn.execute(
            "SELECT p.source, p.offset, p.line, p.ordinal, p.head_hash, p.state, s.session_id FROM source p "
            "JOIN session s ON s.id = p.session WHERE p.namespace = ? AND p.source = ?",
            (safe_id(namespace), safe_id(source)),
        ).fetchone()
        return SourcePosition(*row) if row else None


def row_of(conn: sqlite3.Connection, found: Session) -> SessionRow:
    """The counters that a session's row holds."""
    return SessionRow(
        key=SessionKey(found.namespace, found.session_id),
        title=found.title,
        model=found.model,
        context_window=found.context_window,
        cwd=found.cwd,
        owner=found.owner,
        parent_session_id=found.parent_session_id,
        agent_id=found.agent_id,
        created_ms=found.created_ms,
        updated_ms=found.updated_ms,
        last_seq=found.last_seq,
        message_count=found.message_count,
        marker_seq=found.marker_seq,
        live_count=found.live_count,
        live_weight=found.live_weight,
        live_hash=found.live_hash.hex(),
        overhead_tokens=found.overhead_tokens,
        overhead_source=found.overhead_source,
        compactions=found.compactions,
        last_compaction_ms=found.last_compaction_ms,
        memory_version=found.memory_version,
        memory_mark_seq=found.memory_mark_seq,
        declines=json_value(found.declines) if found.declines != NO_DECLINES else {},
        last_attempt=found.last_attempt,
        body_bytes=found.body_bytes,
        client_tokens=derived.known_client_tokens(conn, found),
        forked_at=found.forked_at,
        auto_failures=found.auto_failures,
        active_ms=found.active_ms,
        memory_weight=Weight(found.memory_units),
        media=derived.known_media(conn, found),
    )
