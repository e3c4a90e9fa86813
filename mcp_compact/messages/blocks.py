"""Content blocks as values. Each keeps its JSON (`raw`), so what is not understood survives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.values import value

Raw: TypeAlias = Mapping[str, Any]
OBJECT = (dict, Mapping)
"""For `isinstance`: the plain class first, since asking an abstract class costs ten times as much."""
LIST = (list, Sequence)

CLEARED_RESULT = "[Old tool result content cleared]"
"""First line of a result whose content was cleared."""
CLEARED_MEDIA = {"image": "[image]", "document": "[document]"}
"""Text that stands for cleared media."""


@value
class TextBlock:
    text: str
    raw: Raw


@value
class ThinkingBlock:
    """Thinking, or redacted thinking (then `text` is empty and `signature` holds the opaque data)."""

    text: str
    signature: str
    raw: Raw


@value
class ToolUseBlock:
    """A call. `server` calls (web search, MCP connector) are answered inside the assistant's own message."""

    id: ToolUseId
    name: str
    input: Any
    server: bool
    raw: Raw


@value
class ToolResultBlock:
    tool_use_id: ToolUseId
    parts: tuple[Block, ...]
    is_error: bool
    server: bool
    raw: Raw

    @property
    def text(self) -> str:
        """The text parts, a line break between them."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextBlock))

    @property
    def cleared(self) -> bool:
        """Was the content cleared? An error keeps its first line before the mark."""
        lines = self.text.split("\n", 2)
        return CLEARED_RESULT in lines[: 2 if self.is_error else 1]


@value
class MediaBlock:
    kind: str
    """`image` or `document`."""
    media_type: str
    data: str
    """Base64, or empty where the source is a URL or a file."""
    raw: Raw


@value
class OtherBlock:
    type: str
    raw: Raw


Block: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | MediaBlock | OtherBlock


def parse_content(content: object) -> tuple[Block, ...]:
    """Blocks of a message's or result's content: text, a list of blocks, or nothing."""
    if isinstance(content, str):
        return (TextBlock(content, {"type": "text", "text": content}),)
    if isinstance(content, LIST):
        # Clients write nearly every block as a record of its own.
        return (parse_block(content[0]),) if len(content) == 1 else tuple([parse_block(item) for item in content])
    return (parse_block(content),) if isinstance(content, OBJECT) else ()


def parse_block(item: object) -> Block:
    """One block. A bare string is text; what has no known type is kept as it is."""
    # First nearly every block of an import: text, a call, or a result that is a text, each as it should be.
    if type(item) is dict:
        get = item.get
        kind = get("type")
        if kind == "text":
            if type(text := get("text")) is str:
                return TextBlock(text, item)
        elif kind == "tool_use":
            call_id, name = get("id"), get("name")
            if type(call_id) is str and call_id and type(name) is str:
                return ToolUseBlock(ToolUseId(call_id), name, get("input"), False, item)  # noqa: FBT003 - by place
        elif kind == "tool_result":
            call_id, text = get("tool_use_id"), get("content")
            if type(call_id) is str and call_id and type(text) is str:
                parts = (TextBlock(text, {"type": "text", "text": text}),)
                return ToolResultBlock(ToolUseId(call_id), parts, get("is_error") is True, False, item)  # noqa: FBT003
    return _any_block(item)


def _any_block(item: object) -> Block:
    """The same, whatever it is: what `parse_block` does where it is not as it should be."""
    if isinstance(item, str):
        return TextBlock(item, {"type": "text", "text": item})
    if not isinstance(item, OBJECT):
        return OtherBlock("", {"type": "unknown", "value": item})
    kind = _text(item, "type")
    match kind:
        case "text" if isinstance(item.get("text"), str):
            return TextBlock(item["text"], item)
        case "thinking":
            return ThinkingBlock(_text(item, "thinking"), _text(item, "signature"), item)
        case "redacted_thinking":
            return ThinkingBlock("", _text(item, "data"), item)
        case "image" | "document":
            return _media(kind, item)
        case _:
            return _tool_block(kind, item)


def _tool_block(kind: str, item: Raw) -> Block:
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use") and item.get("id"):
        return ToolUseBlock(
            ToolUseId(str(item["id"])), _text(item, "name"), item.get("input"), kind != "tool_use", item
        )
    if kind.endswith("tool_result") and item.get("tool_use_id"):
        return ToolResultBlock(
            ToolUseId(str(item["tool_use_id"])),
            parse_content(item.get("content")),
            item.get("is_error") is True,
            kind != "tool_result",
            item,
        )
    return OtherBlock(kind, item)


def _media(kind: str, item: Raw) -> MediaBlock:
    source = item.get("source")
    source = source if isinstance(source, OBJECT) else {}
    data = source.get("data") if source.get("type") == "base64" else ""
    return MediaBlock(kind, _text(source, "media_type"), data if isinstance(data, str) else "", item)


def _text(item: Raw, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""
