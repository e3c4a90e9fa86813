"""Writes live turns as messages of the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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

    The records of one answer become one message. With `merge_neighbours` so do all neighbours of one
    role, for APIs that insist on alternation. Content that was a string and stands unchanged and
    alone stays a string where `records` holds its record; all other content is a list of blocks.
    """
    known = records or {}
    out: list[tuple[Turn, dict[str, Any]]] = []
    for turn in turns:
        content = content_of(turn, known.get(turn.uuid) if turn.uuid is not None else None)
        if out and (merge_neighbours or _one_answer(out[-1][0], turn)) and out[-1][0].role == turn.role:
            out[-1][1]["content"] = [*_as_list(out[-1][1]["content"]), *_as_list(content)]
        else:
            out.append((turn, {"role": turn.role, "content": content}))
    return [clean(message) for _, message in out]


def content_of(turn: Turn, record: Record | None) -> str | list[Any]:
    """A turn's content: the record's own string where it is unchanged, else a list of blocks."""
    if turn.whole and record is not None and record.message is not None and isinstance(record.message.content, str):
        return record.message.content
    return [dict(block.raw) for block in turn.blocks]


def _one_answer(before: Turn, turn: Turn) -> bool:
    return turn.role == "assistant" and turn.message_id is not None and turn.message_id == before.message_id


def _as_list(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
