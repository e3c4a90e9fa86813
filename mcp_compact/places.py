"""Where things lie on this machine: the archive, the switch files, the folders of clients' transcripts.

A client's hook asks at every prompt, so this file stands on `os` alone; config.py, the other reader of the
environment, costs three times as much to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from mcp_compact.errors import CallerError

SWITCH = ".mcp-compact-off"
"""A file of this name in a folder turns everything off for the projects in it."""
SWITCH_ALL = "off"
"""The same for all projects: a file beside the archive."""


def database(environ: Mapping[str, str] | None = None) -> str:
    """The archive's file: as the setting names it, else the default. Raises CallerError `no_home`."""
    known = os.environ if environ is None else environ
    named = os.path.expanduser(known.get("MCP_COMPACT_DB", "").strip())
    return named if named and not named.startswith("~") else default_database(known)


def default_database(environ: Mapping[str, str] | None = None) -> str:
    """The archive's file in the user's data directory, as each system has it.

    Raises CallerError where the user has no home and the environment names no data directory.
    """
    known = os.environ if environ is None else environ
    match sys.platform:
        case "win32":
            base = _absolute(known.get("LOCALAPPDATA")) or os.path.join(_home(), "AppData", "Local")
        case "darwin":
            base = os.path.join(_home(), "Library", "Application Support")
        case _:
            base = _absolute(known.get("XDG_DATA_HOME")) or os.path.join(_home(), ".local", "share")
    return os.path.join(base, "mcp-compact", "archive.db")


def full_sync(environ: Mapping[str, str] | None = None) -> bool:
    """Does the setting MCP_COMPACT_SYNCHRONOUS ask that each commit waits for the disk?"""
    known = os.environ if environ is None else environ
    return known.get("MCP_COMPACT_SYNCHRONOUS", "").strip().lower() == "full"


def is_off(cwd: str, archive: str) -> bool:
    """Is everything off here: by a switch file in the folder or in one above it, or beside the archive?"""
    if os.path.exists(os.path.join(os.path.dirname(archive), SWITCH_ALL)):
        return True
    folder = cwd if os.path.isabs(cwd) else ""
    while folder:
        if os.path.exists(os.path.join(folder, SWITCH)):
            return True
        above = os.path.dirname(folder)
        folder = above if above != folder else ""
    return False


def transcript_folders(environ: Mapping[str, str] | None = None) -> list[str]:
    """Where the clients keep their transcripts, and the folders that MCP_COMPACT_ROOTS names."""
    known = os.environ if environ is None else environ
    found = [os.path.expanduser(part.strip()) for part in known.get("MCP_COMPACT_ROOTS", "").split(os.pathsep)]
    found += [place for places in _client_folders(known).values() for place in places]
    return [os.path.realpath(folder) for folder in found if os.path.isabs(folder)]


def history_folders(environ: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """Where each client keeps all of its sessions, by the client's name; the folders need not be there."""
    return _client_folders(os.environ if environ is None else environ)


def _client_folders(known: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for client, variable, usual, folder in _CLIENTS:
        place = os.path.join(os.path.expanduser(known.get(variable, "").strip() or usual), folder)
        places = found.setdefault(client, [])
        if os.path.isabs(place) and place not in places:
            places.append(place)
    return found


_CLIENTS = (
    ("claude-code", "CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    ("claude-code", "CLAUDE_CONFIG_DIR", "~/.config/claude", "projects"),
    ("codex", "CODEX_HOME", "~/.codex", "sessions"),
    ("gemini-cli", "GEMINI_CLI_HOME", "~", os.path.join(".gemini", "tmp")),
    ("pi", "PI_CODING_AGENT_DIR", "~/.pi/agent", "sessions"),
    ("pi", "PI_CODING_AGENT_SESSION_DIR", "~/.pi/agent/sessions", ""),
)
"""A client, its variable, where it is without that, and its folder of transcripts there. opencode keeps its sessions
in a database of its own: what they hold comes by its plugin."""


def may_be_read(path: str, environ: Mapping[str, str] | None = None) -> bool:
    """Does the path, its links followed, lie in one of those folders? The file need not be there yet."""
    if not os.path.isabs(path) or "\0" in path:
        return False
    real = os.path.realpath(path)
    return any(real.startswith(folder.rstrip(os.sep) + os.sep) for folder in transcript_folders(environ))


def readable_transcript(path: str, environ: Mapping[str, str] | None = None) -> str:
    """The real path of a transcript in one of those folders; empty where it is none, or is not there yet."""
    if not may_be_read(path, environ):
        return ""
    real = os.path.realpath(path)
    return real if os.path.isfile(real) else ""


def stated_client(environ: Mapping[str, str] | None = None) -> int:
    """The process of the client that started this hook, where the client says it; 0 where it does not."""
    text = (os.environ if environ is None else environ).get("CLAUDE_PID", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0  # noqa: PLR2004 - longer than any pid


def _absolute(folder: str | None) -> str:
    """The folder; empty where it is relative: it would be another one in every working directory."""
    return folder if folder and os.path.isabs(folder) else ""


def _home() -> str:
    home = os.path.expanduser("~")
    if home.startswith("~"):
        raise CallerError(
            "no_home", "This user has no home directory to keep the archive in.", "Set MCP_COMPACT_DB to a file."
        )
    return home
