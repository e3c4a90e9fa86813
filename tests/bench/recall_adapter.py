"""What the recall benchmark calls: the public library, counting as the benchmark counts.

python ../shared/bench/recall.py FILES -c tests/bench/recall_adapter.py:compact -b llm,10000
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact import Counting
from mcp_compact import compact as compact_messages


def tokens(texts: Sequence[str]) -> list[int]:
    """Four characters are a token."""
    return [(len(text) + 3) // 4 for text in texts]


def compact(
    messages: list[dict[str, Any]], budget_tokens: int, archive: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Messages that fit the budget. The benchmark counts no thinking, so the library is not shown it; it comes back
    with the messages that stay."""
    del archive
    counting = Counting(tokens, per_message=4)
    shown = [(message, without_thinking(message)) for message in messages]
    if sum(map(message_tokens, messages)) <= budget_tokens:
        return messages  # no client asks for a compaction then
    given = [own for _, own in shown if own is not None]
    out, _ = compact_messages(given, budget_tokens, "claude-code", counting=counting)
    return with_thinking(out, shown)


def message_tokens(message: dict[str, Any]) -> int:
    """Tokens of a message as the benchmark counts them."""
    # The benchmark sets itself there for those whom it calls.
    return int(sys.modules["recall"].mtok(message))


LINKS = ("uuid", "parentUuid", "logicalParentUuid")
"""The benchmark's list is the conversation, in order. Its planted messages have no place among the links."""


def without_thinking(message: dict[str, Any]) -> dict[str, Any] | None:
    """The message without its thinking and its links; None where it holds nothing but thinking."""
    own = {key: value for key, value in message.items() if key not in LINKS}
    content = (message.get("message") or {}).get("content")
    if not isinstance(content, list) or not any(is_thinking(block) for block in content):
        return own
    kept = [block for block in content if not is_thinking(block)]
    return {**own, "message": {**message["message"], "content": kept}} if kept else None


def is_thinking(block: object) -> bool:
    """Is it what the model thought?"""
    return isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking")


def with_thinking(
    out: list[dict[str, Any]], shown: list[tuple[dict[str, Any], dict[str, Any] | None]]
) -> list[dict[str, Any]]:
    """The messages that stay unchanged as they were, with the thinking that stood right before them."""
    before: list[dict[str, Any]] = []
    originals: dict[str, list[dict[str, Any]]] = {}
    for message, own in shown:
        if own is None:
            before.append(message)
        else:
            originals[json.dumps(own["message"].get("content"))] = [*before, message]
            before = []
    made: list[dict[str, Any]] = []
    for message in out:
        made += originals.get(json.dumps((message.get("message") or {}).get("content")), [message])
    return made
