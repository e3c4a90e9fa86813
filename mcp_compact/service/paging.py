"""Pages of messages: each below a size, together the whole, in order, every message once.

A block that is larger than a page is split into parts: the message stands once a part, with
`part` = {block, part, parts}; the parts of a block, joined as text, are the block again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.messages.weights import UNITS_PER_TOKEN, estimate_units

TOKENS_PERMILLE = 1460
"""Pages are measured by the vocabulary that needs most tokens, so that they are small enough for every model."""


def size_tokens(value: object) -> int:
    """About how many tokens an agent reads for a JSON value, at most."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return estimate_units(text) * TOKENS_PERMILLE // (UNITS_PER_TOKEN * 1000) + 1


def pieces(messages: Sequence[Mapping[str, Any]], page_tokens: int) -> Iterator[Mapping[str, Any]]:
    """The messages, those too large for a page cut into parts."""
    for message in messages:
        if size_tokens(message) <= page_tokens:
            yield message
        else:
            yield from _split(message, page_tokens)


def page(items: Sequence[Mapping[str, Any]], start: int, page_tokens: int) -> tuple[list[Mapping[str, Any]], int | None]:
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
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    frame = {key: value for key, value in message.items() if key != "content"}
    for index, block in enumerate(blocks):
        chunks = [block] if size_tokens(block) <= page_tokens * 4 // 5 else _chunks(block, page_tokens)
        chunks = chunks if len(chunks) > 1 else [block]
        for number, chunk in enumerate(chunks, 1):
            yield {**frame, "content": [chunk], "part": {"block": index, "part": number, "parts": len(chunks)}}


def _chunks(block: object, page_tokens: int) -> list[Any]:
    """A block as JSON text in pieces. The size allows for the quoting that a second encoding adds."""
    text = json.dumps(block, ensure_ascii=False, separators=(",", ":"))
    room = max(1000, page_tokens * UNITS_PER_TOKEN * 1000 // TOKENS_PERMILLE // max(_densest(text), 293) * 2 // 3)
    return [{"type": "json_part", "data": text[at : at + room]} for at in range(0, len(text), room)]


def _densest(text: str) -> int:
    """Units a character where the text is densest, so that no chunk is too large."""
    return max(estimate_units(text[at : at + 4096]) // len(text[at : at + 4096]) for at in range(0, len(text), 4096))
