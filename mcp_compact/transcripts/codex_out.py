"""Writes live turns as a session file (rollout) of Codex that it can resume.

A rollout holds what is sent (`response_item`) and, beside it, events that the program shows and lists.
Thinking of other providers' models has no place in it and stays in the archive; media of tool results
and documents become a mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.messages.blocks import Block, MediaBlock, OtherBlock, TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.codec import clean, format_time
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.facts import SessionFacts

ORIGINATOR = "mcp-compact"
OPENAI = "openai"
"""Codex's own model provider."""


def session_items(
    turns: Sequence[Turn], facts: SessionFacts, session_id: str, at_ms: int, provider: str = OPENAI
) -> Iterator[dict[str, Any]]:
    """The objects of a whole rollout that begins now: its head, then each turn's items and events.

    Codex refuses a session of another model provider (by its name in Codex's settings) than the one in use.
    """
    at = format_time(at_ms)
    head = {
        "id": session_id,
        "session_id": session_id,
        "timestamp": at,
        "cwd": facts.cwd or "",
        "originator": ORIGINATOR,
        "cli_version": "0.0.0",
        "source": "cli",
        "thread_source": "user",
        "model_provider": provider,
    }
    yield {"timestamp": at, "type": "session_meta", "payload": clean(head)}
    for turn in turns:
        for type_, payload in (*_events(turn), *_items(turn)):
            yield {"timestamp": at, "type": type_, "payload": clean(payload)}


def _events(turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the program shows of a message: it lists only sessions in which it finds a user's."""
    text = "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
    if text and turn.role == "user":
        lists: dict[str, Any] = {"images": [], "local_images": [], "text_elements": []}
        yield "event_msg", {"type": "user_message", "message": text, **lists}
    elif text:
        yield "event_msg", {"type": "agent_message", "message": text}


def _items(turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs of text and images as messages, calls and results as items of their own, in order."""
    held: list[dict[str, Any]] = []
    for block in turn.blocks:
        item = _item(block)
        if item is None:
            held += _parts(block, turn.role)
            continue
        yield from _message(turn.role, held)
        held = []
        yield "response_item", item
    yield from _message(turn.role, held)


def _message(role: str, parts: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    if parts:
        yield "response_item", {"type": "message", "role": role, "content": parts}


def _item(block: Block) -> dict[str, Any] | None:
    match block:
        case ToolUseBlock() if not block.server:
            arguments = json.dumps(block.input, ensure_ascii=False, separators=(",", ":"))
            return {"type": "function_call", "name": block.name, "arguments": arguments, "call_id": block.id}
        case ToolResultBlock() if not block.server:
            return {"type": "function_call_output", "call_id": block.tool_use_id, "output": _output(block)}
        case _:
            return None


def _output(block: ToolResultBlock) -> str:
    lines = [text for part in block.parts if (text := _text_of(part))]
    return "\n".join([*(["[error]"] if block.is_error else []), *lines])


def _parts(block: Block, role: str) -> list[dict[str, Any]]:
    if isinstance(block, MediaBlock) and block.kind == "image" and role == "user" and (url := _url(block)):
        return [{"type": "input_image", "image_url": url}]
    text = _text_of(block)
    return [{"type": "output_text" if role == "assistant" else "input_text", "text": text}] if text else []


def _text_of(block: Block) -> str:
    match block:
        case TextBlock():
            return block.text
        case MediaBlock():
            return f"[{block.kind}]"
        case ToolUseBlock() | ToolResultBlock() | OtherBlock():
            return json.dumps(block.raw, ensure_ascii=False, default=str)
        case _:
            return ""


def _url(block: MediaBlock) -> str:
    if block.data:
        return f"data:{block.media_type or 'image/png'};base64,{block.data}"
    source = block.raw.get("source")
    url = source.get("url") if isinstance(source, Mapping) else None
    return url if isinstance(url, str) else ""
