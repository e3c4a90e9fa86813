"""What a provider takes in the fields of a block: what is wrong is put right in the view, or the block is quoted.

Transcripts come from anywhere, also damaged: a call's id may be a number, its input a text, a result's content an
object. The archive keeps it as it came; what is given out must be accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_compact.messages.blocks import (
    LIST,
    OBJECT,
    Block,
    MediaBlock,
    OtherBlock,
    Raw,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    parse_block,
)
from mcp_compact.messages.codec import canonical

NAMED = ("", "text", "tool_use", "server_tool_use", "mcp_tool_use")
"""Kinds that are read as blocks of their own where they hold what they must; no kind at all cannot be sent."""
_IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference")
"""What a result's content may hold beside text."""


def fitting(block: Block) -> Block | None:
    """The block as a provider takes it: itself where nothing is wrong; None where it can only be quoted."""
    match block:
        case TextBlock():
            return block
        case ToolUseBlock():
            return _call(block)
        case ToolResultBlock():
            return _result(block)
        case ThinkingBlock():
            needed = "data" if block.raw.get("type") == "redacted_thinking" else "thinking"
            return block if needed in block.raw and _are_texts(block.raw, needed, "signature") else None
        case MediaBlock():
            source = block.raw.get("source")
            return block if isinstance(source, OBJECT) and isinstance(source.get("type"), str) else None
        case OtherBlock():
            return None if block.type in NAMED or block.type.endswith("tool_result") else block


def _are_texts(raw: Raw, *names: str) -> bool:
    return all(isinstance(raw[name], str) for name in names if name in raw)


def _id(value: object) -> str | None:
    """An id as text; None for what can be no id."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _call(block: ToolUseBlock) -> Block | None:
    own = _id(block.raw.get("id"))
    if own is None or not block.name:
        return None
    given = block.raw.get("input")
    if own is block.raw["id"] and isinstance(given, OBJECT):
        return block
    if not isinstance(given, OBJECT):
        given = {} if given is None else {"arguments": given}
    return parse_block({**block.raw, "id": own, "input": given})


def _result(block: ToolResultBlock) -> Block | None:
    own = _id(block.raw.get("tool_use_id"))
    if own is None:
        return None
    # The results of server tools have forms of their own.
    content = block.raw.get("content")
    kept = content if block.server else _content(content)
    if own is block.raw["tool_use_id"] and kept is content:
        return block
    return parse_block({**block.raw, "tool_use_id": own, "content": kept})


def _content(content: object) -> object:
    """A result's content: itself where a provider takes it, else with what is no part of a result as text."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, LIST):
        return _as_text(content)
    if all(map(_is_part, content)):
        return content
    return [part if _is_part(part) else {"type": "text", "text": _as_text(part)} for part in content]


def _is_part(part: object) -> bool:
    if not isinstance(part, Mapping) or part.get("type") not in _IN_RESULTS:
        return False
    return fitting(parse_block(part)) is not None


def _as_text(value: Any) -> str:  # noqa: ANN401 - foreign JSON
    return value if isinstance(value, str) else canonical(value).decode("utf-8", "replace")
