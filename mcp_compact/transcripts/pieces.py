"""Small pieces that messages of translated formats are made of: blocks, results, usage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from mcp_compact.messages.blocks import OBJECT, parse_content
from mcp_compact.messages.ids import ApiMessageId
from mcp_compact.messages.message import Message, Usage
from mcp_compact.transcripts.fields import text_of
from mcp_compact.transcripts.report import PART, UNNAMED

Raw: TypeAlias = Mapping[str, Any]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
REMEMBERED = 500
"""So many calls or answers are remembered for what refers to them."""


def text(words: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words}


def texts(words: object) -> list[dict[str, Any]]:
    """A block of text; none where there is none."""
    return [text(words)] if isinstance(words, str) and words else []


def call(id: str, name: object, arguments: object) -> dict[str, Any]:
    """A call. Arguments that are a text are read as JSON; what is no object stands under `arguments`."""
    return {
        "type": "tool_use",
        "id": id,
        "name": name if isinstance(name, str) else "",
        "input": arguments_of(arguments),
    }


def result(id: str, content: object, *, failed: bool = False) -> dict[str, Any]:
    """What a call gave: text, blocks, or any JSON value as text."""
    given = content if isinstance(content, (str, list)) else as_text(content)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": id, "content": given}
    if failed:
        block["is_error"] = True
    return block


def image(media_type: object, data: object) -> dict[str, Any]:
    """An image given as base64."""
    kind = media_type if isinstance(media_type, str) else ""
    block = "document" if kind == "application/pdf" else "image"
    return {
        "type": block,
        "source": {"type": "base64", "media_type": kind, "data": data if isinstance(data, str) else ""},
    }


def image_at(url: str) -> dict[str, Any]:
    """An image given by its address, or as a data URL."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return image(head[len("data:") : -len(";base64")].split(";")[0], data)
    return {"type": "image", "source": {"type": "url", "url": url}}


def arguments_of(value: object) -> object:
    """The arguments of a call as an object; as they were where they are none (a model may write broken JSON)."""
    if isinstance(value, OBJECT):
        return value
    try:
        read = json.loads(value) if isinstance(value, str) and value.strip() else {}
    except (ValueError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {"arguments": value}


def as_text(value: object) -> str:
    """A text as it is, nothing as nothing, any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def each_object(value: object) -> Iterator[Raw]:
    """The objects of a list; none where it is no list."""
    return iter([item for item in value if isinstance(item, dict)] if isinstance(value, list) else ())


def made(
    role: str, content: str | list[Any], *, id: object = None, model: object = None, usage: Usage | None = None
) -> Message:
    """A message of such content."""
    return Message(
        role,
        content,
        parse_content(content),
        ApiMessageId(id) if isinstance(id, str) and id else None,
        model if isinstance(model, str) and model else None,
        usage,
    )


def usage_of(raw: object, sent: Iterable[str], written: Iterable[str]) -> Usage | None:
    """The usage under these names, each of them added up; None where nothing was counted."""
    if raw is None or not isinstance(raw, OBJECT):
        return None
    context, output = _sum(raw, sent), _sum(raw, written)
    return Usage(context, output) if context or output else None


def remember(found: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Take up a key as the newest one; the oldest is forgotten, for what refers to it comes soon."""
    found.pop(key, None)
    found[key] = value
    if len(found) > REMEMBERED:
        del found[next(iter(found))]


def part_kind(raw: Raw) -> str:
    """The name that an unknown part is counted under."""
    return PART + (text_of(raw, "type") or UNNAMED)[:60]


def _sum(raw: Raw, keys: Iterable[str]) -> int:
    found = 0
    for key in keys:
        value = raw.get(key)
        # A bool is no count.
        if type(value) is int and value > 0:
            found += value
    return found
