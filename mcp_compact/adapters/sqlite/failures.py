"""SQLite's and the system's errors as ours: what is wrong with the store, and what to do next."""

from __future__ import annotations

import errno
import sqlite3

from mcp_compact.errors import ServerError

_PRIMARY = 0xFF
"""An extended result code holds the primary one in its low byte."""

_BY_RESULT = {
    sqlite3.SQLITE_BUSY: (
        "store_locked",
        "Another process kept the store locked for too long.",
        "Nothing was stored; call again. If it stays so, look for a process that hangs.",
    ),
    sqlite3.SQLITE_FULL: ("disk_full", "The disk is full.", "Nothing was stored; free some space and call again."),
    sqlite3.SQLITE_READONLY: (
        "store_read_only",
        "The store cannot be written.",
        "Check the permissions of the file, its -wal and -shm files and its folder.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "store_unreachable",
        "The store cannot be opened.",
        "Check that the file and its folder exist and may be read and written.",
    ),
    sqlite3.SQLITE_IOERR: (
        "store_io",
        "Reading or writing the store failed.",
        "Nothing was stored; check the disk and its free space, then call again.",
    ),
}
_BY_RESULT[sqlite3.SQLITE_LOCKED] = _BY_RESULT[sqlite3.SQLITE_BUSY]
_BY_RESULT[sqlite3.SQLITE_PERM] = _BY_RESULT[sqlite3.SQLITE_CANTOPEN]

DAMAGED = (
    "store_damaged",
    "The store is damaged or is no archive of ours.",
    "Nothing was changed. Move the file away together with its -wal and -shm files, or restore a backup.",
)
_BY_RESULT[sqlite3.SQLITE_CORRUPT] = DAMAGED
_BY_RESULT[sqlite3.SQLITE_NOTADB] = DAMAGED

_BY_ERRNO = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EROFS: sqlite3.SQLITE_READONLY,
}


def of_sqlite(error: sqlite3.Error) -> ServerError | None:
    """The failure that an SQLite error means; None for a defect of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    known = _BY_RESULT.get(code & _PRIMARY)
    return ServerError(*known) if known else None


def of_system(error: OSError) -> ServerError:
    """The failure that an error of the file system means."""
    code, message, hint = _BY_RESULT[_BY_ERRNO.get(error.errno or 0, sqlite3.SQLITE_CANTOPEN)]
    reason = error.strerror or type(error).__name__
    return ServerError(code, f"{message} ({reason})", hint)
