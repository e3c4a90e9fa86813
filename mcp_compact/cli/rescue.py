"""`mcp-compact rescue`: what can be read of a damaged archive, into a new file; the damaged one stays as it is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from mcp_compact.adapters.sqlite.operations.backups import known_backups
from mcp_compact.adapters.sqlite.operations.rescue_records import Fate
from mcp_compact.adapters.sqlite.operations.rescuing import Rescued, default_target, rescue
from mcp_compact.cli.archive import require_database
from mcp_compact.cli.files import readable_file
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, quoted, shown
from mcp_compact.config import load_settings

LISTED = 10


def run(arguments: argparse.Namespace) -> int:
    """Rescue, and say what was saved and what was lost. 1 where something was lost."""
    settings = load_settings()
    if not arguments.file:
        require_database(settings)
    damaged = readable_file(arguments.file or str(settings.db))
    target = Path(arguments.output).expanduser().resolve() if arguments.output else default_target(damaged)
    progress = Progress(terminal("stderr"), "{:,}".format)
    try:
        done = rescue(damaged, target, progress, known_backups(damaged))
    finally:
        progress.end()
    if arguments.json:
        print_json({"damaged": damaged, "file": target, **_facts(done)})
    else:
        print("\n".join(_lines(done, damaged, target, is_own=damaged == settings.db.resolve())))
    return 0 if all(fate.is_whole for fate in done.fates) and done.checked.is_sound else 1


def _facts(done: Rescued) -> dict[str, object]:
    return {
        "records": done.records,
        "lost": done.lost,
        "from_backups": done.from_backups,
        "damaged_pages": done.filled.damaged_pages,
        "damaged_rows": done.filled.damaged_rows,
        "is_sound": done.checked.is_sound,
        "open_in": done.holders,
        "sessions": [
            {
                "session_id": fate.session_id,
                "records": fate.records,
                "lost": [{"seq": seq, "uuid": uuid} for seq, uuid in fate.lost],
                "made_again": fate.unproven,
                "notes": fate.notes,
            }
            for fate in done.fates
        ],
    }


def _lines(done: Rescued, damaged: Path, target: Path, *, is_own: bool) -> Iterator[str]:
    broken = [fate for fate in done.fates if not fate.is_whole]
    yield f"Rescued into {shown(str(target))}"
    yield f"  {count(done.records, 'record')} of {count(len(done.fates), 'session')}, each as it was stored"
    yield f"  {count(len(done.fates) - len(broken), 'session')} whole, {count(done.lost, 'record')} lost"
    found = done.filled
    if found.damaged_pages or found.damaged_rows:
        yield f"  damage: {count(found.damaged_pages, 'page')}, {count(found.damaged_rows, 'row')} on other pages"
    for fate in broken[:LISTED]:
        yield from _of_session(fate)
    if len(broken) > LISTED:
        yield f"and {count(len(broken) - LISTED, 'more session')}: --json lists all."
    if not done.checked.is_sound:
        yield "The new file is not quite sound: `mcp-compact doctor --deep` with MCP_COMPACT_DB set to it says how."
    if done.holders:
        yield f"Another process had it open ({', '.join(done.holders)}): what it wrote meanwhile may be missing."
    if done.from_backups:
        yield f"  {count(done.from_backups, 'record')} came from a backup, proven by their hash"
    yield f"{shown(str(damaged))} is as it was."
    if done.lost:
        yield "What is lost may be in your client's own transcript: mcp-compact import FILE --session ANOTHER-ID"
    if is_own:
        yield f"To go on with it: close your clients, then mcp-compact restore {quoted(str(target))}"


def _of_session(fate: Fate) -> Iterator[str]:
    parts = [count(len(fate.lost), "record") + " lost"] if fate.lost else []
    parts += [count(fate.unproven, "record") + " made again from their bytes alone"] if fate.unproven else []
    yield f"Session {shown(fate.session_id)}: {'; '.join([*parts, *fate.notes])}"
    for seq, uuid in fate.lost[:LISTED]:
        yield f"  record {seq}, {shown(uuid)}"
    if len(fate.lost) > LISTED:
        yield f"  and {len(fate.lost) - LISTED:,} more"
