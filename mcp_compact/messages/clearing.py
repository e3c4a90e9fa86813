"""Applying clearings to content: what the model is sent in place of what was cleared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_compact.messages.blocks import (
    CLEARED_MEDIA,
    CLEARED_RESULT,
    Block,
    MediaBlock,
    Raw,
    ToolResultBlock,
    ToolUseBlock,
    parse_block,
)
from mcp_compact.messages.markers import Clearing, ClearKind

ERROR_LINE_CHARS = 400
"""An error keeps its first line, cut to this length."""
CLEARED_INPUT = {"cleared": CLEARED_RESULT}
"""What stands in place of the input of a call."""
CLEARED_INPUT_TEXT = json.dumps(CLEARED_INPUT, separators=(",", ":"))
"""The same as the model is sent it."""


@dataclass(frozen=True, slots=True)
class ClearedText:
    """What stands in place of cleared content. The second line is constant, so that prompts stay cacheable."""

    hint: str = "Call get_original with this block's tool_use_id to read it again."

    @property
    def mark(self) -> str:
        """The text of every cleared result that is no error."""
        return f"{CLEARED_RESULT}\n{self.hint}" if self.hint else CLEARED_RESULT

    def result(self, block: ToolResultBlock) -> str:
        """The text of a cleared result; an error keeps its first line."""
        mark = self.mark
        if not block.is_error:
            return mark
        first = block.text.strip().split("\n", 1)[0][:ERROR_LINE_CHARS]
        # An error without a text that was cleared before begins with the mark already.
        return f"{first}\n{mark}" if first and first != CLEARED_RESULT else mark


def apply_clearings(blocks: Sequence[Block], clearings: Sequence[Clearing], text: ClearedText) -> tuple[Block, ...]:
    """The blocks of one record with its clearings applied; every other block is the same object."""
    out = list(blocks)
    for clearing in clearings:
        if 0 <= clearing.block < len(out):
            out[clearing.block] = _cleared(out[clearing.block], clearing, text)
    return tuple(out)


def _cleared(block: Block, clearing: Clearing, text: ClearedText) -> Block:
    match clearing.kind, block:
        case ClearKind.RESULT, ToolResultBlock():
            return parse_block({**block.raw, "content": text.result(block)})
        case ClearKind.INPUT, ToolUseBlock():
            return parse_block({**block.raw, "input": CLEARED_INPUT})
        case ClearKind.MEDIA, ToolResultBlock() if clearing.part is not None:
            return _cleared_part(block, clearing.part)
        case ClearKind.MEDIA, MediaBlock():
            return parse_block(media_mark(block))
        case _:
            return block


def _cleared_part(block: ToolResultBlock, at: int) -> Block:
    if not (0 <= at < len(block.parts) and isinstance(block.parts[at], MediaBlock)):
        return block
    parts: list[Any] = [part.raw for part in block.parts]
    parts[at] = media_mark(block.parts[at])
    return parse_block({**block.raw, "content": parts})


def media_mark(block: Block) -> Raw:
    """The text block that stands for an image or a document."""
    kind = block.kind if isinstance(block, MediaBlock) else "image"
    return {"type": "text", "text": media_mark_text(kind)}


def media_mark_text(kind: str) -> str:
    """The text that stands for a cleared `image` or `document`."""
    return CLEARED_MEDIA.get(kind, CLEARED_MEDIA["image"])
