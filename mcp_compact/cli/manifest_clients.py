"""Every client that takes the server: the form of its entry, the kind of its file, where that lies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_compact.cli.client_folders import codex_home, home
from mcp_compact.cli.environment import value_of
from mcp_compact.cli.manifest_server import PROFILE, Server
from mcp_compact.cli.product import NAME
from mcp_compact.errors import CallerError

Entry = dict[str, Any]
JSON, TOML, YAML = "json", "toml", "yaml"
SERVERS = ("mcpServers", NAME)
HANDED_ON = ("MCP_COMPACT_DB", "MCP_COMPACT_ROOTS", "MCP_COMPACT_SCOPE", "XDG_DATA_HOME", "CODEX_HOME")
AGENT = "agent"
"""The tools for clients whose conversations come into the archive by themselves: by hooks, the server or `watch`."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client: `keys` lead to its entry, `file` is its file's name, `folder` where a user's own file lies.

    `project` is the file of one folder, relative to it; `variable` how its file names an environment variable.
    """

    key: str
    title: str
    file: str
    stdio: Callable[[Server], Entry]
    http: Callable[[Server], Entry] | None = None
    keys: tuple[str, ...] = SERVERS
    kind: str = JSON
    folder: Callable[[], Path] | None = None
    project: str = ""
    variable: str = ""
    head: Mapping[str, Any] = field(default_factory=dict)
    """What a whole file of it begins with."""
    profile: str = PROFILE
    others: tuple[str, ...] = ()
    """Other names of its own file, used where one is there."""
    remote: str = ""
    """What to do instead, where its file takes no server on a network."""

    def entry(self, server: Server) -> Entry:
        """The entry of this server. Raises CallerError where the client's file cannot say it."""
        if not server.url:
            return self.stdio(server)
        if self.http is None:
            raise CallerError("no_remote", f"{self.title}'s file takes no server on a network.", self.remote)
        if server.token and not self.variable:
            raise CallerError(
                "no_variable",
                f"{self.title}'s file takes a token itself, not the name of a variable.",
                "Leave --token-env out; then add its header Authorization by hand, where only you can read it.",
            )
        return self.http(server)

    def document(self, entry: Entry) -> dict[str, Any]:
        """The entry below its keys."""
        value: Any = entry
        for key in reversed(self.keys):
            value = {key: value}
        return {**self.head, **value}

    def place(self, *, project: bool) -> Path:
        """The file that the client reads. Raises CallerError where it has none of that kind."""
        if project or self.folder is None:
            if not self.project:
                raise CallerError(
                    "no_project_file", f"{self.title} has no file for one folder.", "Leave --project out."
                )
            return Path.cwd() / self.project
        folder = self.folder()
        return next((folder / name for name in self.others if (folder / name).exists()), folder / self.file)


# ---------------------------------------------------------------- forms of entries


def _with(entry: Entry, name: str, value: object) -> Entry:
    return {**entry, name: value} if value else entry


def _plain(server: Server) -> Entry:
    return _with({"command": server.command, "args": list(server.args)}, "env", dict(server.env))


def _typed(server: Server) -> Entry:
    return {"type": "stdio", **_plain(server)}


def _gemini(server: Server) -> Entry:
    return {**_plain(server), "timeout": server.call_s * 1000}


def _codex(server: Server) -> Entry:
    return _with(
        {
            "command": server.command,
            "args": list(server.args),
            "startup_timeout_sec": server.start_s,
            "tool_timeout_sec": server.call_s,
            # It starts servers with few of its variables; without these ours would work on another archive.
            "env_vars": list(HANDED_ON),
        },
        "env",
        dict(server.env),
    )


def _opencode(server: Server) -> Entry:
    # Its one limit holds for the start as for a call.
    entry = {
        "type": "local",
        "command": [server.command, *server.args],
        "enabled": True,
        "timeout": server.call_s * 1000,
    }
    return _with(entry, "environment", dict(server.env))


def _goose(server: Server) -> Entry:
    return {
        "name": server.name,
        "description": server.description,
        "type": "stdio",
        "cmd": server.command,
        "args": list(server.args),
        "enabled": True,
        "envs": dict(server.env),
        "timeout": server.call_s,
    }


def _zed(server: Server) -> Entry:
    return {"source": "custom", **_plain(server)}


def _headers(entry: Entry, server: Server, variable: str) -> Entry:
    return _with(entry, "headers", {"Authorization": f"Bearer {variable % server.token}"} if server.token else {})


def _remote(server: Server, variable: str = "${env:%s}") -> Entry:
    return _headers({"url": server.url}, server, variable)


def _typed_remote(variable: str) -> Callable[[Server], Entry]:
    return lambda server: {"type": "http", **_remote(server, variable)}


