"""Codex, Gemini CLI and opencode: the server's entry in each one's own settings.

Hooks that they may have around their own compactions were not tried, so none is put there: what they said is picked
up by the server, or by `mcp-compact watch`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.cli.clients import NAME
from mcp_compact.cli.environment import value_of
from mcp_compact.cli.install_entries import Entries, JsonEntry, TomlBlock
from mcp_compact.cli.install_files import with_previous
from mcp_compact.cli.install_program import Program
from mcp_compact.cli.install_record import Record

SERVE = ("serve", "--profile", "agent")
START_S = 60
"""What a server may take to start; the clients' own limits are shorter than a cold start on a busy machine."""

HANDED_ON = ("MCP_COMPACT_DB", "MCP_COMPACT_ROOTS", "MCP_COMPACT_SCOPE", "XDG_DATA_HOME")
"""Codex starts servers with few of its variables; without these ours would work on another archive."""


@dataclass(frozen=True, slots=True)
class Other:
    """Where a client keeps its settings, and our entry in them."""

    folder: Callable[[], Path]
    entries: Callable[[Path, Program, Record], Entries]


def _home(variable: str, usual: str) -> Path:
    named = value_of(variable)
    return Path(named).expanduser().absolute() if named else Path.home() / usual


def _codex(folder: Path, program: Program, _: Record) -> Entries:
    lines = [
        f"# Put here by `mcp-compact install codex`; `mcp-compact uninstall codex` takes it out.\n[mcp_servers.{NAME}]",
        f"command = {_quoted(program.words[0])}",
        f"args = [{', '.join(map(_quoted, (*program.words[1:], *SERVE)))}]",
        f"startup_timeout_sec = {START_S}",
        f"env_vars = [{', '.join(map(_quoted, HANDED_ON))}]",
    ]
    if program.env:
        lines += [f"\n[mcp_servers.{NAME}.env]", *(f"{name} = {_quoted(value)}" for name, value in program.env.items())]
    return Entries(folder / "config.toml", (TomlBlock(f"mcp_servers.{NAME}", "\n".join(lines) + "\n"),))


def _quoted(text: str) -> str:
    """A text as TOML has it: the escapes of JSON are a part of its own."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _gemini(folder: Path, program: Program, record: Record) -> Entries:
    server: dict[str, object] = {"command": program.words[0], "args": [*program.words[1:], *SERVE]}
    if program.env:
        server["env"] = program.env
    server["timeout"] = START_S * 1000
    return _json_entry(folder / "settings.json", ("mcpServers", NAME), server, record)


def _opencode(folder: Path, program: Program, record: Record) -> Entries:
    server: dict[str, object] = {"type": "local", "command": [*program.words, *SERVE], "enabled": True}
    server["timeout"] = START_S * 1000
    if program.env:
        server["environment"] = program.env
    names = ("opencode.json", "opencode.jsonc")
    path = next((folder / name for name in names if (folder / name).exists()), folder / names[0])
    return _json_entry(path, ("mcp", NAME), server, record)


def _json_entry(path: Path, keys: tuple[str, ...], value: Mapping[str, object], record: Record) -> Entries:
    return Entries(path, (with_previous(JsonEntry(keys, dict(value)), path, record),))


OTHERS: Mapping[str, Other] = {
    "codex": Other(lambda: _home("CODEX_HOME", ".codex"), _codex),
    "gemini-cli": Other(lambda: _home("GEMINI_CLI_HOME", "") / ".gemini", _gemini),
    "opencode": Other(lambda: _home("XDG_CONFIG_HOME", ".config") / "opencode", _opencode),
}
