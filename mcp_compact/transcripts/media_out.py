"""Images and documents that an API would refuse, replaced by a line that says so.

A request that holds one refused image fails, and so does every later one of that conversation:
the client cannot even compact it. What is taken out of a new session stays in the archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mcp_compact.messages.blocks import Block, MediaBlock, ToolResultBlock, parse_block
from mcp_compact.messages.image_header import image_size
from mcp_compact.messages.valid import Turn

IMAGE_CHARS = 5 * 1024 * 1024
"""Characters of base64 that the Messages API takes of one image."""
SIDE_PIXELS = 8_000
MANY_IMAGES = 20
SIDE_PIXELS_OF_MANY = 2_000
"""With more than `MANY_IMAGES` images in a request the longest side may be this."""
ALL_CHARS = 24 * 1024 * 1024
"""Of all media together: requests are limited to 32 MB, and text needs room too."""


def sendable_media(turns: Sequence[Turn]) -> tuple[list[Turn], list[str]]:
    """The turns without media that the Messages API would refuse, and what was taken out.

    Where all of it together is too much, the oldest goes first.
    """
    media = [block for turn in turns for block in _media_of(turn.blocks)]
    images = sum(block.kind == "image" for block in media)
    refused = {id(block): why for block in media if (why := _refusal(block, images))}
    left = sum(len(block.data) for block in media if id(block) not in refused)
    for block in media:
        if left <= ALL_CHARS:
            break
        if id(block) not in refused:
            refused[id(block)] = "images and documents together are too large for a request"
            left -= len(block.data)
    if not refused:
        return list(turns), []
    notes = [f"{block.kind} left out: {refused[id(block)]}" for block in media if id(block) in refused]
    return [_without(turn, refused) for turn in turns], notes


def _media_of(blocks: Sequence[Block]) -> Iterator[MediaBlock]:
    for block in blocks:
        if isinstance(block, MediaBlock):
            yield block
        elif isinstance(block, ToolResultBlock):
            yield from _media_of(block.parts)


def _refusal(block: MediaBlock, images: int) -> str:
    """Why an API would refuse it; empty where it would not."""
    if block.kind != "image" or not block.data:
        return f"{len(block.data):,} characters" if len(block.data) > ALL_CHARS else ""
    if len(block.data) > IMAGE_CHARS:
        return f"{len(block.data):,} characters of base64, {IMAGE_CHARS:,} are taken"
    size = image_size(block.data, block.media_type)
    most = SIDE_PIXELS_OF_MANY if images > MANY_IMAGES else SIDE_PIXELS
    if size is not None and max(size) > most:
        return f"{size[0]} x {size[1]} pixels, {most} are taken" + (" of so many images" if most < SIDE_PIXELS else "")
    return ""


def _without(turn: Turn, refused: dict[int, str]) -> Turn:
    blocks = tuple(_replaced(block, refused) for block in turn.blocks)
    if all(new is old for new, old in zip(blocks, turn.blocks, strict=True)):
        return turn
    return replace(turn, blocks=blocks, whole=False)


def _replaced(block: Block, refused: dict[int, str]) -> Block:
    if id(block) in refused and isinstance(block, MediaBlock):
        return parse_block(_mark(block, refused[id(block)]))
    if not isinstance(block, ToolResultBlock) or not any(id(part) in refused for part in block.parts):
        return block
    parts = [_replaced(part, refused) for part in block.parts]
    return parse_block({**block.raw, "content": [dict(part.raw) for part in parts]})


def _mark(block: MediaBlock, why: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[{block.kind} left out: {why}]"}
