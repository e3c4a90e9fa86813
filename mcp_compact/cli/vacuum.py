"""`mcp-compact vacuum`: give back what the archive's file holds for nothing. Servers may run meanwhile."""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing
from pathlib import Path

from mcp_compact.adapters.sqlite.operations.backups import is_open
from mcp_compact.adapters.sqlite.operations.deleting import NEEDS_ROOM, needing_room
from mcp_compact.adapters.sqlite.operations.growth import Sizes, merge_index, sizes, vacuum
from mcp_compact.cli.archive import opened, require_database
from mcp_compact.cli.output import print_json
from mcp_compact.cli.text import size
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError, ServerError

QUICK_BYTES = 64 * 1024 * 1024
"""A file of this size is written anew in a second or two, which others wait for."""


def run(arguments: argparse.Namespace) -> int:
    """Merge the index; write the file anew unless others would have to wait long for it."""
    settings = load_settings()
    require_database(settings)
    # Before any connection of this process is open: asking takes its locks away.
    others = is_open(settings.db)
    with closing(opened(settings)) as conn:
        before = sizes(conn)
        with needing_room("Nothing is lost."):
            merge_index(conn)
        held = sizes(conn)
        why = _why_not(settings.db, held, others=others, by_force=arguments.anyway)
        if not why:
            try:
                with needing_room("Nothing is lost."):
                    vacuum(conn)
            except ServerError as error:
                if error.code != "store_locked":
                    raise
                why = "another process was writing all the time"
        after = sizes(conn)
    freed = max(0, before.file - after.file)
    if arguments.json:
        print_json(
            {
                "before": before.file,
                "after": after.file,
                "freed": freed,
                "free_inside": after.free,
                "index_before": before.index,
                "index_after": after.index,
                "rewritten": not why,
                "reason": why,
            }
        )
    else:
        print("\n".join(_lines(before, after, freed, why)))
    return 0


def _why_not(path: Path, held: Sizes, *, others: bool, by_force: bool) -> str:
    """Why the file is not written anew; empty where it may be. Raises CallerError where the disk is too full."""
    if held.free == 0:
        return "no page of the file is free"
    if others and held.file > QUICK_BYTES and not by_force:
        return "servers or clients have it open and would wait long; close them, or pass --anyway"
    needed = 2 * (held.file - held.free)
    if shutil.disk_usage(path.parent).free < needed:
        raise CallerError(
            "disk_full",
            f"The disk of {path.parent} has no {size(needed)} free, which writing the file anew needs for a while.",
            f"Nothing was changed. {NEEDS_ROOM}",
        )
    return ""


def _lines(before: Sizes, after: Sizes, freed: int, why: str) -> list[str]:
    lines = [f"The file: {size(before.file)} -> {size(after.file)}, {size(freed)} given back."]
    if after.index < before.index:
        lines.append(f"The full-text index: {size(before.index)} -> {size(after.index)}.")
    if why:
        lines.append(f"It was not written anew: {why}.")
    if after.free:
        lines.append(f"{size(after.free)} inside of it are free and are used again.")
    return lines
