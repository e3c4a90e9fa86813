"""Versions of the session memory, each with the record it was written up to."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.connection import reading, writing
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.chain import seq_of
from mcp_compact.adapters.sqlite.operations.encoding import safe_id_or_none
from mcp_compact.adapters.sqlite.operations.sessions import existing
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.compaction.snapshot import Memory
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.weights import estimate_units
from mcp_compact.ports.store import SessionKey


def memory(conn: sqlite3.Connection, key: SessionKey, version: int | None = None) -> Memory | None:
    """The newest version, or the one that is asked for; None where there is none."""
    with reading(conn):
        session = state.load(conn, key)
        return memory_of(conn, session, version) if session else None


def memory_of(conn: sqlite3.Connection, session: Session, version: int | None = None) -> Memory | None:
    """`memory` inside of an open transaction."""
    row = conn.execute(
        "SELECT text, version, mark_uuid, mark_seq, covers_all, writer FROM memory WHERE session = ? AND version = ?",
        (session.id, session.memory_version if version is None else version),
    ).fetchone()
    if row is None:
        return None
    text, number, mark_uuid, mark_seq, covers_all, writer = row
    if mark_seq is None and mark_uuid is not None:
        # The record may have come after the memory that names it.
        mark_seq = seq_of(conn, session.id, mark_uuid)
    mark = MessageUuid(mark_uuid) if mark_uuid is not None else None
    return Memory(text, number, mark, mark_seq, bool(covers_all), writer)


def write_memory(  # noqa: PLR0913 - what a version is made of
    conn: sqlite3.Connection,
    key: SessionKey,
    text: str,
    mark_uuid: MessageUuid | None,
    writer: str,
    now_ms: int,
    *,
    if_version: int | None = None,
) -> Memory:
    """Add a version. Raises CallerError: `no_such_session`, `memory_changed` (it is at another than `if_version`)."""
    with writing(conn):
        session = existing(conn, key)
        if if_version is not None and session.memory_version != if_version:
            raise CallerError("memory_changed", "The memory was written by others meanwhile.", "Call again.")
        written = insert_memory(conn, session, text, mark_uuid, writer, now_ms)
        session.updated_ms = now_ms
        state.save(conn, session)
        return written


def insert_memory(
    conn: sqlite3.Connection, session: Session, text: str, mark_uuid: MessageUuid | None, writer: str, now_ms: int
) -> Memory:
    """Add a version inside of an open transaction; the caller saves the session's row."""
    mark = safe_id_or_none(mark_uuid)
    mark_seq = seq_of(conn, session.id, mark) if mark is not None else None
    session.memory_version += 1
    session.memory_mark_seq = mark_seq
    clean = well_formed(text)
    session.memory_units = estimate_units(clean)
    conn.execute(
        "INSERT INTO memory (session, version, text, mark_uuid, mark_seq, writer, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (session.id, session.memory_version, clean, mark, mark_seq, well_formed(writer), now_ms),
    )
    kept = MessageUuid(mark) if mark is not None else None
    return Memory(clean, session.memory_version, kept, mark_seq, writer=writer)
