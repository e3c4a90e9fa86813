"""Copies of the whole archive: made while others write, put back in one transaction, and listed.

A list beside the archive says where its backups were written to, so that who forgets a session can be told.
"""

from __future__ import annotations

import glob
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from mcp_compact.adapters.sqlite import filesystem
from mcp_compact.adapters.sqlite.migrations import APPLICATION_ID, migrate
from mcp_compact.adapters.sqlite.operations.inspecting import (
    Examined,
    Progress,
    examine,
    is_archive,
    open_to_read,
    refused,
)
from mcp_compact.ancestors import is_alive, name_of
from mcp_compact.errors import CallerError, ServerError

LIST_SUFFIX = "-backups"
BESIDE = ("-wal", "-shm", "-journal")
IN_USE_SECONDS = 3.0
"""A hook has the archive open for moments only; a server for as long as it runs."""
LISTED = 5
_SHARED_LOCK = (0x40000002, 510)
"""The bytes of a database file that every open connection of SQLite holds a lock on, wherever the file's content is."""

if sys.platform != "win32":
    import fcntl


def back_up(conn: sqlite3.Connection, archive: Path, target: Path, progress: Progress) -> Examined:
    """Copy the archive of one moment to `target`, check the copy, and only then put it in place.

    In one step, which writers do not notice: in several, each of their writes would start it anew. Raises CallerError
    (`output_refused`, `backup_exists`), ServerError.
    """
    _refuse_target(archive, target)
    with part_of(target) as part:
        progress(0, 0, "copying")
        _copy(conn, part)
        done = examine(part, progress)
        put(part, target)
    _note(archive, target)
    return done


def _refuse_target(archive: Path, target: Path) -> None:
    if not target.parent.is_dir():
        raise CallerError(
            "no_output_folder", f"The folder {target.parent} does not exist.", "Make it, or name another."
        )
    if filesystem.wal_bytes(target) or target.with_name(target.name + "-journal").exists():
        raise CallerError("output_refused", f"{target} is open in another program, or was left by one that died.",
                          "Name another file.")  # fmt: skip
    if not target.exists():
        return
    if archive.exists() and target.samefile(archive):
        raise CallerError("output_refused", "That is the archive itself.", "Name another file.")
    if not target.is_file() or (target.stat().st_size and not is_archive(target)):
        raise CallerError("backup_exists", f"{target} is there and is no archive.", "Name another file.")


