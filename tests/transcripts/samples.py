"""Small transcripts for the tests, and short ways to read them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mcp_compact.messages.message import Record
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.parsed import Parsed

SESSION = "5e551011-0000-4000-8000-000000000001"


def jsonl(objects: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in objects)


def user(uuid: str, text: object, parent: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"parentUuid": parent, "sessionId": SESSION, "type": "user", "message": message, "uuid": uuid, **more}


def answer(uuid: str, message_id: str, block: dict[str, Any], parent: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-x", "content": [block]}
    return {"parentUuid": parent, "sessionId": SESSION, "type": "assistant", "message": message, "uuid": uuid, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(tool_use_id: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_use_id, "name": name, "input": {"command": "ls"}}


def result(tool_use_id: str, words: str = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": words}


def read(data: bytes, source: str = "a file") -> tuple[ClaudeCodeReader, list[Parsed]]:
    reader = ClaudeCodeReader(source)
    return reader, list(reader.read(read_lines([data])))


def read_objects(*objects: dict[str, Any]) -> tuple[ClaudeCodeReader, list[Parsed]]:
    return read(jsonl(objects))


def stored(parsed: Iterable[Parsed], agent_id: str | None = None) -> list[Record]:
    """The records of one session as an archive holds them: numbered in their order."""
    own = [item.record for item in parsed if item.agent_id == agent_id]
    return [replace(record, seq=seq) for seq, record in enumerate(own, 1)]
