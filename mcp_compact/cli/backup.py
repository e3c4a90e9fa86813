"""`mcp-compact backup FILE` and `mcp-compact restore FILE`: the whole archive as one file, and back."""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from mcp_compact.adapters.sqlite.operations.backups import back_up, put_back
from mcp_compact.adapters.sqlite.operations.inspecting import Examined
from mcp_compact.cli.archive import opened, require_database
from mcp_compact.cli.files import readable_file
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, quoted, shown, size
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.wiring import system_clock


def run(arguments: argparse.Namespace) -> int:
    """Write a backup and check it. The archive may be in use."""
    settings = load_settings()
    require_database(settings)
    target = _target(arguments.file)
    progress = Progress(terminal("stderr"), "{:,}".format)
    try:
        with closing(opened(settings)) as conn:
            done = back_up(conn, settings.db, target, progress)
    finally:
        progress.end()
    if arguments.json:
        print_json({"file": target, **_facts(done)})
    else:
        print(f"Backup written and checked: {shown(str(target))}")
        print(_line(done))
        print(f"It holds everything that was said, unmasked. Back: mcp-compact restore {quoted(str(target))}")
    return 0


def run_restore(arguments: argparse.Namespace) -> int:
    """Put a backup back; what the archive held is kept beside it."""
    settings = load_settings()
    if settings.db.is_dir():
        raise CallerError("database_is_folder", f"MCP_COMPACT_DB names a folder: {settings.db}.", "Name a file.")
    backup = readable_file(arguments.file)
    archive = settings.db.resolve()
    kept = archive.with_name(f"{archive.stem}.replaced-{_stamp()}{archive.suffix}")
    progress = Progress(terminal("stderr"), "{:,}".format)
    try:
        done, replaced = put_back(archive, backup, kept, progress)
    finally:
        progress.end()
    if arguments.json:
        print_json({"archive": settings.db, "replaced": kept if replaced else None, **_facts(done)})
    else:
        print(f"Restored: {shown(str(settings.db))}")
        print(_line(done))
        print(f"What it was before is kept: {shown(str(kept))}" if replaced else "There was no archive before.")
    return 0


def _target(name: str) -> Path:
    """The file to write; in a folder, one that is named by the time."""
    try:
        path = Path(name).expanduser()
        return (path / f"mcp-compact-{_stamp()}.db" if path.is_dir() else path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise CallerError("bad_path", f"{name[:200]!r} cannot be written to: {error}.", "Name another file.") from error


def _stamp() -> str:
    at = datetime.fromtimestamp(system_clock().now_ms() / 1000, UTC)
    return f"{at:%Y%m%d-%H%M%S}-{at.microsecond // 1000:03d}"


def _facts(done: Examined) -> dict[str, object]:
    return {"sessions": done.sessions, "records": done.records, "bytes": done.bytes, "schema": done.schema}


def _line(done: Examined) -> str:
    return f"{count(done.sessions, 'session')}, {count(done.records, 'record')}, {size(done.bytes)}; every byte fits."
