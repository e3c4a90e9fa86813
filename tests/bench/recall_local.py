"""Development harness: the extractor plus a plain tail of whole rounds, as a compactor for the recall benchmark."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact.compaction.extract import Material, extract, tail_share
from mcp_compact.messages.blocks import MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import parse
from mcp_compact.messages.message import Record

MARK = "Memory of the session so far:\n\n"


def count(texts):
    """Four characters a token, in thousandths."""
    return [len(text) * 250 for text in texts]


def record_of(raw: dict[str, Any]) -> Record:
    return Record(
        MessageUuid(str(raw.get("uuid", ""))),
        raw["type"],
        b"",
        raw,
        decode_message(raw["message"], raw["type"]),
        is_meta=bool(raw.get("isMeta")),
        is_summary=bool(raw.get("isCompactSummary")),
        agent_id=raw.get("agentId"),
    )


def tokens(record: Record) -> int:
    chars = 0
    media = 0
    for block in record.blocks:
        match block:
            case TextBlock():
                chars += len(block.text) + 1
            case ToolUseBlock():
                chars += len(block.name) + len(json.dumps(block.input, ensure_ascii=False)) + 2
            case ToolResultBlock():
                chars += len(block.text) + 1
                media += 1600 * sum(isinstance(part, MediaBlock) for part in block.parts)
            case MediaBlock():
                media += 1600
    return (chars + 3) // 4 + 4 + media


def rounds(records: list[Record]) -> list[int]:
    """Where a round starts: at an answer, or at words of the user."""
    starts = []
    for i, record in enumerate(records):
        if record.results:
            continue
        before = records[i - 1] if i else None
        if record.type == "user" or before is None or before.type == "user":
            starts.append(i)
    return starts


def tail_start(records: list[Record], limit: int) -> int:
    costs = [tokens(r) for r in records]
    best = len(records)
    total = 0
    starts = set(rounds(records))
    for i in range(len(records) - 1, -1, -1):
        total += costs[i]
        if total > limit:
            break
        if i in starts:
            best = i
    return best


def compact(messages, budget_tokens, archive=None):
    records = [record_of(m) for m in messages]
    previous = None
    summaries = []
    body = []
    for raw, record in zip(messages, records, strict=True):
        if raw.get("isMemory"):
            previous = parse(record.text.removeprefix(MARK))
        elif record.is_summary:
            summaries.append(record.text)
        else:
            body.append((raw, record))
    live = [r for _, r in body]
    start = tail_start(live, int(budget_tokens * tail_share(sum(map(tokens, live)), budget_tokens)))
    leaving = tuple(r for _, r in body[:start])
    kept = tuple(r for _, r in body[start:])
    room = (
        budget_tokens
        - sum(map(tokens, kept))
        - 10 * (len(closed(list(kept), kept)) - len(kept))
        - 4
        - len(MARK) // 4
        - 2
    )
    memory = extract(Material(leaving, kept, previous, tuple(summaries)), room * 1000, None, count)
    note = {
        "type": "user",
        "isMemory": True,
        "isCompactSummary": True,
        "uuid": "memory",
        "cwd": next((m.get("cwd") for m in messages if m.get("cwd")), None),
        "message": {"role": "user", "content": MARK + memory.render()},
    }
    return [note, *closed([raw for raw, _ in body[start:]], kept)]


def closed(raws, records):
    """The tail with a short result behind every call that has none."""
    answered = {result.tool_use_id for record in records for result in record.results}
    made = []
    for raw, record in zip(raws, records, strict=True):
        made.append(raw)
        lost = [call.id for call in record.calls if call.id not in answered]
        if lost:
            made.append(
                {
                    "type": "user",
                    "uuid": f"closed-{lost[0]}",
                    "message": {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": id_, "is_error": True, "content": "No result."}
                            for id_ in lost
                        ],
                    },
                }
            )
    return made
