"""Conversations and calls that the tests of the server share."""

from __future__ import annotations

import json
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def read_call(number: int) -> list[dict[str, Any]]:
    """A file that is read: the call and its long result."""
    name = f"toolu_{number}"
    lines = "\n".join(f"def function_{number}_{line}(value): return value + {line}" for line in range(120))
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": f"src/module_{number}.py"}}
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": lines}]},
    ]


def conversation(rounds: int) -> list[dict[str, Any]]:
    """A valid conversation with a file read in every round."""
    messages: list[dict[str, Any]] = []
    for number in range(rounds):
        messages += [user(f"Please look into module {number}; never touch config_{number}.yaml."), *read_call(number)]
        messages.append(assistant(f"Module {number} holds what we expected."))
    return messages


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return text_of(result)


async def context_of(client: Client, session_id: str) -> list[dict[str, Any]]:
    """The whole live context, all pages."""
    messages: list[dict[str, Any]] = []
    cursor = ""
    while not messages or cursor:
        page = await call(client, "get_messages_after_boundary", session_id=session_id, cursor=cursor)
        messages += page["messages"]
        cursor = page["next_cursor"]
    return messages


def text_of(result: CallToolResult) -> str:
    [part] = result.content
    assert isinstance(part, TextContent)
    return part.text


def jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def transcript(session_id: str, cwd: str, rounds: int) -> list[dict[str, Any]]:
    """Records as Claude Code writes them."""
    records: list[dict[str, Any]] = []
    for number, message in enumerate(conversation(rounds)):
        records.append(
            {
                "type": message["role"],
                "uuid": f"{session_id}-{number}",
                "parentUuid": f"{session_id}-{number - 1}" if number else None,
                "sessionId": session_id,
                "cwd": cwd,
                "timestamp": f"2026-01-01T00:{number % 60:02d}:00.000Z",
                "message": message,
            }
        )
    return records
