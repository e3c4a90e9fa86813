"""The material for a writer of summaries: what leaves, masked, as text in a frame that nothing in it can leave."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.prompts import LAST_SUMMARY, MATERIAL
from mcp_compact.messages.blocks import (
    CLEARED_MEDIA,
    Block,
    MediaBlock,
    OtherBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.masking import masked
from mcp_compact.messages.message import Record

_TICKS = re.compile(r"~{3,}")
MARK = ClearedText(hint="")
"""What stands for a result that is left out: whoever writes cannot fetch it."""
DROPPED = "(The oldest {number} messages are left out here: the material was too long.)"


@dataclass(frozen=True, slots=True)
class Rendered:
    """One record as text, with its frame."""

    record: Record
    text: str


def render(records: Sequence[Record], cleared: Container[ToolUseId] = ()) -> list[Rendered]:
    """The records as text: media as marks, thinking left out, of the results of these calls a mark only."""
    tools = tools_of(records)
    return [Rendered(record, text) for record in records if (text := _record(record, tools, cleared))]


def tools_of(records: Sequence[Record]) -> dict[ToolUseId, str]:
    """The names of the tools that were called."""
    return {call.id: call.name for record in records for call in record.calls}


def material_text(summaries: Sequence[str], rendered: Sequence[Rendered], dropped: int) -> str:
    """The whole material, the last summary first."""
    parts = [f"{LAST_SUMMARY}\n{framed(masked(text))}" for text in summaries]
    parts.append(MATERIAL)
    if dropped:
        parts.append(DROPPED.format(number=dropped))
    return "\n\n".join([*parts, *(item.text for item in rendered)])


def framed(text: str) -> str:
    """The text between two lines of tildes, more of them than stand anywhere in it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "~" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def result_text(block: ToolResultBlock, tools: Mapping[ToolUseId, str], *, cleared: bool) -> str:
    """One result in its frame; cleared, an error keeps its first line before the mark."""
    name = tools.get(block.tool_use_id, "a tool")
    text = MARK.result(block) if cleared else _result(block)
    return f"[Result of {name}{', an error' if block.is_error else ''}]\n{framed(masked(text))}"


def _record(record: Record, tools: Mapping[ToolUseId, str], cleared: Container[ToolUseId]) -> str:
    parts = [part for block in record.blocks if (part := _block(block, record, tools, cleared))]
    return "\n".join(parts)


def _block(block: Block, record: Record, tools: Mapping[ToolUseId, str], cleared: Container[ToolUseId]) -> str:
    match block:
        case TextBlock(text=text) if text.strip():
            who = "Assistant" if record.type == "assistant" else ("Reminder" if record.is_meta else "User")
            return f"[{who}]\n{framed(masked(text))}"
        case ToolUseBlock():
            return f"[Call {block.name}]\n{framed(masked(canonical(block.input).decode(errors='replace')))}"
        case ToolResultBlock():
            return result_text(block, tools, cleared=block.tool_use_id in cleared)
        case MediaBlock():
            return CLEARED_MEDIA.get(block.kind, CLEARED_MEDIA["image"])
        case OtherBlock(type=kind) if kind:
            return f"[{kind}]"
        case _:
            return ""


def _result(block: ToolResultBlock) -> str:
    parts = []
    for part in block.parts:
        if isinstance(part, TextBlock):
            parts.append(part.text)
        elif isinstance(part, MediaBlock):
            parts.append(CLEARED_MEDIA.get(part.kind, CLEARED_MEDIA["image"]))
    return "\n".join(parts)
