"""How large the archive is and of what, and which sessions could go by their age."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_compact.adapters.sqlite.connection import ArchiveConnection, check_point, failing_clearly, reading
from mcp_compact.ports.store import SessionKey

MERGED_PAGES = 2_000
"""Of the full-text index, a step: a lock is held for some tens of milliseconds."""
MOST_MERGES = 1_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the archive's file, by what they hold. What forks share is counted once for each."""

    file: int
    free: int
    """Of the file: pages that hold nothing and are used again; `vacuum` gives them back."""
    text: int
    index: int
    """The full-text index."""
    memory: int
    """All versions of all session memories, and pins."""

    @property
    def rest(self) -> int:
        """Rows of records, calls and results, their indexes, markers."""
        return max(0, self.file - self.free - self.text - self.index - self.memory)


@dataclass(frozen=True, slots=True)
class SessionSize:
    """What a session holds."""

    namespace: str
    session_id: str
    title: str
    cwd: str
    owner: str
    messages: int
    records: int
    text: int
    memory: int
    active_ms: int
    stored_ms: int
    is_agent: bool
    """Is it a sub-agent's?"""


def sizes(conn: sqlite3.Connection) -> Sizes:
    """What the file holds. Reads every page of the index, and none of the texts."""
    with reading(conn):
        page, pages, free = (
            int(conn.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_size", "page_count", "freelist_count")
        )
        return Sizes(
            file=page * pages,
            free=page * free,
            text=_sum(conn, "SELECT sum(body_bytes) FROM session"),
            index=_sum(conn, "SELECT sum(length(block)) FROM fts_data"),
            memory=_sum(conn, "SELECT sum(length(CAST(text AS BLOB))) FROM memory")
            + _sum(conn, "SELECT sum(length(CAST(text AS BLOB))) FROM pin"),
        )


def session_sizes(conn: sqlite3.Connection) -> list[SessionSize]:
    """Every session, the largest first."""
    with reading(conn):
        rows = conn.execute(
            "SELECT s.namespace, s.session_id, s.title, s.cwd, s.owner, s.message_count, s.last_seq, s.body_bytes, "
            "coalesce((SELECT sum(length(CAST(m.text AS BLOB))) FROM memory m WHERE m.session = s.id), 0), "
            "s.active_ms, s.updated_ms, s.parent_session_id IS NOT NULL AND s.forked_at IS NULL "
            "FROM session s ORDER BY s.body_bytes DESC, s.id"
        )
        return [SessionSize(*(*row[:11], bool(row[11]))) for row in rows]


def months(found: Sequence[SessionSize]) -> list[tuple[str, int, int]]:
    """Sessions by the month in which they were last at work: month, how many, bytes of text; oldest first."""
    sums: dict[str, tuple[int, int]] = {}
    for session in found:
        month = datetime.fromtimestamp(session.active_ms / 1000, UTC).strftime("%Y-%m")
        number, size = sums.get(month, (0, 0))
        sums[month] = (number + 1, size + session.text)
    return [(month, *sums[month]) for month in sorted(sums)]


def past(
    conn: sqlite3.Connection, namespace: str, before_ms: int, is_alive: Callable[[str], bool]
) -> tuple[list[SessionSize], list[SessionSize]]:
    """Sessions of which nothing was at work or stored since a moment; and those that stay although they are so old.

    These are in use (a client's process that still runs is at them, or they wait for a summary), or belong to one that
    stays: a session and its sub-agents go together.
    """
    found = [session for session in session_sizes(conn) if session.namespace == namespace]
    with reading(conn):
        used, roots = _used(conn, namespace, is_alive), _roots(conn, namespace)
    old = [s for s in found if max(s.active_ms, s.stored_ms) < before_ms]
    passed = {s.session_id for s in old} - used
    staying = {roots.get(s.session_id, s.session_id) for s in found if s.session_id not in passed}
    going = [s for s in old if roots.get(s.session_id, s.session_id) not in staying]
    gone = {s.session_id for s in going}
    return going, [s for s in old if s.session_id not in gone]


def _used(conn: sqlite3.Connection, namespace: str, is_alive: Callable[[str], bool]) -> set[str]:
    bound = conn.execute("SELECT client, session_id FROM binding WHERE namespace = ?", (namespace,)).fetchall()
    waiting = conn.execute(
        "SELECT s.session_id FROM pending p JOIN session s ON s.id = p.session WHERE p.namespace = ? AND p.used = 0",
        (namespace,),
    ).fetchall()
    return {session_id for client, session_id in bound if is_alive(client)} | {row[0] for row in waiting}


def _roots(conn: sqlite3.Connection, namespace: str) -> dict[str, str]:
    """Of each sub-agent's session the one that it belongs to in the end; forks are sessions of their own."""
    rows = conn.execute(
        "SELECT session_id, parent_session_id FROM session WHERE namespace = ? AND parent_session_id IS NOT NULL "
        "AND forked_at IS NULL",
        (namespace,),
    )
    parents: dict[str, str] = dict(rows.fetchall())
    out: dict[str, str] = {}
    for name in parents:
        at, seen = name, {name}
        while at in parents and parents[at] not in seen:
            at = parents[at]
            seen.add(at)
        out[name] = at
    return out


def keys(sessions: Sequence[SessionSize]) -> list[SessionKey]:
    """Their names."""
    return [SessionKey(session.namespace, session.session_id) for session in sessions]


def merge_index(conn: sqlite3.Connection) -> None:
    """Merge the full-text index in short steps, each its own transaction: writers go on in between."""
    with failing_clearly():
        for _ in range(MOST_MERGES):
            before = conn.total_changes
            conn.execute("INSERT INTO fts (fts, rank) VALUES ('merge', ?)", (-MERGED_PAGES,))
            # A step that changed nothing but its own counter was the last one.
            if conn.total_changes - before < 2:  # noqa: PLR2004 - see above
                return


def vacuum(conn: ArchiveConnection) -> None:
    """Write the file anew without its free pages. Nobody else may have it open: for a large one that takes a while."""
    with failing_clearly():
        conn.execute("VACUUM")
    if conn.journal_mode == "wal":
        with suppress(OSError):
            check_point(conn, "TRUNCATE")


def _sum(conn: sqlite3.Connection, sql: str) -> int:
    return int(conn.execute(sql).fetchone()[0] or 0)
