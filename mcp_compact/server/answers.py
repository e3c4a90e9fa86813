"""Answers of tools: the data as structured content, a line for people as text. Nothing long is sent twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from mcp_compact.errors import ServerError
from mcp_compact.messages.codec import clean, well_formed
from mcp_compact.server.backend import Backend
from mcp_compact.server.errors import is_plain, unwritable

FIRST_STRUCTURED = "2025-06-18"
"""Protocol versions are dates; older ones know no structured content."""
TEXT_READERS = ("claude-ai", "gemini-cli", "kimi", "librechat", "opencode")
"""Clients, by how their names start, that show the model the text and drop the structured content (public reports)."""
MAX_NAMED = 100
"""Names in an answer: an append of thousands of messages must not fill the context that it is to relieve."""
SHORT_CHARS = 4_000
"""Data up to this size goes out as text as well, whoever asks."""


def answer(ctx: Context[Backend], data: Mapping[str, Any], line: str) -> CallToolResult:
    """A tool's answer whose text is a line that says what was done."""
    checked = _writable(data)
    text = _dump(checked) if _reads_text_only(ctx) else well_formed(line)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=checked)


def reading(ctx: Context[Backend], data: Mapping[str, Any], line: str) -> CallToolResult:
    """A tool's answer that is data to read: in full as text too where it is short or the client reads nothing else."""
    checked = _writable(data)
    dumped = _dump(checked)
    text = dumped if len(dumped) <= SHORT_CHARS or _reads_text_only(ctx) else f"{line} (in structuredContent)"
    return CallToolResult(content=[TextContent(type="text", text=well_formed(text))], structured_content=checked)


def last_named(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The answer with no more than the last of its names under `name`, and a warning where there were more."""
    names = data.get(name, ())
    if len(names) <= MAX_NAMED:
        return data
    note = f"{name}: only the last {MAX_NAMED} of {len(names)} are named"
    return data | {name: names[-MAX_NAMED:], "warnings": [*data.get("warnings", ()), note]}


def _writable(data: Mapping[str, Any]) -> dict[str, Any]:
    if is_plain(data):
        return dict(data)
    fault = unwritable(data)
    if fault:
        raise ServerError("unwritable", f"The answer holds {fault}.", "get_original gives single messages as text.")
    cleaned: dict[str, Any] = clean(data)
    return cleaned


def _dump(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _reads_text_only(ctx: Context[Backend]) -> bool:
    request = ctx.request_context
    client = request.session.client_params
    name = client.client_info.name.lower() if client else ""
    return (request.protocol_version or FIRST_STRUCTURED) < FIRST_STRUCTURED or name.startswith(TEXT_READERS)
