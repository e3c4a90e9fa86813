"""Connections to the archive, and its transactions.

WAL on local disks, a rollback journal on network and shared folders (WAL needs shared memory). Where nothing can be
written, the file is read as it stands.
SQLite before 3.51.3 has a rare fault when several connections check-point one WAL file at the same
moment, so nothing is check-pointed but under a file lock.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcp_compact.adapters.sqlite import failures, filesystem
from mcp_compact.adapters.sqlite.migrations import check_ours, migrate
from mcp_compact.adapters.sqlite.waiting import PatientConnection, begin_writing, set_patience_ms
from mcp_compact.errors import ServerError

if sys.platform != "win32":
    import fcntl

BUSY_SECONDS = 30.0
"""How long a call waits for the lock of another process."""
WAL_BYTES = 4 * 1024 * 1024
"""The WAL is check-pointed when it is larger, and cut back to this."""
IN_MEMORY = ":memory:"


class ArchiveConnection(PatientConnection):
    """A connection that knows where its file is and how it is journalled."""

    path: str = IN_MEMORY
    journal_mode: str = "memory"
    waits_for_disk: bool = False
    """Does a commit wait until it is on the disk?"""
    may_wait: bool = True
    """May an operation wait, for another process or for a check-point? Not while other calls wait for it."""


def connect(path: str | os.PathLike[str], *, full_sync: bool = False) -> ArchiveConnection:
    """Open the archive at `path` (`:memory:` for one in memory), made or brought up to date where needed.

    `full_sync` waits for the disk at each commit, so that a power loss takes nothing; without it a power loss may
    take the last commits, a killed process none. Raises ServerError (`newer_schema`, `store_damaged`,
    `store_read_only`, `disk_full`, `store_locked`, `store_unreachable`, `foreign_database`).
    """
    place = os.fspath(path)
    if place != IN_MEMORY:
        try:
            filesystem.prepare(Path(place))
        except OSError as error:
            raise failures.of_system(error) from error
    with failing_clearly():
        try:
            return _opened(place, place, full_sync=full_sync)
        except UnicodeDecodeError as error:
            raise failures.of_unreadable_schema() from error
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF != sqlite3.SQLITE_CANTOPEN or not _is_at_rest(place):
                raise
        # SQLite makes files beside a WAL database even to read it, unless it is told that nobody can change it.
        return _opened(place, f"{Path(place).resolve().as_uri()}?immutable=1", full_sync=full_sync)


def _is_at_rest(place: str) -> bool:
    """Is it a whole archive that nothing can be written to? What waits in a WAL would be passed over."""
    path = Path(place)
    if place == IN_MEMORY or not path.is_file() or not filesystem.is_read_only(path):
        return False
    if not filesystem.wal_bytes(path):
        return True
    raise ServerError(
        "store_read_only",
        f"The store lies where nothing can be written, and its last changes wait in {path.name}-wal.",
        f"Copy {path.name} and {path.name}-wal into one folder elsewhere, and let MCP_COMPACT_DB name the copy.",
    )


def _opened(place: str, name: str, *, full_sync: bool) -> ArchiveConnection:
    conn = sqlite3.connect(
        name,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        factory=ArchiveConnection,
        cached_statements=256,
        # The store runs short operations on another thread, one at a time.
        check_same_thread=False,
        uri=name != place,
    )
    conn.path, conn.patience_ms = place, int(BUSY_SECONDS * 1000)
    try:
        shared = place != IN_MEMORY and filesystem.shared_kind(Path(place))
        if shared and filesystem.is_wal(Path(place)):
            _leave_wal(conn)
        check_ours(conn)
        _set_up(conn, shared=bool(shared), full_sync=full_sync)
        migrate(conn)
    except BaseException:
        conn.close()
        raise
    else:
        return conn


def _leave_wal(conn: sqlite3.Connection) -> None:
    """Bring in the WAL of an archive that was moved to a network folder, without the memory that it cannot share.

    Under a lock that nobody else may hold meanwhile, so that another machine's WAL is never passed over.
    """
    conn.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
    _journal(conn, "truncate")
    conn.execute("PRAGMA locking_mode=NORMAL").fetchall()
    # The lock is given back by the next access alone.
    conn.execute("SELECT count(*) FROM sqlite_master").fetchall()


def _set_up(conn: ArchiveConnection, *, shared: bool, full_sync: bool) -> None:
    conn.journal_mode = _journal(conn, "truncate" if shared else "wal")
    conn.waits_for_disk = full_sync or shared
    conn.execute(f"PRAGMA synchronous={'FULL' if conn.waits_for_disk else 'NORMAL'}")
    conn.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
    conn.execute("PRAGMA temp_store=MEMORY")
    # Large enough for the pages of five indexes while a batch goes in.
    conn.execute("PRAGMA cache_size=-8000")
    if sys.platform != "win32":
        conn.execute("PRAGMA wal_autocheckpoint=0")


def _journal(conn: sqlite3.Connection, mode: str) -> str:
    """Set the journal mode; SQLite does not wait by itself where another process holds the file."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return str(conn.execute(f"PRAGMA journal_mode={mode}").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
                return str(conn.execute("PRAGMA journal_mode").fetchone()[0])
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def failing_clearly() -> Iterator[None]:
    """SQLite's failures as ServerError; defects stay what they are."""
    try:
        yield
    except sqlite3.Error as error:
        failure = failures.of_sqlite(error)
        if failure is None:
            raise
        raise failure from error


