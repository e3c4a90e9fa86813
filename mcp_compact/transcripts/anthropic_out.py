"""Writes live turns as messages of the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.messages.blocks import Block, ToolResultBlock
from mcp_compact.messages.codec import clean
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn


def to_messages(
    turns: Iterable[Turn],
    records: Mapping[MessageUuid, Record] | None = None,
    *,
    merge_neighbours: bool = False,
) -> list[dict[str, Any]]:
    """The messages `{role, content}` of valid turns.

    The records of one answer become one message, and so do results that follow each other (of calls that were made
    together), in the order of the calls. With `merge_neighbours` so do all neighbours of one role, for APIs that
    insist on alternation. Content that was a string and stands unchanged and
    alone stays a string where `records` holds its record; all other content is a list of blocks.
    """
    known = records or {}
    out: list[tuple[Turn, dict[str, Any]]] = []
    for group in _results_together(turns):
        turn = group[0] if len(group) == 1 else _one_turn(group, out[-1][1]["content"] if out else ())
        content = content_of(turn, known.get(turn.uuid) if turn.uuid is not None else None)
        if out and (merge_neighbours or _one_answer(out[-1][0], turn)) and out[-1][0].role == turn.role:
            out[-1][1]["content"] = [*_as_list(out[-1][1]["content"]), *_as_list(content)]
        else:
            out.append((turn, {"role": turn.role, "content": content}))
    return [clean(message) for _, message in out]


def _results_together(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Turns that hold nothing but results together, with one behind them that begins with results; each other alone."""
    held: list[Turn] = []
    for turn in turns:
        if held and not (_is_results(held[-1].blocks) and _is_results(turn.blocks[:1])):
            yield held
            held = []
        held.append(turn)
    if held:
        yield held


def _is_results(blocks: Sequence[Block]) -> bool:
    return bool(blocks) and all(isinstance(block, ToolResultBlock) and not block.server for block in blocks)


def _one_turn(group: Sequence[Turn], asked: str | Sequence[Any]) -> Turn:
    """The turns as one, the results first, in the order in which the message before asks for them."""
    places = {block["id"]: at for at, block in enumerate(asked) if isinstance(block, dict) and "id" in block}
    blocks = [block for turn in group for block in turn.blocks]
    # What is no result stays behind them, where it stands.
    blocks.sort(
        key=lambda b: places.get(b.tool_use_id, len(places)) if isinstance(b, ToolResultBlock) else len(places) + 1
    )
    return Turn(group[0].role, tuple(blocks), whole=False)


def content_of(turn: Turn, record: Record | None) -> str | list[Any]:
    """A turn's content: the record's own string where it is unchanged, else a list of blocks."""
    if turn.whole and record is not None and record.message is not None and isinstance(record.message.content, str):
        return record.message.content
    return [dict(block.raw) for block in turn.blocks]


def _one_answer(before: Turn, turn: Turn) -> bool:
    return turn.role == "assistant" and turn.message_id is not None and turn.message_id == before.message_id


def _as_list(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
