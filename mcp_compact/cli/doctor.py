"""`mcp-compact doctor`: is everything in order, and what to do where it is not."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mcp_compact import __version__
from mcp_compact.cli.environment import value_of
from mcp_compact.cli.finding import BROKEN, NOTE, OK, Finding
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.cli.text import count, shown, size, wrapped
from mcp_compact.config import Settings, load_settings
from mcp_compact.errors import CompactError

MARKS = {OK: ("ok", "32"), NOTE: ("note", "33"), BROKEN: ("BROKEN", "31")}
PACKAGES = ("mcp", "anyio", "pydantic", "tiktoken", "aiosqlite")
CHECK_POINT_FIXED = (3, 51, 3)
REMEDIABLE = ("permissions", "quick check")
"""What is wrong there does not keep the rest from being looked at."""
HOOK_FAULTS = 5
"""So many different ones are shown, the newest."""
MENDED = "The archive is in order now, so this is forgotten. Where it comes again, report it."
MEND_FIRST = "Mend the archive first (see above). What was missed is made up for by the next hook."
CLIENTS_OWN = ("ENABLE_CLAUDE_CODE_SM_COMPACT", "DISABLE_CLAUDE_CODE_SM_COMPACT")


def run(arguments: argparse.Namespace) -> int:
    """Check everything; 1 if something is broken."""
    settings = load_settings()
    screen, found = terminal(), []
    for item in findings(settings, is_deep=arguments.deep):
        found.append(item)
        if not arguments.json:
            print("\n".join(finding_lines(item, screen)), flush=True)
    broken = any(item.state == BROKEN for item in found)
    notes = sum(item.state == NOTE for item in found)
    if arguments.json:
        print_json({"ok": not broken, "version": __version__, "findings": found})
    else:
        print("\nSomething is broken: see above." if broken else f"\nNothing is broken ({count(notes, 'note')}).")
    return 1 if broken else 0


def finding_lines(item: Finding, screen: Terminal) -> list[str]:
    """A finding to be read."""
    mark, code = MARKS[item.state]
    first, *rest = wrapped(shown(item.text), screen.columns - 20) or [""]
    out = [f"{screen.paint(f'{mark:<6}', code)} {item.check:<12} {first}", *(f"{'':<20}{line}" for line in rest)]
    return [*out, *wrapped(shown(item.todo), screen.columns, f"{'':<20}")] if item.todo else out


def findings(settings: Settings, *, is_deep: bool = False) -> Iterator[Finding]:
    """Every check in turn; none stops the others. `is_deep` looks at everything that the archive holds."""
    yield Finding("version", OK, f"mcp-compact {__version__}, Python {platform.python_version()} ({sys.executable})")
    yield _packages()
    yield _sqlite()
    archive = list(_database(settings))
    if is_deep and settings.db.is_file() and all(item.state != BROKEN or item.check in REMEDIABLE for item in archive):
        from mcp_compact.cli.deep_findings import deep_findings

        archive += deep_findings(settings)
    yield from archive
    yield from _hooks(settings, is_sound=all(item.state != BROKEN for item in archive))
    yield _tokenizer()
    yield from _settings(settings)
    yield _roots(settings)


def _packages() -> Finding:
    known, missing = [], []
    for name in PACKAGES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding("packages", BROKEN, f"missing: {', '.join(missing)}", "Install mcp-compact again.")
    return Finding("packages", OK, ", ".join(known))


def _sqlite() -> Finding:
    text = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info >= CHECK_POINT_FIXED:
        return Finding("sqlite", OK, text)
    return Finding(
        "sqlite",
        NOTE,
        f"{text}: before 3.51.3 a file may be damaged, very rarely, when several processes check-point it at the "
        "same moment; mcp-compact therefore check-points only under a lock of its own",
        "Nothing must be done. Do not open the archive for writing with other programs while a server runs; a newer "
        "Python or system brings a newer SQLite.",
    )


# ---------------------------------------------------------------- the archive


def _database(settings: Settings) -> Iterator[Finding]:
    path = settings.db
    if not path.exists():
        yield _no_database(path)
        return
    if not path.is_file():
        yield Finding("archive", BROKEN, f"{path} is no file", "Let MCP_COMPACT_DB name a file.")
        return
    yield Finding("archive", OK, f"{path}, {_sizes(path)}")
    yield _permissions(path)
    yield from _place(path, settings)
    checked = _quick_check(path)
    yield checked
    if checked.state != BROKEN:
        yield _opened(settings)


def _no_database(path: Path) -> Finding:
    folder = next((parent for parent in path.parents if parent.exists()), path.parent)
    if not _may_write(folder):
        return Finding("archive", BROKEN, f"{path} cannot be made: {folder} may not be written to",
                       "Give the folder to yourself, or let MCP_COMPACT_DB name another file.")  # fmt: skip
    return Finding("archive", NOTE, f"none yet; it will be {path}", "`mcp-compact import PATH` or a server makes it.")


def _may_write(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _sizes(path: Path) -> str:
    wal = path.with_name(path.name + "-wal")
    waiting = f" and {size(wal.stat().st_size)} in its -wal file" if wal.exists() else ""
    return size(path.stat().st_size) + waiting


def _permissions(path: Path) -> Finding:
    mode = path.stat().st_mode & 0o777
    if not _may_write(path.parent):
        return Finding("permissions", BROKEN, f"the folder {path.parent} may not be written to: nothing is stored",
                       "SQLite writes beside the file: give the folder to yourself.")  # fmt: skip
    if mode & 0o077 and sys.platform != "win32":
        return Finding("permissions", BROKEN, f"{mode:04o}: others may read what was said", f"Run: chmod 600 {path}")
    return Finding("permissions", OK, f"{mode:04o}, for its owner alone")


def _place(path: Path, settings: Settings) -> Iterator[Finding]:
    """What kind of disk it is on, and what a power loss may take."""
    from mcp_compact.adapters.sqlite.operations.inspecting import shared_kind

    kind = shared_kind(path)
    if kind:
        yield Finding(
            "disk", NOTE, f"a network or shared folder ({kind}): SQLite's WAL is unsafe there, so a rollback journal "
            "is used, every write waits for the disk, and processes wait for each other",
            "Nothing must be done. A local file is faster; two machines should not use one archive at the same time.",
        )  # fmt: skip
    elif settings.synchronous == "full":
        yield Finding("disk", OK, "local; every write waits for the disk, so a power loss takes nothing")
    else:
        yield Finding("disk", OK, "local; a killed process loses nothing, a power loss perhaps the last moments")


def _quick_check(path: Path) -> Finding:
    from mcp_compact.adapters.sqlite.operations.inspecting import open_to_read

    todo = "`mcp-compact restore FILE` puts a backup back; `mcp-compact rescue` saves what can be read into a new file."
    try:
        conn = open_to_read(path)
        try:
            said = [str(row[0]) for row in conn.execute("PRAGMA quick_check(5)")]
        finally:
            conn.close()
    except sqlite3.OperationalError as error:
        return Finding(
            "quick check", BROKEN, f"the file cannot be read: {error}", "Check its permissions and its disk."
        )
    except sqlite3.DatabaseError as error:
        return Finding("quick check", BROKEN, f"the file is damaged or no archive: {error}", todo)
    if said != ["ok"]:
        return Finding("quick check", BROKEN, f"the file is damaged: {'; '.join(said)[:300]}", todo)
    return Finding("quick check", OK, "the file is sound")


def _opened(settings: Settings) -> Finding:
    """Does the archive open as the server opens it, and what is in it?"""
    from mcp_compact.cli.archive import MOST_SESSIONS, ask

    try:
        lines = ask(lambda service: service.sessions(limit=MOST_SESSIONS), settings=settings)
    except CompactError as error:
        return Finding("contents", BROKEN, error.message, error.hint)
    messages = sum(line.messages for line in lines)
    return Finding("contents", OK, f"{count(len(lines), 'session')}, {count(messages, 'message')}")


# ---------------------------------------------------------------- hooks


def _hooks(settings: Settings, *, is_sound: bool) -> Iterator[Finding]:
    """What clients' hooks could not do and kept to themselves. Once it is told and the archive is sound, it is cleared.

    What has another cause comes again, and is kept again.
    """
    from mcp_compact.hooking import notes

    archive = str(settings.db)
    try:
        kept = [note for note in notes.kept(archive) if note != notes.TOLD]
        if is_sound:
            notes.clear(archive)
    except OSError as error:
        yield Finding("hooks", NOTE, f"what hooks noted cannot be read: {error}", f"Look at {notes.place(archive)}.")
        return
    by_fault: dict[tuple[str, str], list[dict[str, object]]] = {}
    for note in kept:
        by_fault.setdefault((str(note.get("code", "")), str(note.get("text", ""))), []).append(note)
    for (code, text), same in list(by_fault.items())[-HOOK_FAULTS:]:
        events = ", ".join(dict.fromkeys(str(note.get("event") or "?") for note in same))
        said = f"{count(len(same), 'hook')} failed ({events}): {code}: {text}"
        yield Finding("hooks", NOTE, said, MENDED if is_sound else MEND_FIRST)
    if not kept:
        yield Finding("hooks", OK, "no hook of a client has failed")


# ---------------------------------------------------------------- counting and settings


def _tokenizer() -> Finding:
    from mcp_compact.wiring import tokenizer

    own = tokenizer()
    own.warm()
    if own.state == "ready":
        return Finding("tokenizer", OK, f"{own.name}, loaded from the package: counts are exact")
    return Finding("tokenizer", BROKEN, f"{own.name} cannot be loaded, counts are estimates: {own.reason}",
                   "Install mcp-compact again, without its cache.")  # fmt: skip


def _settings(settings: Settings) -> Iterator[Finding]:
    for text in settings.warnings:
        yield Finding("settings", NOTE, text, "`mcp-compact config` lists every setting.")
    own = [name for name in CLIENTS_OWN if value_of(name)]
    for name in dict.fromkeys([*settings.historic, *own]):
        yield Finding(
            "settings", NOTE, f"{name} is set: it counts here, and a client may read it itself (Claude Code does)",
            _instead(name),
        )  # fmt: skip
    if not settings.warnings:
        yield Finding("settings", OK, "every variable is known and its value is used")


def _instead(name: str) -> str:
    from mcp_compact.config import SETTINGS

    own = next((item.name for item in SETTINGS if name in item.historic), "MCP_COMPACT_FLAG_SM_COMPACT")
    return f"To set it for this server alone use {own}."


def _roots(settings: Settings) -> Finding:
    if settings.roots is None:
        return Finding("roots", OK, f"by path the server reads {Path.cwd()} and the transcript folders of that project")
    gone = [str(root) for root in settings.roots if not root.is_dir()]
    if gone:
        return Finding("roots", NOTE, f"MCP_COMPACT_ROOTS names folders that are not there: {', '.join(gone)}",
                       "Make them, or take them out.")  # fmt: skip
    return Finding("roots", OK, f"by path the server reads {', '.join(map(str, settings.roots))}")
