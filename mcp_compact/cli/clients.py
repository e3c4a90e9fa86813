"""Which coding agents are here, and the one command that gives each of them this server.

How an entry of it looks is described in one place, `manifest_clients`.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.cli.manifest_clients import client_named
from mcp_compact.cli.manifest_server import Server
from mcp_compact.cli.product import NAME

MOST = "claude-desktop"
"""Its form is that of most."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do next: `how` says it in a few words, `command` is to be pasted as it stands."""

    client: str
    how: str
    command: str
    others: tuple[str, ...] = ()
    """Other clients that were found here."""


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent: its program, its folders below the home directory, and how it takes a server."""

    name: str
    programs: tuple[str, ...]
    folders: tuple[str, ...]
    command: Callable[[list[str]], str]
    how: str = "Run"


def _install(client: str) -> Callable[[list[str]], str]:
    """Our own command puts more into a client than its server, and takes it out again."""
    return lambda server: shlex.join([*server[:-1], "install", client])


def _manifest(client: str) -> Callable[[list[str]], str]:
    """For a client without hooks: the entry, merged into its own file."""
    return lambda server: shlex.join([*server[:-1], "manifest", client, "--write"])


def generic(server: list[str]) -> str:
    """The entry that most clients understand, on one line."""
    client = client_named(MOST)
    return json.dumps(client.document(client.entry(Server(command=server[0], args=tuple(server[1:])))))


CLIENTS = (
    Client("Claude Code", ("claude",), (".claude",), _install("claude-code")),
    Client("Codex", ("codex",), (".codex",), _install("codex")),
    Client("Gemini CLI", ("gemini",), (".gemini",), _install("gemini-cli")),
    Client("opencode", ("opencode",), (".config/opencode",), _install("opencode")),
    Client("pi", ("pi",), (".pi",), _install("pi")),
    Client("Cursor", ("cursor",), (".cursor",), _manifest("cursor")),
    Client("VS Code", ("code",), (".vscode", ".config/Code"), _manifest("vscode")),
)


def next_step(home: Path, which: Callable[[str], str | None] = shutil.which) -> NextStep:
    """The next step for the first client that is here: by its program, else by its folder; else for any client."""
    found = [c for c in CLIENTS if any(map(which, c.programs))]
    found += [c for c in CLIENTS if c not in found and any((home / folder).is_dir() for folder in c.folders)]
    server = server_command(which)
    if not found:
        return NextStep("", "Put into the MCP settings of your client", generic(server))
    first = found[0]
    return NextStep(first.name, first.how, first.command(server), tuple(c.name for c in found[1:]))


def server_command(which: Callable[[str], str | None] = shutil.which) -> list[str]:
    """How a client starts this server: the program beside this Python, else the one on the path, else Python."""
    beside = [Path(sys.executable).parent / name for name in (NAME, f"{NAME}.exe")]
    own = next((str(path) for path in beside if path.is_file()), None) or which(NAME)
    return [own, "serve"] if own else [sys.executable, "-m", "mcp_compact", "serve"]
