"""The live context as turns, the items of one answer together.

In the Responses API each call and each text of an answer is an item of its own, without a message id: they are given
one, so that calls that were made together stay together, and are open together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mcp_compact.compaction.in_memory import turns_of
from mcp_compact.compaction.request import Surroundings
from mcp_compact.messages.blocks import Raw
from mcp_compact.messages.ids import ApiMessageId, MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.beside import item_of

ANSWER = "answer-"
"""Begins the message ids that are given to items."""


def whole_turns(live: LiveContext, around: Surroundings) -> list[Turn]:
    """The live context as turns, clearings applied, not yet repaired."""
    return whole_answers(turns_of(live, around), {record.uuid: record for record in live.all})


def whole_answers(turns: Iterable[Turn], records: Mapping[MessageUuid, Record]) -> list[Turn]:
    """The turns, those of one answer of the Responses API under one message id."""
    out: list[Turn] = []
    run = ""
    for turn in turns:
        record = records.get(turn.uuid) if turn.uuid is not None else None
        if turn.role != "assistant" or turn.message_id is not None or record is None or not _is_of_answer(record.raw):
            run = ""
            out.append(turn)
            continue
        run = run or f"{ANSWER}{turn.uuid}"
        out.append(replace(turn, message_id=ApiMessageId(run)))
    return out


def _is_of_answer(raw: Raw) -> bool:
    item = item_of(raw)
    kind = item.get("type")
    return item is not raw or (
        isinstance(kind, str) and (kind.endswith("_call") or (kind == "message" and "role" in item))
    )
