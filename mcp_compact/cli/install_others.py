"""Codex, Gemini CLI, opencode and pi: the server's entry in each one's own settings, and what stands at its hooks.

The entry is the one that `mcp-compact manifest` writes. Codex and Gemini CLI have hooks that start a command; opencode
and pi load a file of ours, which starts it. pi takes no MCP server: there its file brings the search as a tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.cli.client_folders import codex_home, home, pi_folder
from mcp_compact.cli.install_entries import Entries, JsonEntry, JsonItem, OwnFile, TomlBlock, Wanted
from mcp_compact.cli.install_files import with_previous
from mcp_compact.cli.install_program import Program, manifests
from mcp_compact.cli.install_record import Record
from mcp_compact.cli.manifest_clients import TOML, client_named
from mcp_compact.cli.manifest_server import server
from mcp_compact.cli.manifest_text import as_toml

CODEX, GEMINI_CLI, OPENCODE, PI = "codex", "gemini-cli", "opencode", "pi"
CODEX_EVENTS = {
    "SessionStart": 20, "UserPromptSubmit": 20, "PreCompact": 120, "PostCompact": 120, "Stop": 60, "SessionEnd": 3,
}  # fmt: skip
"""Its events, and how many seconds a hook may take; at the session's end it allows no more, and a child goes on."""
GEMINI_EVENTS = {"SessionStart": 20, "BeforeAgent": 120, "AfterAgent": 60, "SessionEnd": 20}
"""`PreCompress` is none of them: it comes before every request, whether or not anything is compacted."""
MS = 1000
TRUST = "Codex runs new hooks only once they are trusted: type /hooks in it, look at them, and trust them."
WORDS = re.compile(r"^const (HOOK|PROGRAM|ENV) = .*$", re.MULTILINE)
"""What of a file of ours names the program."""


@dataclass(frozen=True, slots=True)
class Other:
    """Where a client keeps its settings, and what of ours belongs there."""

    folder: Callable[[], Path]
    wanted: Callable[[Path, Program, Record], list[Wanted]]
    notes: tuple[str, ...] = ()
    has_server: bool = True


def _server_entry(key: str, folder: Path, program: Program, record: Record) -> Entries:
    """The entry of the server in the client's own file."""
    client = client_named(key)
    entry = client.entry(server(client.profile, program))
    path = next((folder / name for name in (client.file, *client.others) if (folder / name).exists()),
                folder / client.file)  # fmt: skip
    if client.kind == TOML:
        said = f"# Put here by `mcp-compact install {key}`; `mcp-compact uninstall {key}` takes it out.\n"
        return Entries(path, (TomlBlock(".".join(client.keys), said + as_toml(client.document(entry))),))
    return Entries(path, (with_previous(JsonEntry(client.keys, entry), path, record),))


def _codex(folder: Path, program: Program, record: Record) -> list[Wanted]:
    line = program.hook_line("--client", CODEX)
    items = tuple(
        JsonItem(("hooks", event), {"hooks": [{"type": "command", "command": line, "timeout": seconds}]})
        for event, seconds in CODEX_EVENTS.items()
    )
    return [_server_entry(CODEX, folder, program, record), Entries(folder / "hooks.json", items)]


def _gemini(folder: Path, program: Program, record: Record) -> list[Wanted]:
    settings, line = _server_entry(GEMINI_CLI, folder, program, record), program.hook_line("--client", GEMINI_CLI)
    items = tuple(
        JsonItem(
            ("hooks", event),
            {"hooks": [{"type": "command", "command": line, "name": "mcp-compact", "timeout": seconds * MS}]},
        )
        for event, seconds in GEMINI_EVENTS.items()
    )
    return [Entries(settings.path, (*settings.entries, *items))]


def _opencode(folder: Path, program: Program, record: Record) -> list[Wanted]:
    name = "plugins/mcp-compact.js"
    return [_server_entry(OPENCODE, folder, program, record), _own_file(OPENCODE, name, folder, program)]


def _pi(folder: Path, program: Program, _: Record) -> list[Wanted]:
    return [_own_file(PI, "extensions/mcp-compact.ts", folder, program)]


def _own_file(client: str, name: str, folder: Path, program: Program) -> OwnFile:
    """A shipped file with this installation's words in it."""
    words = {"HOOK": [*program.hook, "--client", client], "PROGRAM": list(program.words), "ENV": program.env}
    text = (manifests(client) / name).read_text(encoding="utf-8")
    # A value may hold what a pattern's replacement would read as its own.
    filled = WORDS.sub(lambda found: f"const {found[1]} = {json.dumps(words[found[1]])}", text)
    return OwnFile(folder / name, filled.encode())


def _folder_of(key: str) -> Callable[[], Path]:
    """The folder of a client's own settings, as `manifest` knows it."""

    def folder() -> Path:
        own = client_named(key).folder
        return (own() if own is not None else home()).absolute()

    return folder


OTHERS: Mapping[str, Other] = {
    CODEX: Other(lambda: codex_home().absolute(), _codex, (TRUST,)),
    GEMINI_CLI: Other(_folder_of(GEMINI_CLI), _gemini),
    OPENCODE: Other(_folder_of(OPENCODE), _opencode),
    PI: Other(lambda: pi_folder().absolute(), _pi, has_server=False),
}
