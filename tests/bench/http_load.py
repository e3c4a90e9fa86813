"""Many agents on one server: 200 HTTP clients on 200 sessions, 20 calls each; and what the status costs.

    python tests/bench/http_load.py [CLIENTS]

Each client makes 10 get_context_status, 8 append_messages of 1 kB and 2 get_messages_after_boundary. Then as
many calls go to an echo tool of the same SDK on the same kind of server. Printed: errors, messages lost, the
throughput of both by the server's CPU once it is warm (as wall time depends on the machine's other work), their
ratio, and the CPU that a status costs above the echo.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

from tests.server.web import environment, web

CLIENTS = 200
STATUS, APPENDS, READS = 10, 8, 2
TEXT = " ".join(f"Step {n}: read src/part_{n}.py, {n * 37} lines, and fix test {n}." for n in range(18))
REPEATS = 5
WARMING = 3
"""Clients that come first."""
PAUSE_S = 0.05
ECHO = """
from mcp.server import MCPServer
mcp = MCPServer("echo", log_level="WARNING")
@mcp.tool()
def echo(text: str) -> str:
    "Give the text back."
    return text
import socket, sys, uvicorn
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(2048)
sys.stderr.write(f"MCP at http://127.0.0.1:{listener.getsockname()[1]}/mcp, echo.\\n"); sys.stderr.flush()
uvicorn.Server(uvicorn.Config(mcp.streamable_http_app(), log_config=None, access_log=False)).run([listener])
"""
TICKS = os.sysconf("SC_CLK_TCK")
Work = Callable[[Client, int], Awaitable[int]]


async def agent(client: Client, number: int) -> int:
    """What one agent does; the errors it met and messages it missed."""
    session, faults = f"agent-{number}", 0
    message = {"role": "user", "content": TEXT}
    for step in range(STATUS + APPENDS + READS):
        if step == 0 or step % 5 in (1, 3):
            answer = await client.call_tool("append_messages", {"messages": [message], "session_id": session})
        elif step in (10, 19):
            answer = await client.call_tool("get_messages_after_boundary", {"session_id": session})
        else:
            answer = await client.call_tool("get_context_status", {"session_id": session})
        faults += bool(answer.is_error)
    return faults


async def warming(client: Client, number: int) -> int:
    """The same in a session of its own."""
    return await agent(client, -1 - number)


async def stored(client: Client, number: int) -> int:
    """Messages of a session, counted by the server."""
    answer = await client.call_tool("get_context_status", {"session_id": f"agent-{number}"})
    return int((answer.structured_content or {})["live_messages"])


async def echoes(client: Client, _: int) -> int:
    """As many calls of the echo."""
    return sum([bool((await client.call_tool("echo", {"text": TEXT})).is_error) for _ in range(20)])


async def crowd(url: str, work: Work, clients: int) -> int:
    """All clients at once; what they met, added up."""
    found: list[int] = []

    async def one(number: int) -> None:
        async with (
            httpx2.AsyncClient(timeout=600) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            found.append(await work(client, number))

    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            tasks.start_soon(one, number)
    return sum(found)


def spent_s(pid: int) -> float:
    """CPU seconds of a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def echo_server(folder: Path) -> Iterator[tuple[int, str]]:
    """The echo's process and address."""
    process = subprocess.Popen(
        [sys.executable, "-c", ECHO], stderr=subprocess.PIPE, env=environment(folder), cwd=folder
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        url = line.partition("MCP at ")[2].partition(",")[0]
        for _ in range(200):
            try:
                httpx2.get(url, timeout=5)
                break
            except httpx2.HTTPError:
                time.sleep(PAUSE_S)
        yield process.pid, url
    finally:
        process.kill()
        process.wait()


def measured(pid: int, url: str, work: Work, clients: int) -> tuple[int, float]:
    """What the clients met, and the server's CPU seconds for it."""
    before = spent_s(pid)
    faults = anyio.run(crowd, url, work, clients)
    return faults, spent_s(pid) - before


async def _calls(url: str, name: str, arguments: dict[str, str], number: int) -> None:
    async with (
        httpx2.AsyncClient(timeout=600) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        for _ in range(number):
            await client.call_tool(name, arguments)


def main() -> None:
    """Print the figures."""
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else CLIENTS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # So many clients in one process may take long to send what they have begun; that is not measured here.
        patient = {"MCP_COMPACT_HTTP_RECEIVE_TIMEOUT_S": "600"}
        with web(folder, "--transport", "http", env=patient) as server, echo_server(folder) as (echo_pid, echo_url):
            pid, calls = server.process.pid, clients * 20
            # Both have imported what they need, and have answered, before anything is measured.
            anyio.run(crowd, server.url, warming, WARMING)
            anyio.run(crowd, echo_url, echoes, WARMING)
            faults, ours_s = measured(pid, server.url, agent, clients)
            kept = anyio.run(crowd, server.url, stored, clients)
            sent = clients * sum(step == 0 or step % 5 in (1, 3) for step in range(20))
            _, echo_s = measured(echo_pid, echo_url, echoes, clients)
            print(f"{clients} clients, {calls:,} calls: {faults} errors, {sent - kept} of {sent:,} messages lost")
            print(
                f"ours {calls / ours_s:,.0f} calls, echo {calls / echo_s:,.0f} calls a CPU second: {echo_s / ours_s:.2f} x"
            )
            added = []
            for _ in range(REPEATS):
                before = spent_s(pid), spent_s(echo_pid)
                anyio.run(_calls, server.url, "get_context_status", {"session_id": "agent-0"}, 200)
                anyio.run(_calls, echo_url, "echo", {"text": TEXT}, 200)
                added.append(((spent_s(pid) - before[0]) - (spent_s(echo_pid) - before[1])) / 200 * 1000)
            print(f"get_context_status above the echo: {statistics.median(added):.2f} ms CPU a call (at most 1)")


if __name__ == "__main__":
    main()
