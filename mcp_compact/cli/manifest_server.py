"""The one description of the server that every manifest is made from: its name, how it starts, what it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_compact import __version__
from mcp_compact.cli.install_program import Program
from mcp_compact.cli.product import NAME

DESCRIPTION = "Keeps an agent's conversation inside its context window and loses nothing for good."
"""At most 100 characters, as the MCP registry wants it."""
START_S = 60
"""From the start to `initialize`. A first import of the MCP library can take seconds; clients give up after 5 or 10."""
CALL_S = 300
"""One call. Longer than the 120 s that a provider may take for a summary, and than an import of a long transcript."""
PROFILE = "core"
"""The tools that a server has unless it is told otherwise."""
OFFERED = ("MCP_COMPACT_DB", "MCP_COMPACT_AT", "MCP_COMPACT_CONTEXT_WINDOW", "MCP_COMPACT_PRESET", "MCP_COMPACT_ROOTS")
"""Settings that a person may want to set where a client asks for some."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server as a client has to know it: started over stdin and stdout, or reached at `url`."""

    name: str = NAME
    title: str = NAME
    description: str = DESCRIPTION
    version: str = __version__
    command: str = NAME
    """Found on the path: for files that are for everybody. On one machine it is the program's absolute path."""
    args: tuple[str, ...] = ("serve",)
    env: Mapping[str, str] = field(default_factory=dict)
    start_s: int = START_S
    call_s: int = CALL_S
    url: str = ""
    token: str = ""
    """The environment variable that holds the bearer token; never the token itself."""


def server(profile: str = PROFILE, program: Program | None = None, *, url: str = "", token: str = "") -> Server:
    """The server for a client; with a program, the one that is installed here."""
    words, env = (program.words, program.env) if program else ((NAME,), {})
    chosen = () if profile == PROFILE else ("--profile", profile)
    return Server(command=words[0], args=(*words[1:], "serve", *chosen), env=env, url=url, token=token)