@contextmanager
def part_of(target: Path) -> Iterator[Path]:
    """A file beside the target for its owner alone, gone afterwards unless it was moved."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    _remove_left(target)
    try:
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
        yield part
    except PermissionError as error:
        raise CallerError("output_refused", f"{target.parent} may not be written to.", "Name another.") from error
    finally:
        for suffix in ("", *BESIDE):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _remove_left(target: Path) -> None:
    """What processes that were killed left of their copies, where the system tells that they have ended."""
    if sys.platform == "win32":
        return
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part*"):
        number = left.name.removeprefix(f".{target.name}.").partition(".")[0]
        if number.isdigit() and not is_alive(name_of(int(number))):
            with suppress(OSError):
                left.unlink()


def _copy(conn: sqlite3.Connection, part: Path) -> None:
    """All pages of one moment, as one file that needs none beside it."""
    need = int(conn.execute("PRAGMA page_count").fetchone()[0]) * int(conn.execute("PRAGMA page_size").fetchone()[0])
    if need > shutil.disk_usage(part.parent).free:
        raise ServerError("disk_full", f"{part.parent} has no room for {need:,} bytes.", "Nothing was written.")
    try:
        with closing(sqlite3.connect(part, isolation_level=None)) as copy:
            conn.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode=DELETE").fetchall()
    except sqlite3.Error as error:
        raise refused(error, f"Copying into {part.parent}") from error


def put(part: Path, target: Path) -> None:
    """Move a whole file into place, on the disk before it is said to be there."""
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ------------------------------------------------------------------ back


def put_back(archive: Path, backup: Path, kept: Path, progress: Progress) -> tuple[Examined, bool]:
    """Make the archive what the backup is; what it was is kept as a backup at `kept` (False: there was nothing).

    The backup is checked and brought to this release's schema first, in a copy. Raises CallerError
    (`archive_in_use`, `foreign_database` and those of `examine`), ServerError; the archive is then as it was.
    """
    if archive.exists() and backup.exists() and archive.samefile(backup):
        raise CallerError("same_file", "That is the archive itself.", "Name a file that `backup` wrote.")
    found = examine(backup, progress)
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with part_of(archive) as part:
        progress(0, 0, "copying")
        _stage(backup, part)
        if not archive.exists() or not archive.stat().st_size:
            put(part, archive)
            return found, False
        try:
            _replace(archive, part, kept)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise refused(error, "Putting the backup back") from error
            _move_aside(archive, part, kept)
    _note(archive, kept)
    return found, True


def _stage(backup: Path, part: Path) -> None:
    try:
        with closing(open_to_read(backup, is_copy=True)) as source:
            _copy(source, part)
        with closing(sqlite3.connect(part, isolation_level=None)) as copy:
            migrate(copy)
    except sqlite3.Error as error:
        raise refused(error, "Reading the backup") from error


def _replace(archive: Path, part: Path, kept: Path) -> None:
    """Inside of the file itself, in one transaction: whoever opens it next finds the old archive or the new one."""
    with closing(sqlite3.connect(archive, timeout=IN_USE_SECONDS, isolation_level=None)) as old:
        old.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
        try:
            # Not given while any other connection is open; it brings the WAL in.
            old.execute("PRAGMA journal_mode=DELETE").fetchall()
            old.execute("BEGIN EXCLUSIVE")
            old.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise _in_use(archive) from error
            raise
        if old.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise CallerError("foreign_database", f"{archive} is a database of another program.",
                              "Let MCP_COMPACT_DB name another file.")  # fmt: skip
        old.execute("PRAGMA synchronous=FULL")
        with part_of(kept) as copy:
            _copy(old, copy)
            put(copy, kept)
        with closing(sqlite3.connect(part, isolation_level=None)) as new:
            new.backup(old, pages=-1)


def _move_aside(archive: Path, part: Path, kept: Path) -> None:
    """For a file that SQLite itself cannot read any more: there is no transaction in it."""
    if is_open(archive):
        raise _in_use(archive)
    for suffix in BESIDE:
        beside = archive.with_name(archive.name + suffix)
        if beside.exists():
            beside.replace(kept.with_name(kept.name + suffix))
    archive.replace(kept)
    put(part, archive)


def is_open(path: Path) -> bool:
    """Has another process a connection open? Told by SQLite's own lock; False where there is no way to ask."""
    if sys.platform == "win32":
        return False
    start, length = _SHARED_LOCK
    with path.open("r+b") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError:
            return True
    return False


def _in_use(archive: Path) -> CallerError:
    holders = filesystem.holders(archive)
    named = f" ({', '.join(holders[:LISTED])})" if holders else ""
    return CallerError(
        "archive_in_use",
        f"Another process has the archive open{named}.",
        "Nothing was changed. Close your clients, which run servers, and try again.",
    )


# ------------------------------------------------------------------ the list


def _note(archive: Path, backup: Path) -> None:
    """Remember where a backup lies. That is for information: no backup fails for it."""
    known = [*map(str, known_backups(archive)), str(backup.resolve())]
    path = archive.with_name(archive.name + LIST_SUFFIX)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError, UnicodeError):
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.writelines(f"{name}\n" for name in dict.fromkeys(known) if "\n" not in name)
        part.replace(path)


def known_backups(archive: Path) -> Sequence[Path]:
    """The backups of this archive that were written here and are still there, the oldest first."""
    try:
        lines = archive.with_name(archive.name + LIST_SUFFIX).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        return []
    return [Path(line) for line in lines if line and Path(line).is_file()]
