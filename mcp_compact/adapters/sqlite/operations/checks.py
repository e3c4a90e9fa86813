"""Looking whether the archive is sound: for a doctor, never at start-up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations.live import recount
from mcp_compact.adapters.sqlite.operations.rows import is_intact
from mcp_compact.adapters.sqlite.operations.state import COLUMNS, Session
from mcp_compact.ports.store import SessionKey

WAL_FAULT_MENDED = (3, 51, 3)
"""SQLite before this release can damage a WAL that several connections check-point at one moment."""
MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class Health:
    """What was found; everything is well where all three lists are empty."""

    sqlite_version: str
    has_wal_fault: bool
    journal_mode: str
    damage: tuple[str, ...]
    """What SQLite says of the file's structure."""
    wrong_totals: tuple[SessionKey, ...]
    """Sessions whose live totals are not the recount."""
    wrong_bodies: tuple[tuple[SessionKey, int], ...]
    """Session and seq of records whose bytes are not those that were stored."""
    waiting: int
    """Records that are not in the full-text index yet."""


def check(conn: sqlite3.Connection, *, bodies: bool = False) -> Health:
    """Check structure and totals, with `bodies` also every stored byte (it reads the whole file)."""
    with reading(conn):
        damage = tuple(row[0] for row in conn.execute(f"PRAGMA quick_check({MAX_FINDINGS})") if row[0] != "ok")
        return Health(
            sqlite_version=sqlite3.sqlite_version,
            has_wal_fault=sqlite3.sqlite_version_info < WAL_FAULT_MENDED,
            journal_mode=str(conn.execute("PRAGMA journal_mode").fetchone()[0]),
            damage=damage,
            wrong_totals=tuple(_wrong_totals(conn)),
            wrong_bodies=tuple(_wrong_bodies(conn)) if bodies else (),
            waiting=conn.execute("SELECT last_record - indexed_record FROM archive").fetchone()[0],
        )


def _wrong_totals(conn: sqlite3.Connection) -> Iterator[SessionKey]:
    for row in conn.execute(f"SELECT {COLUMNS} FROM session").fetchall():  # noqa: S608 - our own columns
        session = Session(*row)
        if recount(conn, session) != session.totals:
            yield SessionKey(session.namespace, session.session_id)


def _wrong_bodies(conn: sqlite3.Connection) -> Iterator[tuple[SessionKey, int]]:
    rows = conn.execute(
        "SELECT s.namespace, s.session_id, r.seq, r.body_hash, b.data FROM record r JOIN session s ON s.id = r.session "
        "LEFT JOIN body b ON b.id = r.body_id ORDER BY r.id"
    )
    for namespace, session_id, seq, digest, data in rows:
        if not is_intact(data, digest):
            yield SessionKey(namespace, session_id), seq
