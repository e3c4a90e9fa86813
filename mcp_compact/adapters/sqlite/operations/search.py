"""Searching everything ever stored: the index where it reaches, then the texts themselves, newest first."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.adapters.sqlite.operations.indexing import catch_up
from mcp_compact.adapters.sqlite.operations.live import is_live
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import Query, masked_snippet, query_of, readable
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Found, Hit, SearchQuery, SessionKey

INDEX_SECONDS = 1.0
READ_SECONDS = 1.0
"""So long a search indexes, and so long it reads texts, at most."""
_MAX_ID = (1 << 63) - 1
# S608: the columns are this package's own.
_COLUMNS = f"SELECT r.id, s.session_id, {WHOLE}"
_OURS = (
    "s.namespace = :namespace AND s.session_id = coalesce(:session_id, s.session_id) AND s.cwd = coalesce(:cwd, s.cwd)"
)
_READ = (
    f"{_COLUMNS} FROM record r CROSS JOIN session s ON s.id = r.session JOIN body b ON b.id = r.body_id "
    f"WHERE r.id > :after AND r.id < :before AND {_OURS} ORDER BY r.id DESC"
)
_READ_SESSION = (
    f"SELECT r.id, :session_id, {WHOLE} FROM record r JOIN body b ON b.id = r.body_id "  # noqa: S608
    "WHERE r.session = :session AND r.id > :after AND r.id < :before ORDER BY r.seq DESC"
)
_INDEXED = (
    f"{_COLUMNS} FROM fts f CROSS JOIN record r ON r.id = f.rowid JOIN session s ON s.id = r.session "
    "JOIN body b ON b.id = r.body_id WHERE f.fts MATCH :expression AND f.rowid > :oldest AND f.rowid < :before "
    f"AND {_OURS} ORDER BY f.rowid DESC"
)
# Ids grow with seq, so a session's records lie between two of them.
_SPAN = (
    "SELECT s.id, min(r.id), max(r.id) FROM session s JOIN record r ON r.session = s.id AND r.seq IN (1, s.last_seq) "
    "WHERE s.namespace = :namespace AND s.session_id = :session_id AND (:cwd IS NULL OR s.cwd = :cwd)"
)


@dataclass(slots=True)
class _Search:
    """One search: what was found so far, and how long it may go on."""

    conn: sqlite3.Connection
    namespace: str
    query: Query
    limit: int
    deadline: float
    hits: list[Hit] = field(default_factory=list)
    last_id: int | None = None
    """Row of the last hit; where time ran out, of the last record that was read."""
    more: bool = False
    complete: bool = True
    sessions: dict[str, Session | None] = field(default_factory=dict)

    def look(self, rows: Iterator[tuple[Any, ...]]) -> None:
        """Look into rows until enough is found, or time is over."""
        for row in rows:
            record = record_of_row(row[2:])
            text = readable(record)
            at = self.query.find(text)
            if at is not None and len(self.hits) == self.limit:
                self.more = True
                return
            if at is not None:
                self.hits.append(self._hit(row[1], record, masked_snippet(text, at)))
                self.last_id = row[0]
            if time.monotonic() > self.deadline:
                self.complete, self.last_id = False, row[0]
                return

    def _hit(self, session_id: str, record: Record, found: str) -> Hit:
        if session_id not in self.sessions:
            self.sessions[session_id] = state.load(self.conn, SessionKey(self.namespace, session_id))
        session = self.sessions[session_id]
        assert session is not None  # noqa: S101 - the record's row was joined with it
        return Hit(
            session_id=session_id,
            uuid=record.uuid,
            seq=record.seq,
            role=record.message.role if record.message else "",
            type=record.type,
            at_ms=record.at_ms,
            tool=_tool(self.conn, session.id, record),
            snippet=found,
            is_live=is_live(self.conn, session, record.seq),
        )


def _tool(conn: sqlite3.Connection, session: int, record: Record) -> str:
    """The tool that the record calls, or whose result it holds; empty for neither."""
    if record.calls:
        return record.calls[0].name
    if not record.results:
        return ""
    row = conn.execute(
        "SELECT name FROM call WHERE session = ? AND tool_use_id = ? ORDER BY seq DESC LIMIT 1",
        (session, safe_id(record.results[0].tool_use_id)),
    ).fetchone()
    return str(row[0]) if row else ""


def search(conn: sqlite3.Connection, namespace: str, query: SearchQuery) -> Found:
    """Records that hold all words of the text, newest first; any text is searched for, none is an error.

    What is not in the index yet is indexed for a second at most, then read through; `complete` says
    whether everything was searched.
    """
    words = query_of(query.text)
    if not words.words or query.limit < 1:
        return Found((), 0, complete=True)
    catch_up(conn, INDEX_SECONDS)
    with reading(conn):
        work = _Search(conn, safe_id(namespace), words, query.limit, time.monotonic() + READ_SECONDS)
        _look_everywhere(work, query)
    next_before = work.last_id if work.more or not work.complete else None
    return Found(tuple(work.hits), len(work.hits) + work.more, work.complete, next_before)


def _look_everywhere(work: _Search, query: SearchQuery) -> None:
    conn, expression = work.conn, work.query.expression
    indexed = conn.execute("SELECT indexed_record FROM archive").fetchone()[0] if expression else 0
    given = {
        "namespace": work.namespace,
        "session_id": None if query.session_id is None else safe_id(query.session_id),
        "cwd": None if query.cwd is None else well_formed(query.cwd),
    }
    session, oldest, newest = 0, 1, _MAX_ID - 1
    if query.session_id is not None:
        session, oldest, newest = conn.execute(_SPAN, given).fetchone()
        if session is None:
            return
    before = newest + 1 if query.before is None else min(query.before, newest + 1)
    if before > indexed + 1:
        sql = _READ if query.session_id is None else _READ_SESSION
        work.look(conn.execute(sql, {**given, "session": session, "after": indexed, "before": before}))
    if expression and not work.more:
        # A reading that ran out of time must not keep back what the index knows.
        work.deadline = time.monotonic() + READ_SECONDS
        bounds = {"expression": expression, "oldest": oldest - 1, "before": before}
        work.look(conn.execute(_INDEXED, {**given, **bounds}))
