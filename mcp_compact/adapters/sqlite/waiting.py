"""Waiting for the write lock, so that nobody waits in vain while others get it again and again.

SQLite's own waiting asks the less often the longer it lasts, at last ten times a second: who has just come is served
before who has waited long, and a process that keeps the lock but for moments keeps the others out for good. Here who
waits asks the more often the longer it has waited.
"""

from __future__ import annotations

import sqlite3
import time

_FIRST_DELAYS_S = (0.0005, 0.001, 0.002, 0.004)
"""Most locks are held for some milliseconds."""
_DELAYS_S = ((1.0, 0.006), (5.0, 0.003), (float("inf"), 0.001))
"""Having waited up to so long: how long until the next try. A try costs some ten microseconds."""


class PatientConnection(sqlite3.Connection):
    """A connection that knows its own `busy_timeout`: to ask SQLite for it costs as much as to read a row."""

    patience_ms: int | None = None
    """None: nobody has set it."""


def set_patience_ms(conn: sqlite3.Connection, patience_ms: int) -> None:
    """Let the connection wait so long for locks."""
    conn.execute(f"PRAGMA busy_timeout={patience_ms}")
    if isinstance(conn, PatientConnection):
        conn.patience_ms = patience_ms


def patience_ms_of(conn: sqlite3.Connection) -> int:
    """How long the connection waits for locks."""
    known = conn.patience_ms if isinstance(conn, PatientConnection) else None
    return int(conn.execute("PRAGMA busy_timeout").fetchone()[0]) if known is None else known


def begin_writing(conn: sqlite3.Connection) -> None:
    """`BEGIN IMMEDIATE`, waiting as long as the connection's own `busy_timeout` says.

    Raises sqlite3.OperationalError (SQLITE_BUSY) where the lock is not given back in that time.
    """
    patience_ms = patience_ms_of(conn)
    if patience_ms == 0:
        conn.execute("BEGIN IMMEDIATE")
        return
    conn.execute("PRAGMA busy_timeout=0")
    try:
        _take(conn, patience_ms / 1000)
    finally:
        conn.execute(f"PRAGMA busy_timeout={patience_ms}")


def _take(conn: sqlite3.Connection, patience_s: float) -> None:
    begin, tries = 0.0, 0
    while True:
        try:
            conn.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            now = time.monotonic()
            begin = begin or now
            waited = now - begin
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= patience_s:
                raise
            time.sleep(_delay(tries, waited))
            tries += 1
        else:
            return


def _delay(tries: int, waited_s: float) -> float:
    if tries < len(_FIRST_DELAYS_S):
        return _FIRST_DELAYS_S[tries]
    return next(delay for until, delay in _DELAYS_S if waited_s < until)
