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
        "Another process kept the store locked for longer than a call waits.",
        "Nothing was stored; call again. If it stays so, look for a process that hangs.",
    ),
    sqlite3.SQLITE_FULL: ("disk_full", "The disk is full.", "Nothing was stored; free some space and call again."),
    sqlite3.SQLITE_READONLY: (
        "store_read_only",
        "The store cannot be written.",
        "Nothing was stored. Check how the disk is mounted, and who may write the file, its -wal, -shm and folder.",
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
_BY_RESULT[sqlite3.SQLITE_LOCKED] = _BY_RESULT[sqlite3.SQLITE_PROTOCOL] = _BY_RESULT[sqlite3.SQLITE_BUSY]
_BY_RESULT[sqlite3.SQLITE_PERM] = _BY_RESULT[sqlite3.SQLITE_CANTOPEN]

WAY_OUT = "`mcp-compact rescue` saves what can be read into a new file, `mcp-compact restore FILE` puts a backup back."
_BY_RESULT[sqlite3.SQLITE_CORRUPT] = ("store_damaged", "The store is damaged.", f"Nothing was changed. {WAY_OUT}")
_BY_RESULT[sqlite3.SQLITE_NOTADB] = (
    "store_damaged",
    "The file is no SQLite database, or its beginning is damaged.",
    f"Nothing was changed. Is it the right file? {WAY_OUT}",
)

# What only network and shared folders answer: there are no locks, or no memory that processes share.
_NO_LOCKS = (sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK)
_NO_SHARED_MEMORY = (
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
)
_BY_EXTENDED = dict.fromkeys(
    (*_NO_LOCKS, *_NO_SHARED_MEMORY),
    (
        "store_unlockable",
        "The file system of the store gives no locks that processes can share, or the disk is full.",
        "Nothing was stored. Free some space; on a network or shared folder, let MCP_COMPACT_DB name a local file.",
    ),
)

_BY_ERRNO = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EROFS: sqlite3.SQLITE_READONLY,
}


def of_sqlite(error: sqlite3.Error) -> ServerError | None:
    """The failure that an SQLite error means; None for a defect of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    if _is_damage(error, code):
        return ServerError(*_BY_RESULT[sqlite3.SQLITE_CORRUPT])
    if code is None:
        return None
    known = _BY_EXTENDED.get(code) or _BY_RESULT.get(code & _PRIMARY)
    return ServerError(*known) if known else None


def is_damage(error: sqlite3.Error) -> bool:
    """Does an SQLite error mean that what is stored cannot be read?"""
    failure = of_sqlite(error)
    return failure is not None and failure.code == "store_damaged"


def _is_damage(error: sqlite3.Error, code: int | None) -> bool:
    """Damage that SQLite does not call so: text that is none, tables that were there when the archive was opened."""
    said = str(error)
    return (code is None and said.startswith("Could not decode to UTF-8")) or (
        code == sqlite3.SQLITE_ERROR and said.startswith(("no such table", "no such column"))
    )


def of_unreadable_schema() -> ServerError:
    """The list of tables is no text any more."""
    return ServerError(*_BY_RESULT[sqlite3.SQLITE_CORRUPT])


class DamagedBodyError(ServerError):
    """The bytes of a record are not those that were stored. `session` is the number of its row."""

    def __init__(self, session: int, seq: int, uuid: str, session_id: str = "") -> None:
        where = f" of session {session_id!r}" if session_id else ""
        super().__init__(
            "body_damaged",
            f"Message {uuid} (record {seq}){where} is damaged: its bytes are not those that were stored.",
            f"Other messages can be read. {WAY_OUT}",
        )
        self.session, self.seq, self.uuid = session, seq, uuid


def of_system(error: OSError) -> ServerError:
    """The failure that an error of the file system means."""
    code, message, hint = _BY_RESULT[_BY_ERRNO.get(error.errno or 0, sqlite3.SQLITE_CANTOPEN)]
    reason = error.strerror or type(error).__name__
    return ServerError(code, f"{message} ({reason})", hint)
