"""What the recall benchmark calls: the public library, counting as the benchmark counts.

python ../shared/bench/recall.py FILES -c tests/bench/recall_adapter.py:compact -b llm,10000
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact import Counting
from mcp_compact import compact as compact_messages
from mcp_compact.library import CountTokens


def tokens(texts: Sequence[str]) -> list[int]:
    """Four characters are a token."""
    return [(len(text) + 3) // 4 for text in texts]


def compact(
    messages: list[dict[str, Any]], budget_tokens: int, archive: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Messages that fit the budget."""
    del archive
    if sum(map(message_tokens, messages)) <= budget_tokens:
        return messages  # no client asks for a compaction then
    counting = Counting(without(thinking_in(messages)), per_message=4)
    out, _ = compact_messages([unlinked(m) for m in messages], budget_tokens, "claude-code", counting=counting)
    return out


def message_tokens(message: dict[str, Any]) -> int:
    """Tokens of a message as the benchmark counts them."""
    # The benchmark sets itself there for those whom it calls.
    return int(sys.modules["recall"].mtok(message))


def thinking_in(messages: Iterable[dict[str, Any]]) -> frozenset[str]:
    """What the model thought: the benchmark counts none of it."""
    contents = ((message.get("message") or {}).get("content") for message in messages)
    blocks = (block for content in contents if isinstance(content, list) for block in content)
    return frozenset(str(b.get("thinking")) for b in blocks if isinstance(b, dict) and b.get("type") == "thinking")


def without(uncounted: Container[str]) -> CountTokens:
    """The benchmark's way to count, with texts that cost nothing."""
    return lambda texts: [0 if text in uncounted else own for text, own in zip(texts, tokens(texts), strict=True)]


LINKS = ("uuid", "parentUuid", "logicalParentUuid")
"""The benchmark's list is the conversation, in order. Its planted messages have no place among the links."""


def unlinked(message: dict[str, Any]) -> dict[str, Any]:
    """The message without its links."""
    return {key: value for key, value in message.items() if key not in LINKS}
