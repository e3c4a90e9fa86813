"""What the recall benchmark calls: the public library, counting as the benchmark counts.

python ../shared/bench/recall.py FILES -c tests/bench/recall_adapter.py:compact -b llm,10000
"""

from __future__ import annotations

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
    """Messages that fit the budget."""
    del archive
    counting = Counting(tokens, per_message=4)
    out, _ = compact_messages(messages, budget_tokens, "claude-code", counting=counting)
    return out
