"""An agent loop on OpenAI's chat API whose list is kept by the server, over MCP.

    python examples/openai_server_loop.py

Each new message is appended to the archive; the answer says when to compact; the list that is sent next is what
`get_messages_after_boundary` gives. What left it can still be searched. The loop talks to the stand-in beside
this file; for a real provider replace `ask` with its client.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from stand_in import TASK, TOOL, StandIn, mark, read_part, serving

Json = dict[str, Any]
MODEL = "gpt-5"
SYSTEM = {"role": "system", "content": "You read books."}
PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOLS = [{"type": "function", "function": {"name": TOOL, "description": "Read a part.", "parameters": PARAMETERS}}]
SESSION = "book"
TARGET = 0.25
"""Share of the window that the compacted list may have. The server says `should_compact` well before it is full."""
OVERHEAD_TOKENS = 200
"""Of the system prompt and the tools, which are sent with every request."""


@dataclass
class Ran:
    """How the loop went."""

    answer: str
    requests: int
    compactions: int
    found: str
    """What the archive still knows of the first part, which left the list long ago."""


def ask(url: str, messages: list[Json]) -> Json:
    """One request to the provider; the message that it answers."""
    body = {"model": MODEL, "tools": TOOLS, "messages": messages}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: Json = json.load(response)["choices"][0]["message"]
    return answer


async def call(client: Client, tool: str, **arguments: object) -> Json:
    """A tool's structured answer."""
    result = await client.call_tool(tool, {"session_id": SESSION, **arguments})
    if result.is_error or result.structured_content is None:
        raise SystemExit(f"{tool}: {result.content}")
    return dict(result.structured_content)


async def run(stand_in: StandIn, client: Client) -> Ran:
    """The loop: ask, call the tool, append what is new, and compact when the server says so."""
    messages: list[Json] = [{"role": "user", "content": TASK}]
    await append(client, messages, stand_in.window)
    requests = compactions = 0
    while True:
        answer = await anyio.to_thread.run_sync(ask, stand_in.url, [SYSTEM, *messages])
        requests += 1
        new = [answer, *map(result_of, answer.get("tool_calls", ()))]
        messages += new
        status = await append(client, new, stand_in.window)
        if not answer.get("tool_calls"):
            found = await call(client, "search_messages", query=mark(1))
            return Ran(answer["content"], requests, compactions, found["hits"][0]["snippet"] if found["hits"] else "")
        if status["should_compact"]:
            target = int(TARGET * stand_in.window)
            done = await call(client, "compact_session", trigger="auto", target_tokens=target)
            compactions += done["status"] == "compacted"
            print(f"request {requests}: {done['status']}, {done['tokens_before']:,} -> {done['tokens_after']:,} tokens")
            messages = await live_messages(client)


def result_of(tool_call: Json) -> Json:
    """Call the tool."""
    arguments = json.loads(tool_call["function"]["arguments"])
    return {"role": "tool", "tool_call_id": tool_call["id"], "content": read_part(arguments["number"])}


async def append(client: Client, new: list[Json], window: int) -> Json:
    """Archive what is new; how full the context is."""
    known = {"model": MODEL, "context_window": window, "overhead_tokens": OVERHEAD_TOKENS}
    answer = await call(client, "append_messages", messages=new, **known)
    status: Json = answer["status"]
    return status


async def live_messages(client: Client) -> list[Json]:
    """The list to send from now on, page by page. It goes to a provider, not to a model's eyes: no message in parts."""
    messages: list[Json] = []
    cursor = ""
    while True:
        asked = {"format": "openai", "cursor": cursor, "whole_messages": True}
        page = await call(client, "get_messages_after_boundary", **asked)
        messages += page["messages"]
        cursor = page["next_cursor"]
        if not cursor:
            return messages


def server(archive: Path) -> StdioServerParameters:
    """This Python's own server, with an archive of its own."""
    env = {"MCP_COMPACT_DB": str(archive), "PYTHONPATH": os.pathsep.join(filter(None, sys.path[1:]))}
    return StdioServerParameters(command=sys.executable, args=["-m", "mcp_compact", "serve"], env=env)


async def against_stand_in(parts: int, window: int, archive: Path) -> tuple[Ran, StandIn]:
    """Run the loop against the stand-in."""
    with serving(parts, window) as stand_in:
        async with Client(stdio_client(server(archive))) as client:
            return await run(stand_in, client), stand_in


def main() -> None:
    """Run the loop against the stand-in and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=int, default=40, help="parts of the book (default: 40)")
    parser.add_argument("--window", type=int, default=12_000, help="tokens that a request may have (default: 12,000)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "archive.db"
        ran, stand_in = anyio.run(against_stand_in, arguments.parts, arguments.window, archive)
    print(f"{ran.answer} {ran.requests} requests, {ran.compactions} compactions, {stand_in.told()}.")
    print(f"Found in the archive: {ran.found}")


if __name__ == "__main__":
    main()
