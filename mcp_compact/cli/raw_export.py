"""Whole sessions as they are in the archive: `mcp-compact export --raw`, and their import into another archive."""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from mcp_compact import __version__
from mcp_compact.adapters.sqlite.operations import sessions
from mcp_compact.adapters.sqlite.operations.forgetting import keys_of_session
from mcp_compact.adapters.sqlite.operations.raw_reading import is_export, read_export
from mcp_compact.adapters.sqlite.operations.raw_rows import export_lines
from mcp_compact.adapters.sqlite.operations.raw_storing import Taken, take_sessions
from mcp_compact.cli.archive import AGENT, MOST_SESSIONS, ask, named_session, opened, require_database
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.output import print_json, refused_output, replacing
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, quoted, shown
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.service import LOCAL

__all__ = ["export", "import_file", "is_export"]


def export(arguments: argparse.Namespace) -> int:
    """Write a session with its sub-agents, or all sessions, byte for byte: to a file (0600), else to stdout."""
    settings = load_settings()
    require_database(settings)
    name = "" if arguments.all else ask(lambda service: named_session(service, arguments.session))
    with closing(opened(settings)) as conn:
        keys = _all_keys(conn) if arguments.all else keys_of_session(conn, SessionKey(LOCAL, name))
        if not keys:
            raise CallerError("no_sessions", "The archive holds no session yet.", "`mcp-compact import PATH` adds one.")
        with closing(export_lines(conn, keys, __version__)) as lines:
            if arguments.output in {None, "-"}:
                sys.stdout.buffer.writelines(lines)
                return 0
            path = Path(arguments.output).expanduser()
            _write_lines(path, lines)
    if arguments.json:
        print_json({"file": path.resolve(), "sessions": [key.session_id for key in keys]})
    else:
        print(f"{count(len(keys), 'session')} written to {shown(str(path))}, byte for byte and unmasked.")
        print(f"Into another archive: mcp-compact import {quoted(str(path))}")
    return 0


def _all_keys(conn: sqlite3.Connection) -> list[SessionKey]:
    found = sessions(conn, LOCAL, cwd=None, limit=MOST_SESSIONS, before_ms=None)
    return [SessionKey(LOCAL, row.key.session_id) for row in found]


def _write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """All of it or nothing, for its owner's eyes only. Raises CallerError."""
    try:
        if path.is_dir() or (path.exists() and not path.is_file()):
            raise CallerError("output_is_no_file", f"{path} is no plain file.", "Name a file to write to.")
        with replacing(path.resolve()) as stream:
            stream.writelines(lines)
    except (OSError, RuntimeError, ValueError) as error:
        raise refused_output(path, error) from error


def import_file(path: Path, session: str, *, as_json: bool) -> int:
    """Take every session of an export into the archive; `session` names the main one anew."""
    settings = load_settings()
    progress = Progress(terminal("stderr"))
    try:
        with closing(opened(settings)) as conn, tempfile.TemporaryDirectory(dir=settings.db.parent) as folder:
            staged = Path(folder) / "export.db"
            with closing(sqlite3.connect(staged, isolation_level=None)) as own, path.open("rb") as stream:
                ids = read_export(stream, path.stat().st_size, own, progress)
            progress(0, 0, "storing")
            taken = take_sessions(conn, staged, LOCAL, _renamed(ids, session))
    finally:
        progress.end()
    if as_json:
        print_json({"format": "raw", "sessions": taken.sessions, "known": taken.known, "records": taken.records})
    else:
        print("\n".join(_lines(taken)))
    return 0


def _renamed(ids: tuple[str, ...], session: str) -> dict[str, str]:
    """The main session's new id, and those of its sub-agents, whose ids begin with it. Raises CallerError."""
    if not session:
        return {}
    main = ids[0]
    others = [own for own in ids[1:] if not own.startswith(main + AGENT)]
    if others:
        raise CallerError("several_sessions", f"The export holds {len(ids)} sessions.", "Leave --session out.")
    return {own: session + own.removeprefix(main) for own in ids}


def _lines(taken: Taken) -> list[str]:
    new = len(taken.sessions) - len(taken.known)
    said = f"Imported {count(new, 'session')} as they were: {count(taken.records, 'record')}, byte for byte."
    known = [f"{count(len(taken.known), 'session')} known already."] if taken.known else []
    many = any(not own.startswith(taken.sessions[0] + AGENT) for own in taken.sessions[1:])
    return [said, *known, f"Next: mcp-compact {'sessions --all' if many else f'status {quoted(taken.sessions[0])}'}"]
