"""Claude Code: a plugin in its folder of skills, and an entry for the status line in its settings.

A folder `skills/NAME` with a plugin manifest is loaded as the plugin `NAME@skills-dir` in every session, headless ones
too, with no marketplace and no entry anywhere: so nothing of the user's is edited, and to remove it is to remove the
folder. A marketplace needs the client itself to copy the plugin into its cache, and entries in `~/.claude.json` would
race with the client, which rewrites that file as it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_compact import __version__
from mcp_compact.cli.environment import value_of
from mcp_compact.cli.install_entries import Entries, JsonEntry, OwnFile, Wanted
from mcp_compact.cli.install_files import with_previous
from mcp_compact.cli.install_json import value_at
from mcp_compact.cli.install_program import Program, manifests
from mcp_compact.cli.install_record import Record
from mcp_compact.cli.product import NAME
from mcp_compact.errors import CallerError

CLIENT = "claude-code"
NEEDS = (2, 1, 157)
"""The first version that loads plugins from its folder of skills."""

STATUS_LINE = ("statusLine",)
COMMANDS, CLIENT_SCRIPT = "commands/", b"mcp-compact-client"
PLAIN = re.compile(r"[\w./+ -]*")
"""A path that is the same in every kind of quotes."""
MCP, HOOKS, PLUGIN = ".mcp.json", "hooks/hooks.json", ".claude-plugin/plugin.json"


def folder() -> Path:
    """The client's own folder of settings."""
    named = value_of("CLAUDE_CONFIG_DIR")
    return Path(named).expanduser().absolute() if named else Path.home() / ".claude"


def wanted(home: Path, program: Program, record: Record, *, statusline: bool | None) -> list[Wanted]:
    """What belongs into the client's folder. `statusline`: None adds one where the person has none."""
    plugin = home / "skills" / NAME
    if plugin.is_symlink():
        raise CallerError("not_ours", f"{plugin} is a link. Nothing was changed.", "Move it away, then try again.")
    files: list[Wanted] = list(_plugin_files(plugin, program))
    if statusline is not False:
        settings = home / "settings.json"
        entry = with_previous(JsonEntry(STATUS_LINE, _status_line(program)), settings, record)
        if statusline or entry.previous is None:
            files.append(Entries(settings, (entry,)))
    return files


def notes(home: Path, planned: list[Wanted], *, statusline: bool | None) -> Iterator[str]:
    """What the person should know beside the changes."""
    if statusline is None and not any(isinstance(item, Entries) for item in planned):
        yield "You have a status line of your own; it stays. --statusline puts ours in its place."
    if _has_server(home):
        yield f"An MCP server named {NAME} is there already, beside the plugin's. Remove it: claude mcp remove {NAME}"


def _plugin_files(plugin: Path, program: Program) -> Iterator[OwnFile]:
    shipped = manifests(CLIENT)
    # The manifest comes last: without it the client sees no plugin, so it never sees half of one.
    names = sorted(path.relative_to(shipped).as_posix() for path in shipped.rglob("*") if path.is_file())
    yield OwnFile(plugin / "bin" / NAME, program.script().encode(), executable=True)
    for name in sorted(names, key=lambda name: name == PLUGIN):
        path = shipped / name
        content = _filled(name, path.read_bytes(), program)
        if name.startswith(COMMANDS):
            content = content.replace(CLIENT_SCRIPT, _reached(plugin / "bin").encode() + CLIENT_SCRIPT)
        yield OwnFile(plugin / name, content, executable=name.startswith("bin/"))


def _reached(folder: Path) -> str:
    """How the plugin's commands name the folder of its programs; empty where they are found by name.

    The client puts that folder on its shell's path in quotes that some characters end. Then the shell is told of it by
    what it knows itself, for no quoting of ours would stand in the lines of a command.
    """
    if PLAIN.fullmatch(str(folder)):
        return ""
    named = value_of("CLAUDE_CONFIG_DIR")
    base, word = (Path(named).expanduser().absolute(), '"$CLAUDE_CONFIG_DIR"') if named else (Path.home(), "~")
    rest = folder.relative_to(base).as_posix()
    return f"{word}/{rest}/"


def _filled(name: str, content: bytes, program: Program) -> bytes:
    """A shipped file with this installation's paths and version in it."""
    if name == MCP:
        return _json(_servers(json.loads(content), program))
    if name == HOOKS:
        return _json(_hooks(json.loads(content), program))
    return _json({**json.loads(content), "version": __version__}) if name == PLUGIN else content


def _servers(data: Any, program: Program) -> Any:  # noqa: ANN401 (JSON)
    server = data["mcpServers"][NAME]
    server["args"] = [*program.words[1:], *server["args"]]
    server["command"] = program.words[0]
    if program.env:
        server["env"] = program.env
    return data


def _hooks(data: Any, program: Program) -> Any:  # noqa: ANN401 (JSON)
    for groups in data["hooks"].values():
        for hook in (hook for group in groups for hook in group["hooks"]):
            hook["command"] = program.hook_line(*hook["command"].split()[2:])
    return data


def _status_line(program: Program) -> dict[str, object]:
    return {"type": "command", "command": program.line("statusline"), "padding": 0}


def _json(data: object) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()


def _has_server(home: Path) -> bool:
    """Whether the person added the server by hand. The file is the client's own; what cannot be read is no matter."""
    place = home / ".claude.json" if value_of("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"
    try:
        servers = value_at(place.read_text(encoding="utf-8"), ("mcpServers",))
    except (OSError, ValueError, CallerError):
        return False
    return isinstance(servers, dict) and NAME in servers
