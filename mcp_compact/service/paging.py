"""Pages of messages: each below a size, together the whole, in order, every message once.

A block that is larger than a page is split into parts: the message stands once a part, with
`part` = {block, part, parts}; the parts of a block, joined as text, are the block again. Block -1 is the message
itself, where it keeps what it says elsewhere than in `content`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.messages.weights import UNITS_PER_TOKEN, estimate_units

TOKENS_PERMILLE = 1460
"""Pages are measured by the vocabulary that needs most tokens, so that they are small enough for every model."""

LEAST_ROOM_TOKENS = 50
"""A part holds at least so much, also where a message without its content is larger than a page."""
LEAST_CHARS = 16
"""So many characters fit into the least room, whatever they are."""
MOST_LEVELS = 120
"""A block that is nested deeper comes as text: a whole answer may hold 128 levels, since writers of JSON give up."""
WHOLE = -1
"""Stands for the number of a block where the parts are those of the message itself."""
_JSON_PART: Mapping[str, str] = {"type": "json_part", "data": ""}
_LARGEST = 10**6
"""Stands for numbers of parts that are not known yet."""


def size_tokens(value: object) -> int:
    """About how many tokens an agent reads for a JSON value, at most."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return estimate_units(text) * TOKENS_PERMILLE // (UNITS_PER_TOKEN * 1000) + 1


def pieces(messages: Sequence[Mapping[str, Any]], page_tokens: int) -> Iterator[Mapping[str, Any]]:
    """The messages, those too large for a page, or nested too deeply for an answer, cut into parts."""
    for message in messages:
        if size_tokens(message) <= page_tokens and not _is_deep(message):
            yield message
        else:
            yield from _split(message, page_tokens)


def _is_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MOST_LEVELS):
        level = [item for holder in level for item in _items(holder)]
        if not level:
            return False
    return True


def _items(holder: object) -> Sequence[object]:
    """What an object or a list holds that may hold something itself."""
    if isinstance(holder, Mapping):
        return [item for item in holder.values() if isinstance(item, dict | list)]
    return [item for item in holder if isinstance(item, dict | list)] if isinstance(holder, list) else ()


def page(
    items: Sequence[Mapping[str, Any]], start: int, page_tokens: int
) -> tuple[list[Mapping[str, Any]], int | None]:
    """Items from `start` that fit into a page (at least one), and where the next page starts."""
    taken: list[Mapping[str, Any]] = []
    used = 0
    for index in range(start, len(items)):
        used += size_tokens(items[index])
        if taken and used > page_tokens:
            return taken, index
        taken.append(items[index])
    return taken, None


def joined(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of all pages with their parts put together again."""
    out: list[dict[str, Any]] = []
    texts: list[str] = []
    for item in items:
        part = item.get("part")
        if part is None:
            out.append(dict(item))
            continue
        if part["block"] == WHOLE:
            texts.append(item["content"][0]["data"])
            if part["part"] == part["parts"]:
                out.append(json.loads("".join(texts)))
                texts = []
            continue
        if part["block"] == 0 and part["part"] == 1:
            out.append({key: value for key, value in item.items() if key not in ("part", "content")} | {"content": []})
        if part["parts"] == 1:
            out[-1]["content"].append(item["content"][0])
            continue
        texts.append(item["content"][0]["data"])
        if part["part"] == part["parts"]:
            out[-1]["content"].append(json.loads("".join(texts)))
            texts = []
    return out


def _split(message: Mapping[str, Any], page_tokens: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(message.get("content"), str | list):
        yield from _cut(message, page_tokens)
        return
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content or ())
    if not blocks:
        yield message
    frame = {key: value for key, value in message.items() if key != "content"}
    room = max(LEAST_ROOM_TOKENS, page_tokens - size_tokens(_part(frame, _JSON_PART, _LARGEST, _LARGEST, _LARGEST)))
    for index, block in enumerate(blocks):
        is_whole = size_tokens(block) <= room and not _is_deep(block)
        chunks = [block] if is_whole else _chunks(block, room)
        for number, chunk in enumerate(chunks, 1):
            yield _part(frame, chunk, index, number, len(chunks))


def _cut(message: Mapping[str, Any], page_tokens: int) -> Iterator[Mapping[str, Any]]:
    """A message without content of its own (other formats have it elsewhere), as JSON text in parts."""
    room = max(LEAST_ROOM_TOKENS, page_tokens - size_tokens(_part({}, _JSON_PART, WHOLE, _LARGEST, _LARGEST)))
    chunks = _chunks(message, room)
    for number, chunk in enumerate(chunks, 1):
        yield _part({}, chunk, WHOLE, number, len(chunks))


def _part(frame: Mapping[str, Any], chunk: object, block: int, part: int, parts: int) -> dict[str, Any]:
    return {**frame, "content": [chunk], "part": {"block": block, "part": part, "parts": parts}}


def _chunks(block: object, room_tokens: int) -> list[Any]:
    """A block as JSON text in pieces, each of which fits when it is quoted as JSON once more."""
    text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))
    chunks: list[Any] = []
    # Two parts at least: a block in one part stands there as it is.
    at, step = 0, min(room_tokens, max(1, len(text) // 2))
    while at < len(text):
        size = size_tokens(text[at : at + step])
        while size > room_tokens and step > LEAST_CHARS:
            step = max(LEAST_CHARS, step * room_tokens // size - 1)
            size = size_tokens(text[at : at + step])
        chunks.append({**_JSON_PART, "data": text[at : at + step]})
        at += step
        step = max(LEAST_CHARS, step * room_tokens // size)
    return chunks