@contextmanager
def writing(conn: sqlite3.Connection) -> Iterator[None]:
    """One write transaction: committed at the end, else rolled back, whatever happened."""
    # As `failing_clearly`, which would be a second frame around each append.
    try:
        begin_writing(conn)
        try:
            yield
            conn.execute("COMMIT")
        except failures.DamagedBodyError as damage:
            named = _named(conn, damage)
            _roll_back(conn)
            raise named from None
        except BaseException:
            _roll_back(conn)
            raise
    except sqlite3.Error as error:
        failure = failures.of_sqlite(error)
        if failure is None:
            raise
        raise failure from error
    if isinstance(conn, ArchiveConnection) and conn.journal_mode == "wal":
        _check_point_if_due(conn)


@contextmanager
def reading(conn: sqlite3.Connection) -> Iterator[None]:
    """One read transaction: everything is read of the same state, and no lock is taken that a writer minds."""
    with failing_clearly():
        conn.execute("BEGIN")
        try:
            yield
        except failures.DamagedBodyError as damage:
            raise _named(conn, damage) from None
        finally:
            _roll_back(conn)


def _named(conn: sqlite3.Connection, damage: failures.DamagedBodyError) -> failures.DamagedBodyError:
    """The same with the id of its session."""
    row = conn.execute("SELECT session_id FROM session WHERE id = ?", (damage.session,)).fetchone()
    return failures.DamagedBodyError(damage.session, damage.seq, damage.uuid, row[0] if row else "")


def _roll_back(conn: sqlite3.Connection) -> None:
    # SQLite rolls back by itself where the disk is full; a second time would raise.
    if conn.in_transaction:
        with suppress(sqlite3.Error):
            conn.execute("ROLLBACK")


def _check_point_if_due(conn: ArchiveConnection) -> None:
    """Check-point a WAL that has grown, unless another process is at it."""
    if conn.may_wait and has_grown(conn):
        check_point(conn)


def has_grown(conn: ArchiveConnection) -> bool:
    """Is the WAL so large that it should be check-pointed?"""
    try:
        return conn.journal_mode == "wal" and os.stat(conn.path + "-wal").st_size > WAL_BYTES  # noqa: PTH116 - asked at each write
    except OSError:
        return False


def set_patience(conn: ArchiveConnection, *, may_wait: bool) -> None:
    """May what follows wait? If not, what another process locks fails at once (`store_locked`)."""
    if conn.may_wait != may_wait:
        set_patience_ms(conn, int(BUSY_SECONDS * 1000) if may_wait else 0)
        conn.may_wait = may_wait


def check_point(conn: ArchiveConnection, mode: str = "PASSIVE") -> bool:
    """Move the WAL into the file under the archive's file lock; False where that could not be done now.

    A failure is left to the next writer: what was committed is in the WAL.
    """
    with suppress(OSError, sqlite3.OperationalError), _file_lock(conn.path + "-lock"):
        conn.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        return True
    return False


@contextmanager
def _file_lock(path: str) -> Iterator[None]:
    """A lock between processes; raises BlockingIOError where another one holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
