"""Pages of messages: each below a size, together the whole, in order, every message once.

For whoever reads an answer with a model, a block that is larger than a page is split into parts: the message stands
once a part, with `part` = {block, part, parts}; the parts of a block, joined as text, are the block again. `is_text`
says that the content is no list but that text. Block -1 is the message itself, where it keeps what it says elsewhere
than in `content`. A program, which sends the list on, takes messages whole: then a page holds one, whatever its size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_MARK_TOKENS = 10
"""What `is_text` takes, at most."""
_KEYS = frozenset(("block", "part", "parts"))


def size_tokens(value: object) -> int:
    """About how many tokens an agent reads for a JSON value, at most."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return estimate_units(text) * TOKENS_PERMILLE // (UNITS_PER_TOKEN * 1000) + 1


def pieces(
    messages: Sequence[Mapping[str, Any]], page_tokens: int, *, whole_messages: bool = False
) -> Iterator[Mapping[str, Any]]:
    """The messages, those too large for a page, or nested too deeply for an answer, cut into parts.

    With `whole_messages` only the latter.
    """
    for message in messages:
        if (whole_messages or size_tokens(message) <= page_tokens) and not _is_deep(message):
            yield message
        else:
            yield from _split(message, page_tokens)


def is_part(item: Mapping[str, Any]) -> bool:
    """Is it a part of a message, not a message?"""
    part, content = item.get("part"), item.get("content")
    return isinstance(part, dict) and part.keys() >= _KEYS and isinstance(content, list) and len(content) == 1


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


def joined(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of all pages in order, each in one piece: what came in parts is put together again."""
    out: list[dict[str, Any]] = []
    held: list[Mapping[str, Any]] = []
    for item in items:
        if not is_part(item):
            out.append(dict(item))
            continue
        part = item["part"]
        held.append(item)
        if part["part"] < part["parts"]:
            continue
        _put(out, held)
        held = []
    return out


def _put(out: list[dict[str, Any]], parts: Sequence[Mapping[str, Any]]) -> None:
    """Add the block that these are all parts of, and its message before the first of its blocks."""
    first, part = parts[0], parts[0]["part"]
    whole = first["content"][0] if len(parts) == 1 else json.loads("".join(p["content"][0]["data"] for p in parts))
    if part["block"] == WHOLE:
        out.append(whole)
        return
    if part["block"] == 0:
        out.append({key: value for key, value in first.items() if key != "part"} | {"content": []})
    if part.get("is_text"):
        out[-1]["content"] = whole["text"]
    else:
        out[-1]["content"].append(whole)


def _split(message: Mapping[str, Any], page_tokens: int) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    is_text = isinstance(content, str)
    blocks = [{"type": "text", "text": content}] if is_text else list(content) if isinstance(content, list) else []
    frame = {key: value for key, value in message.items() if key != "content"}
    beside = size_tokens(_part(frame, _JSON_PART, _LARGEST, _LARGEST, _LARGEST))
    # What stands beside the content is repeated with each part: where it is long, the message is cut as it is.
    if not blocks or _is_deep(frame) or beside > max(page_tokens // 2, LEAST_ROOM_TOKENS):
        yield from _cut(message, page_tokens)
        return
    room = max(LEAST_ROOM_TOKENS, page_tokens - beside - (_MARK_TOKENS if is_text else 0))
    mark = {"is_text": True} if is_text else {}
    for index, block in enumerate(blocks):
        is_whole = size_tokens(block) <= room and not _is_deep(block)
        chunks = [block] if is_whole else _chunks(block, room)
        for number, chunk in enumerate(chunks, 1):
            yield _part(frame, chunk, index, number, len(chunks), **mark)


def _cut(message: Mapping[str, Any], page_tokens: int) -> Iterator[Mapping[str, Any]]:
    """A message that has no content to cut between (other formats have it elsewhere), as JSON text in parts."""
    room = max(LEAST_ROOM_TOKENS, page_tokens - size_tokens(_part({}, _JSON_PART, WHOLE, _LARGEST, _LARGEST)))
    chunks = _chunks(message, room)
    for number, chunk in enumerate(chunks, 1):
        yield _part({}, chunk, WHOLE, number, len(chunks))


def _part(frame: Mapping[str, Any], chunk: object, block: int, part: int, parts: int, **mark: bool) -> dict[str, Any]:
    return {**frame, "content": [chunk], "part": {"block": block, "part": part, "parts": parts, **mark}}


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
