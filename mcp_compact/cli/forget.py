"""`mcp-compact forget SESSION|PROJECT`: what the archive holds of it goes for good. There is no undo."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mcp_compact import handoff_note
from mcp_compact.adapters.sqlite.operations import session
from mcp_compact.adapters.sqlite.operations.backups import known_backups
from mcp_compact.adapters.sqlite.operations.forgetting import forget, keys_of_project, keys_of_session
from mcp_compact.cli.archive import ask, named_session, opened, require_database
from mcp_compact.cli.client_folders import claude_transcripts
from mcp_compact.cli.output import print_json
from mcp_compact.cli.text import count, shown
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.places import SWITCH
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.service import LOCAL

SHOWN = 10


def run(arguments: argparse.Namespace) -> int:
    """Show what would go, ask, and remove it."""
    settings = load_settings()
    require_database(settings)
    project = _project(arguments.target)
    name = "" if project else ask(lambda service: named_session(service, arguments.target))
    with closing(opened(settings)) as conn:
        keys = keys_of_project(conn, LOCAL, project) if project else keys_of_session(conn, SessionKey(LOCAL, name))
        if not keys:
            raise CallerError(
                "nothing_to_forget",
                f"The archive holds nothing of {project}.",
                "`mcp-compact sessions --all` lists it.",
            )
        folders = _folders(conn, keys)
        if not arguments.json:
            print("\n".join(_lines(keys, project)))
        if not (arguments.yes or arguments.dry_run or agreed()):
            raise CallerError("not_agreed", "Nothing was removed.", "--yes removes it without asking.")
        removed = 0 if arguments.dry_run else forget(conn, keys)
    notes = (
        [] if arguments.dry_run else [cwd for cwd in folders if project and handoff_note.forget(str(settings.db), cwd)]
    )
    left = _left_with_clients(keys, folders)
    backups = [str(path) for path in known_backups(settings.db)]
    if arguments.json:
        print_json(
            {
                "forgotten": [] if arguments.dry_run else [key.session_id for key in keys],
                "would_forget": [key.session_id for key in keys] if arguments.dry_run else [],
                "records": removed,
                "briefs": len(notes),
                "still_with_clients": left,
                "still_in_backups": backups,
            }
        )
    else:
        print("Nothing was removed (--dry-run)." if arguments.dry_run else f"Removed: {count(removed, 'record')}.")
        print("\n".join([*_remaining(left), *_in_backups(backups)]))
    return 0


def _project(target: str) -> str:
    """The folder that is meant, as sessions know it; empty where a session is."""
    path = Path(target).expanduser()
    return str(path.resolve()) if path.is_dir() else ""


def _lines(keys: Sequence[SessionKey], project: str) -> list[str]:
    what = f"of the project {project}" if project else "with its sub-agents"
    names = [f"  {shown(key.session_id)}" for key in keys[:SHOWN]]
    more = [f"  and {len(keys) - SHOWN:,} more"] if len(keys) > SHOWN else []
    return [f"{count(len(keys), 'session')} {what}: messages, memory, pins, index. There is no undo.", *names, *more]


def agreed() -> bool:
    """Does the person say yes? Where nobody can be asked, no."""
    if not sys.stdin.isatty():
        return False
    sys.stderr.write("Remove it for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _folders(conn: sqlite3.Connection, keys: Sequence[SessionKey]) -> list[str]:
    rows = filter(None, (session(conn, key) for key in keys))
    return list(dict.fromkeys(row.cwd for row in rows if row.cwd))


def _left_with_clients(keys: Sequence[SessionKey], folders: Sequence[str]) -> list[str]:
    """The client's own transcripts of these sessions: they are not ours to remove, and would be imported again."""
    found = (path for cwd in folders for key in keys for path in claude_transcripts(Path(cwd), key.session_id))
    return [str(path) for path in dict.fromkeys(found)]


def _remaining(left: Sequence[str]) -> list[str]:
    if not left:
        return ["Reports and new session files that you had written yourself are yours to remove."]
    return [
        "Your client still has its own transcripts, and its hooks would bring them back when it goes on with them:",
        *(f"  {shown(path)}" for path in left[:SHOWN]),
        f"Remove them too, or turn the project off: an empty file {SWITCH} in its folder.",
    ]


def _in_backups(backups: Sequence[str]) -> list[str]:
    if not backups:
        return []
    return ["Backups that were made of the archive may still hold it:", *(f"  {shown(path)}" for path in backups)]