def _gemini_remote(server: Server) -> Entry:
    return _headers({"httpUrl": server.url, "timeout": server.call_s * 1000}, server, "${%s}")


def _codex_remote(server: Server) -> Entry:
    entry = {"url": server.url, "startup_timeout_sec": server.start_s, "tool_timeout_sec": server.call_s}
    return _with(entry, "bearer_token_env_var", server.token)


def _opencode_remote(server: Server) -> Entry:
    entry = {"type": "remote", "url": server.url, "enabled": True, "timeout": server.call_s * 1000}
    return _headers(entry, server, "{env:%s}")


def _goose_remote(server: Server) -> Entry:
    return {
        "name": server.name,
        "description": server.description,
        "type": "streamable_http",
        "uri": server.url,
        "enabled": True,
        "timeout": server.call_s,
    }


def _windsurf_remote(server: Server) -> Entry:
    return _headers({"serverUrl": server.url}, server, "${env:%s}")


# ---------------------------------------------------------------- folders


def _application(name: str) -> Callable[[], Path]:
    """Where a desktop application keeps a user's settings, as each system has it."""

    def folder() -> Path:
        if sys.platform == "darwin":
            return home() / "Library" / "Application Support" / name
        if sys.platform == "win32":
            return Path(value_of("APPDATA") or home() / "AppData" / "Roaming") / name
        return _settings_folder() / name

    return folder


def _settings_folder() -> Path:
    return Path(value_of("XDG_CONFIG_HOME") or home() / ".config")


def _tool(name: str, windows: str = "") -> Callable[[], Path]:
    """Where a command-line tool keeps them: below ~/.config on macOS too."""

    def folder() -> Path:
        if sys.platform == "win32" and windows:
            return Path(value_of("APPDATA") or home() / "AppData" / "Roaming") / windows
        return _settings_folder() / name

    return folder


def _below_home(name: str) -> Callable[[], Path]:
    return lambda: home() / name


def _gemini_folder() -> Path:
    return Path(value_of("GEMINI_CLI_HOME") or home()).expanduser() / ".gemini"


CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-desktop", "Claude Desktop", "claude_desktop_config.json", _plain, folder=_application("Claude"),
        remote="Add it under Settings > Connectors.",
    ),
    Client(
        "claude-code", "Claude Code", ".mcp.json", _typed, _typed_remote("${%s}"), project=".mcp.json",
        variable="${%s}", profile=AGENT,
    ),
    Client(
        "vscode", "VS Code", "mcp.json", _typed, _typed_remote("${env:%s}"), ("servers", NAME),
        folder=_application("Code/User"), project=".vscode/mcp.json", variable="${env:%s}",
    ),
    Client(
        "cursor", "Cursor", "mcp.json", _plain, _remote, folder=_below_home(".cursor"), project=".cursor/mcp.json",
        variable="${env:%s}",
    ),
    Client(
        "codex", "Codex", "config.toml", _codex, _codex_remote, ("mcp_servers", NAME), TOML, codex_home,
        ".codex/config.toml", variable="%s", profile=AGENT,
    ),
    Client(
        "gemini-cli", "Gemini CLI", "settings.json", _gemini, _gemini_remote, folder=_gemini_folder,
        project=".gemini/settings.json", variable="${%s}", profile=AGENT,
    ),
    Client(
        "opencode", "opencode", "opencode.json", _opencode, _opencode_remote, ("mcp", NAME), folder=_tool("opencode"),
        project="opencode.json", variable="{env:%s}", head={"$schema": "https://opencode.ai/config.json"},
        profile=AGENT, others=("opencode.jsonc",),
    ),
    Client(
        "goose", "Goose", "config.yaml", _goose, _goose_remote, ("extensions", NAME), YAML,
        _tool("goose", "Block/goose/config"),
    ),
    Client(
        "zed", "Zed", "settings.json", _zed, _remote, ("context_servers", NAME), folder=_tool("zed", "Zed"),
        project=".zed/settings.json",
    ),
    Client(
        "windsurf", "Windsurf", "mcp_config.json", _plain, _windsurf_remote, folder=_below_home(".codeium/windsurf"),
        variable="${env:%s}",
    ),
)  # fmt: skip


def client_named(key: str) -> Client:
    """The client of that name. Raises CallerError where there is none."""
    found = next((client for client in CLIENTS if client.key == key), None)
    if found is None:
        raise CallerError("no_client", f"No client is called {key[:40]!r}.", f"There are {', '.join(client_keys())}.")
    return found


def client_keys() -> tuple[str, ...]:
    """The names of all clients."""
    return tuple(client.key for client in CLIENTS)


def client_rows() -> list[tuple[str, str, str, str]]:
    """Every client for the docs: its name here, its title, its own file, the file of one folder."""
    return [(client.key, client.title, client.file, client.project) for client in CLIENTS]
