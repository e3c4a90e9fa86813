"""Looking into a file that may be an archive, a backup of one, damaged, or something else; nothing of it is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.adapters.sqlite import failures, filesystem
from mcp_compact.adapters.sqlite.migrations import APPLICATION_ID, schema_versions
from mcp_compact.adapters.sqlite.operations.rows import is_intact
from mcp_compact.errors import CallerError, ServerError

MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 30.0
BODIES_AT_ONCE = 2_000
FINDINGS = 5

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Examined:
    """What a whole archive holds."""

    schema: int
    sessions: int
    records: int
    bytes: int


def open_to_read(path: Path, *, is_copy: bool = False) -> sqlite3.Connection:
    """A connection that can change nothing. Raises sqlite3.Error where the file cannot be opened.

    `is_copy`: nobody writes to the file, unless a WAL lies beside it.
    """
    address = path.resolve().as_uri()
    if is_copy and not path.with_name(path.name + "-wal").exists():
        # Otherwise SQLite would make files beside a WAL database even to read it.
        return sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)
    conn = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        conn.execute("PRAGMA schema_version").fetchall()
    except sqlite3.OperationalError as error:
        conn.close()
        at_rest = not filesystem.wal_bytes(path) and path.is_file()
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN or not at_rest:
            raise
        # A WAL database where nothing can be made beside it.
        return sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)
    except sqlite3.DatabaseError:
        conn.close()
        raise
    return conn


def shared_kind(path: Path) -> str:
    """The kind of network or shared file system that the file lies on; empty for a local disk."""
    return filesystem.shared_kind(path)


def is_archive(path: Path) -> bool:
    """Does the header say that the file is an archive of ours?"""
    with path.open("rb") as stream:
        head = stream.read(100)
    return head.startswith(MAGIC) and int.from_bytes(head[68:72], "big") == APPLICATION_ID


def examine(path: Path, progress: Progress) -> Examined:
    """Check a whole file: what it is, its structure, and the bytes of every record.

    Raises CallerError (`no_archive`, `newer_schema`, `damaged_archive`, `unreadable_file`).
    """
    try:
        if not is_archive(path):
            raise CallerError("no_archive", f"{path} is no archive of mcp-compact.", "Name a file that `backup` wrote.")
        conn = open_to_read(path, is_copy=True)
        try:
            return _examined(conn, path, progress)
        finally:
            conn.close()
    except OSError as error:
        raise CallerError("unreadable_file", f"{path} cannot be read: {error.strerror}.", "Check it.") from error
    except sqlite3.DatabaseError as error:
        failure = failures.of_sqlite(error)
        if failure is not None and failure.code not in ("store_damaged", "store_io"):
            raise failure from error
        raise _damaged(path, str(error)) from error


def _examined(conn: sqlite3.Connection, path: Path, progress: Progress) -> Examined:
    newest = schema_versions()[-1][0]
    schema = int(conn.execute("PRAGMA user_version").fetchone()[0])
    if schema > newest:
        raise CallerError(
            "newer_schema", f"{path} has schema {schema}; this release knows {newest}.", "Upgrade mcp-compact first."
        )
    progress(0, 0, "checking the structure")
    said = [str(row[0]) for row in conn.execute(f"PRAGMA integrity_check({FINDINGS})")]
    if said != ["ok"]:
        raise _damaged(path, "; ".join(said)[:300])
    records = int(conn.execute("SELECT count(*) FROM record").fetchone()[0])
    rows = conn.execute(
        "SELECT r.body_hash, b.data, r.uuid FROM record r LEFT JOIN body b ON b.id = r.body_id ORDER BY r.id"
    )
    for done, (digest, data, uuid) in enumerate(rows):
        if not is_intact(data, digest):
            raise _damaged(path, f"message {uuid} is not as it was stored")
        if done % BODIES_AT_ONCE == 0:
            progress(done, records, "checking the messages")
    sessions = int(conn.execute("SELECT count(*) FROM session").fetchone()[0])
    return Examined(schema, sessions, records, path.stat().st_size)


def _damaged(path: Path, why: str) -> CallerError:
    return CallerError(
        "damaged_archive",
        f"{path} is damaged: {why}.",
        f"`mcp-compact rescue {path}` saves what can be read of it into a new file.",
    )


def schema_of(path: Path) -> int:
    """The schema's number by the header alone, which also a damaged file may have. Raises OSError."""
    with path.open("rb") as stream:
        return int.from_bytes(stream.read(64)[60:64], "big")


def refused(error: sqlite3.Error, doing: str) -> ServerError:
    """What SQLite said while something was done."""
    known = failures.of_sqlite(error)
    if known is None:
        return ServerError("store_failed", f"{doing} failed: {error}.", "Nothing was changed.")
    return ServerError(known.code, f"{doing} failed: {known.message}", known.hint)
