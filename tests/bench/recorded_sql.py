"""The SQL of an operation, recorded while it runs, and run again without it: the raw operation to compare with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_compact.adapters.sqlite.connection import ArchiveConnection


@dataclass(slots=True)
class Statement:
    """One statement with its values, and how many rows were read of it."""

    sql: str
    values: Any = ()
    many: bool = False
    rows: int = 0


@dataclass(slots=True)
class Recording:
    """The statements of an operation, in order."""

    statements: list[Statement] = field(default_factory=list)

    def replay(self, conn: sqlite3.Connection) -> list[tuple[Any, ...]]:
        """Run them again; as many rows as were read."""
        rows: list[tuple[Any, ...]] = []
        for one in self.statements:
            if one.many:
                conn.executemany(one.sql, one.values)
            else:
                found = conn.execute(one.sql, one.values)
                if one.rows:
                    rows += found.fetchmany(one.rows)
                    found.close()
        return rows

    @property
    def reads(self) -> list[Statement]:
        """Those that read rows of tables."""
        return [one for one in self.statements if one.sql.lstrip().upper().startswith(("SELECT", "WITH"))]


class _Counting(sqlite3.Cursor):
    """Notes how many rows were read."""

    statement = Statement("")

    def __next__(self) -> Any:
        row = super().__next__()
        self.statement.rows += 1
        return row

    def fetchone(self) -> Any:
        row = super().fetchone()
        self.statement.rows += row is not None
        return row

    def fetchall(self) -> list[Any]:
        rows = super().fetchall()
        self.statement.rows += len(rows)
        return rows


@contextmanager
def recording(*, take_back: bool = False) -> Iterator[Recording]:
    """Record what every connection to an archive runs meanwhile.

    With `take_back` nothing of it stays: each commit rolls back, so that the recording can be run on the same file.
    """
    kept = Recording()

    def execute(conn: ArchiveConnection, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        one = Statement(sql, values)
        kept.statements.append(one)
        cursor = conn.cursor(_Counting)
        cursor.statement = one
        return cursor.execute("ROLLBACK" if take_back and sql == "COMMIT" else sql, values)

    def executemany(conn: ArchiveConnection, sql: str, values: Iterable[Any], /) -> sqlite3.Cursor:
        whole = list(values)
        kept.statements.append(Statement(sql, whole, many=True))
        return conn.cursor().executemany(sql, whole)

    # The class has neither of its own: its instances use what SQLite's connection has.
    ArchiveConnection.execute = execute  # type: ignore[method-assign, assignment]
    ArchiveConnection.executemany = executemany  # type: ignore[assignment]
    try:
        yield kept
    finally:
        del ArchiveConnection.execute
        del ArchiveConnection.executemany


def plain(path: Path) -> sqlite3.Connection:
    """A connection of plain SQLite to an archive, set as the archive sets its own."""
    conn = sqlite3.connect(path, timeout=30, isolation_level=None, cached_statements=256)
    for pragma in ("synchronous=NORMAL", "temp_store=MEMORY", "cache_size=-8000", "wal_autocheckpoint=0"):
        conn.execute(f"PRAGMA {pragma}").fetchall()
    return conn
