"""How clients reach the server. Standard output carries the protocol and nothing else; logs go to standard error."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

import anyio
from mcp.server.stdio import stdio_server

from mcp_compact.config import Settings, load_settings
from mcp_compact.errors import CallerError
from mcp_compact.server.app import CompactServer, build_server
from mcp_compact.server.logs import log_to_stderr
from mcp_compact.server.stdio import Answers, Requests

TRANSPORTS = ("stdio", "http", "sse")
"""`http` is the streamable HTTP of MCP; `sse` is deprecated by it and served for older clients."""
GRACE_S = 4.5
"""How long calls that cannot be stopped (a count in a thread) may go on once the client has left."""
ENDED_HARD = "The client left and a call could not be stopped: the process is ended. What was acknowledged is stored."


def serve(
    transport: str = "stdio",
    *,
    profile: str = "core",
    settings: Settings | None = None,
    is_stateless: bool = False,
) -> int:
    """Serve until the client leaves, over a network until told to stop; the exit code.

    Raises CallerError for a transport that there is not, and where it cannot listen as asked.
    """
    if transport not in TRANSPORTS:
        raise CallerError(
            "bad_transport", f"There is no transport {transport[:40]!r}.", f"Use {', '.join(TRANSPORTS)}."
        )
    known = settings or load_settings()
    if transport == "stdio":
        return serve_stdio(known, profile=profile)
    from mcp_compact.server.network import serve_network  # noqa: PLC0415 - stdio needs no web server

    log_to_stderr(known)
    return serve_network(known, transport, profile=profile, is_stateless=is_stateless)


def serve_stdio(settings: Settings | None = None, *, profile: str = "core") -> int:
    """Serve one client over standard input and output until input ends; the exit code."""
    known = settings or load_settings()
    log_to_stderr(known)
    # What was acknowledged is on disk, so an interrupt may end the process at once; a thread that
    # waits for a line of input could not be ended otherwise.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_stdio, known, profile)
    except* (BrokenPipeError, ConnectionResetError):
        # The client closed its end before it had read everything.
        _leave_soon()
    return 0


async def _stdio(settings: Settings, profile: str) -> None:
    answered = anyio.Event()
    server = build_server(settings, profile=profile, answered=answered)
    async with stdio_server() as (read, write):
        answers = Answers(write, answered.set)
        await run_streams(server, Requests(read, answers, _leave_soon), answers)


async def run_streams(server: CompactServer, requests: Requests, answers: Answers) -> None:
    """Serve one connection over a pair of streams."""
    # The SDK's server has no public way to be run over given streams in both eras.
    inner = server._lowlevel_server  # noqa: SLF001
    await inner.run(requests, answers, inner.create_initialization_options())


def _leave_soon() -> None:
    """End the process after a while, should a thread that cannot be stopped still be at work by then."""
    timer = threading.Timer(GRACE_S, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    # Not by way of logging: the thread that cannot be stopped may hold its lock.
    with suppress(OSError):
        os.write(2, f"WARNING {__name__}: {ENDED_HARD}\n".encode())
    os._exit(0)
