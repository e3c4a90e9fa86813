"""Searching everything ever stored: the index where it reaches, then the texts themselves, newest first."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.failures import is_damage
from mcp_compact.adapters.sqlite.operations import search_filters
from mcp_compact.adapters.sqlite.operations.encoding import ids_of, safe_id
from mcp_compact.adapters.sqlite.operations.indexing import catch_up
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, inner_message, is_sound, parsed, record_of_row
from mcp_compact.adapters.sqlite.operations.search_hits import Match, hits_of
from mcp_compact.adapters.sqlite.operations.searchable import Query, query_of, readable, readable_content
from mcp_compact.messages.blocks import ToolUseBlock, parse_content
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.search import Found, SearchQuery

INDEX_SECONDS = 1.0
READ_SECONDS = 1.0
"""So long a search indexes, and so long it reads texts, at most."""
RANKED = 1_000
"""Where the best come first, so many newest messages that hold the words are compared."""
_MAX_ID = (1 << 63) - 1
# S608: the columns are this package's own. `{more}` are further conditions, ours too.
_COLUMNS = f"SELECT r.id, s.session_id, s.id, r.calls, r.results, {WHOLE}"
_OURS = (
    "s.namespace = :namespace AND s.session_id = coalesce(:session_id, s.session_id) AND s.cwd = coalesce(:cwd, s.cwd)"
)
_READ = (
    f"{_COLUMNS} FROM record r CROSS JOIN session s ON s.id = r.session JOIN body b ON b.id = r.body_id "
    f"WHERE r.id > :after AND r.id < :before AND {_OURS}{{more}} ORDER BY r.id DESC"
)
# Ids grow with seq: what is older than the newest record that is indexed already is not looked at.
_READ_SESSION = (
    f"{_COLUMNS} FROM session s CROSS JOIN record r ON r.session = s.id JOIN body b ON b.id = r.body_id "  # noqa: S608
    "WHERE s.id = :session AND r.seq > coalesce((SELECT o.seq FROM record o WHERE o.session = :session "
    "AND o.id <= :after ORDER BY o.seq DESC LIMIT 1), 0) AND r.id < :before{more} ORDER BY r.seq DESC"
)
_INDEXED = (
    f"{_COLUMNS} FROM fts f CROSS JOIN record r ON r.id = f.rowid JOIN session s ON s.id = r.session "
    "JOIN body b ON b.id = r.body_id WHERE f.fts MATCH :expression AND f.rowid > :oldest AND f.rowid < :before "
    f"AND {_OURS}{{more}} ORDER BY f.rowid DESC"
)
_NEXT_READ = "SELECT id FROM record WHERE id > :after AND id < :before ORDER BY id DESC LIMIT 1"
_NEXT_INDEXED = (
    "SELECT rowid FROM fts WHERE fts MATCH :expression AND rowid > :oldest AND rowid < :before "
    "ORDER BY rowid DESC LIMIT 1"
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
    query: Query
    limit: int
    counts: bool
    """Are the words of each match counted?"""
    deadline: float
    matches: list[Match] = field(default_factory=list)
    last_id: int | None = None
    """Row of the last match; where time ran out, of the last record that was read."""
    more: bool = False
    complete: bool = True
    seen_id: int = 0
    """Row of the last record that was looked at."""
    unreadable: int = 0
    """Records whose pages cannot be read."""

    @property
    def is_done(self) -> bool:
        """Was enough found, or is time over?"""
        return self.more or not self.complete

    def read(self, sql: str, next_id: str, given: dict[str, object]) -> None:
        """Look into what a statement gives, newest first; past records whose pages are damaged.

        `next_id` gives the next record that the statement may have come to. What cannot be told without a damaged
        page, such as which records hold the words, is an error as everywhere else.
        """
        bounds = given
        while not self.is_done:
            self.seen_id = 0
            try:
                self.look(self.conn.execute(sql, bounds))
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
            else:
                return
            bounds = self._past_one(sql, next_id, {**bounds, "before": self.seen_id or bounds["before"]})

    def _past_one(self, sql: str, next_id: str, bounds: dict[str, object]) -> dict[str, object]:
        """Look at the next record alone, and go on behind it."""
        row = self.conn.execute(next_id, bounds).fetchone()
        if row is None:
            return {**bounds, "before": 0}
        only = {**bounds, "before": row[0] + 1, "after": row[0] - 1, "oldest": row[0] - 1}
        try:
            self.look(self.conn.execute(sql, only))
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.unreadable += 1
        if not self.is_done and time.monotonic() > self.deadline:
            self.complete, self.last_id = False, row[0]
        return {**bounds, "before": row[0]}

    def look(self, rows: Iterator[tuple[Any, ...]]) -> None:
        """Look into rows until enough is found, or time is over."""
        for row in rows:
            self.seen_id = row[0]
            text, content = _text_of(row[5:])
            at = self.query.find(text)
            if at is not None and len(self.matches) == self.limit:
                self.more = True
                return
            if at is not None:
                score = self.query.count(text) if self.counts else 0
                self.matches.append(_match(row, content, text, at, score))
                self.last_id = row[0]
            if time.monotonic() > self.deadline:
                self.complete, self.last_id = False, row[0]
                return


def _text_of(row: tuple[Any, ...]) -> tuple[str, object]:
    """What can be read of a row of `WHOLE`, and the content of its message."""
    if not is_sound(row):
        return "", None
    raw = parsed(row[2] if row[3] is None else row[3])
    content = inner_message(raw).get("content") if row[4] is not None else None
    text = readable_content(content)
    return readable(record_of_row(row)) if text is None else text, content


def _match(row: tuple[Any, ...], content: object, text: str, at: int, score: int) -> Match:
    calls, results, kind, role, at_ms, seq = row[3], row[4], row[6], row[9], row[13], row[14]
    return Match(
        row_id=row[0],
        session_id=row[1],
        session=row[2],
        uuid=row[5],
        seq=seq,
        role=role or "",
        type=kind,
        at_ms=at_ms,
        call=_first_call(content) if calls else "",
        result=ids_of(results)[0] if results else "",
        text=text,
        at=at,
        score=score,
    )


def _first_call(content: object) -> str:
    blocks = parse_content(content)
    return next((block.name for block in blocks if isinstance(block, ToolUseBlock)), "")


def search(conn: sqlite3.Connection, namespace: str, query: SearchQuery) -> Found:
    """Records that hold all words of the text, newest first or best first; any text is searched for, none is an error.

    What is not in the index yet is indexed for a second at most, then read through; `complete` says
    whether everything was searched. Raises CallerError (`unknown_boundary`). Records on damaged pages are passed over.
    """
    words = query_of(query.text)
    if not words.words or query.limit < 1:
        return Found((), 0, complete=True)
    if query.catches_up:
        catch_up(conn, INDEX_SECONDS)
    with reading(conn):
        limit = RANKED if query.best else query.limit
        work = _Search(conn, words, limit, query.best, time.monotonic() + READ_SECONDS)
        before = _look_everywhere(work, safe_id(namespace), query)
        if query.best:
            return _best(work, namespace, query, before)
        hits = hits_of(conn, safe_id(namespace), work.matches)
    next_before = work.last_id if work.more or not work.complete else None
    return Found(hits, len(hits) + work.more, work.complete, next_before, unreadable=work.unreadable)


def _best(work: _Search, namespace: str, query: SearchQuery, before: int) -> Found:
    """A page of the matches, those with most hits first; later pages compare the same messages."""
    ordered = sorted(work.matches, key=lambda match: (-match.score, -match.row_id))
    start = max(0, query.skip)
    page = ordered[start : start + query.limit]
    given = start + len(page)
    hits = hits_of(work.conn, safe_id(namespace), page)
    more = given < len(ordered)
    next_before = before if more else None
    return Found(hits, len(ordered) + work.more, work.complete, next_before, given, work.more, work.unreadable)


def _look_everywhere(work: _Search, namespace: str, query: SearchQuery) -> int:
    """Search what the query asks for; the row before which everything was looked at."""
    conn, expression = work.conn, work.query.expression
    indexed, last = conn.execute("SELECT indexed_record, last_record FROM archive").fetchone()
    indexed = indexed if expression else 0
    given = {
        "namespace": namespace,
        "session_id": None if query.session_id is None else safe_id(query.session_id),
        "cwd": None if query.cwd is None else well_formed(query.cwd),
        **search_filters.values(conn, namespace, query),
    }
    session, oldest, newest = 0, 1, _MAX_ID - 1
    before = last + 1 if query.before is None else min(query.before, last + 1)
    if query.session_id is not None:
        session, oldest, newest = conn.execute(_SPAN, given).fetchone()
        if session is None:
            return int(before)
    more, upper = search_filters.narrowing(query), min(before, newest + 1)
    if upper > indexed + 1:
        sql = _READ if query.session_id is None else _READ_SESSION
        bounds = {"session": session, "after": indexed, "before": upper}
        work.read(sql.format(more=more), _NEXT_READ, {**given, **bounds})
    if expression and not work.more:
        # A reading that ran out of time must not keep back what the index knows.
        work.deadline = time.monotonic() + READ_SECONDS
        bounds = {"expression": expression, "oldest": oldest - 1, "before": upper}
        work.read(_INDEXED.format(more=more), _NEXT_INDEXED, {**given, **bounds})
    return int(before)
