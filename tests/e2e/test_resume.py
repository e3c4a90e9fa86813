"""A session that goes on in a new file: what the client then sends is what our archive calls live."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.e2e.claude import REPOSITORY, Claude
from tests.e2e.endpoint import Json
from tests.e2e.long_session import long_session
from tests.e2e.test_claude_code import RULE


@pytest.fixture
def own(claude: Claude, tmp_path) -> Claude:
    """The installed client with a project and an archive of this test's own."""
    (tmp_path / "project").mkdir()
    claude.model.script()
    return replace(claude, project=tmp_path / "project", env={"MCP_COMPACT_DB": str(tmp_path / "own" / "archive.db")})


async def test_the_first_request_of_a_resumed_session_is_our_live_context(own):
    old = long_session(own, RULE, megabytes=1)
    before = own.transcript(old).read_bytes()
    made = own.ours_json("resume", str(own.transcript(old)))
    live = await live_context(own, made["new_session_id"])
    with own.conversation(resume=made["new_session_id"]) as talk:
        (first,) = talk.ask("Go on.")
    assert own.transcript(old).read_bytes() == before
    assert made["tokens_after"] < made["tokens_before"] / 2
    assert pieces(first["messages"]) == [*pieces(live), ("user", "text", "Go on.")]
    assert RULE in json.dumps(live)


def test_the_printed_command_opens_it(own):
    old = long_session(own, RULE, megabytes=1)
    done = own.ours("resume", str(own.transcript(old)))
    assert done.returncode == 0, done.stderr
    (command,) = (line.strip() for line in done.stdout.splitlines() if "claude --resume" in line)
    session = command.split()[-1]
    assert own.transcript(session).exists()


def pieces(messages: list[Json]) -> list[tuple[str, str, Any]]:
    """What is said in a list of messages, in order, without the client's own reminders and cache marks."""
    found: list[tuple[str, str, Any]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "text":
                    found += [(message["role"], "text", text) for text in [plain(block["text"])] if text]
                case "tool_use":
                    found.append((message["role"], "tool_use", (block["id"], block["name"], block["input"])))
                case "tool_result":
                    found.append((message["role"], "tool_result", (block["tool_use_id"], result_text(block))))
    return found


def plain(text: str) -> str:
    """A text without the reminders that the client puts around it."""
    while text.lstrip().startswith("<system-reminder>"):
        text = text.partition("</system-reminder>")[2]
    return text.strip()


def result_text(block: Json) -> str:
    content = block.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(text for part in texts if (text := plain(part.partition("\n\n<system-reminder>")[0])))


async def live_context(own: Claude, session: str) -> list[Json]:
    """What our server calls live, all pages of it."""
    env = {**own.environment(), "PYTHONPATH": str(REPOSITORY)}
    server = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "mcp_compact", "serve"], env=env, cwd=own.project
    )
    messages: list[Json] = []
    async with Client(stdio_client(server)) as client:
        cursor = ""
        while True:
            call = await client.call_tool(
                "get_messages_after_boundary", {"session_id": session, "cursor": cursor}, read_timeout_seconds=120
            )
            page = call.structured_content
            assert page is not None, call
            messages += page["messages"]
            cursor = page.get("next_cursor") or ""
            if not cursor:
                return messages
