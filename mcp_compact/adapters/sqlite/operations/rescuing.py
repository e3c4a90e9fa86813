"""Saving what can be read of a damaged archive into a new file. The damaged one is only read."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.adapters.sqlite import filesystem
from mcp_compact.adapters.sqlite.migrations import migrate, schema_versions
from mcp_compact.adapters.sqlite.operations.backups import part_of, put
from mcp_compact.adapters.sqlite.operations.damaged_pages import Pages
from mcp_compact.adapters.sqlite.operations.deep_checks import Depths, Progress, deep_check
from mcp_compact.adapters.sqlite.operations.inspecting import refused
from mcp_compact.adapters.sqlite.operations.rescue_backups import fill_from
from mcp_compact.adapters.sqlite.operations.rescue_mending import mend
from mcp_compact.adapters.sqlite.operations.rescue_records import Fate
from mcp_compact.adapters.sqlite.operations.rescue_rows import Filled, fill
from mcp_compact.errors import CallerError, CompactError

UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENOTDIR)
"""What the system says of a place that takes no file."""


@dataclass(frozen=True, slots=True)
class Rescued:
    """What was saved, and what was not."""

    fates: tuple[Fate, ...]
    filled: Filled
    checked: Depths
    """A whole look at the new file."""
    from_backups: int = 0
    """Records whose bytes were lost, and came from a backup."""
    holders: tuple[str, ...] = ()
    """Processes that had the damaged file open, and may have written to it meanwhile."""

    @property
    def records(self) -> int:
        return sum(fate.records for fate in self.fates)

    @property
    def lost(self) -> int:
        return sum(len(fate.lost) for fate in self.fates)


def rescue(damaged: Path, target: Path, progress: Progress, backups: Sequence[Path] = ()) -> Rescued:
    """Read whatever can be read into the new file `target`; bytes that are lost are looked for in `backups`.

    Raises CallerError (`output_refused`, `newer_schema`, `nothing_readable`), ServerError.
    """
    if target.exists():
        raise CallerError("output_refused", f"{target} is there already.", "Name a new file with -o.")
    if not target.parent.is_dir():
        raise CallerError(
            "no_output_folder", f"The folder {target.parent} does not exist.", "Make it, or name another."
        )
    try:
        return _rescued(damaged, target, progress, backups)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise _unwritable(target, error.strerror or str(error)) from error
    except CallerError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        raise _unwritable(target, "permission denied") from error


def _unwritable(target: Path, why: str) -> CallerError:
    """The damaged file may lie on a disk that takes nothing, or has no room: what can be read goes elsewhere."""
    hint = "`mcp-compact rescue -o NEW` writes to another place; the damaged file is only read."
    return CallerError("output_refused", f"{target} cannot be written: {why}.", hint)


def _rescued(damaged: Path, target: Path, progress: Progress, backups: Sequence[Path]) -> Rescued:
    holders = tuple(filesystem.holders(damaged))
    with closing(Pages(damaged)) as pages, part_of(target) as part:
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as conn:
                filled, fates, from_backups = _into(conn, pages, backups, progress)
                checked = deep_check(conn, progress)
        except sqlite3.Error as error:
            raise _of_writing(error, target) from error
        if not fates:
            raise CallerError(
                "nothing_readable",
                f"Nothing of an archive can be read from {damaged}.",
                "Is it the right file? A backup is put back by `mcp-compact restore FILE`.",
            )
        put(part, target)
    return Rescued(tuple(fates), filled, checked, from_backups, holders)


def _of_writing(error: sqlite3.Error, target: Path) -> CompactError:
    known = refused(error, f"Writing {target}")
    return _unwritable(target, "the disk is full") if known.code == "disk_full" else known


def _into(
    conn: sqlite3.Connection, pages: Pages, backups: Sequence[Path], progress: Progress
) -> tuple[Filled, list[Fate], int]:
    newest = schema_versions()[-1][0]
    schema = pages.schema
    if newest < schema <= newest + 1000:
        raise CallerError("newer_schema", f"The file has schema {schema}; this release knows {newest}.",
                          "Upgrade mcp-compact first.")  # fmt: skip
    # A number that cannot be is damage; rows of older releases are told by their length.
    schema = schema if 1 <= schema <= newest else newest
    conn.execute("PRAGMA journal_mode=OFF").fetchall()
    conn.execute("PRAGMA synchronous=OFF")
    conn.execute("PRAGMA temp_store=MEMORY")
    migrate(conn, schema_versions()[:schema])
    conn.execute("BEGIN")
    filled = fill(conn, pages, schema, progress)
    conn.execute("COMMIT")
    migrate(conn)
    conn.execute("BEGIN")
    from_backups = fill_from(conn, backups)
    fates = mend(conn, filled)
    conn.execute("COMMIT")
    return filled, fates, from_backups


def default_target(damaged: Path) -> Path:
    """Beside the damaged file, under a name that is free."""
    names = (f"{damaged.stem}.rescued{f'-{number}' if number else ''}{damaged.suffix}" for number in range(10_000))
    return next(path for name in names if not os.path.lexists(path := damaged.with_name(name)))
