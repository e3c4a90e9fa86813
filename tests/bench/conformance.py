"""Runs the compaction conformance kit (extra `bench`) over the library: what survives five rounds at a fixed size.

    python tests/bench/conformance.py [budgets, default 0.2,0.3]

The kit plants rules, facts, preferences and states in generated talks, some of them revised later in other words,
and looks for their words in what is left. It is lexical, and its talks are unlike a session of work: every message
is a sentence, none is a call, and the newest are small talk.

Two settings are shown: with the last round alone as the tail, so that the size is free for what the kit looks for,
and with the library's own limits, which give a quarter of the size to the newest messages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact import Counting, compact
from mcp_compact.compaction.policy import Policy, SessionMemoryCompactConfig

TAILS = {
    "the last round": Policy(tail=SessionMemoryCompactConfig(min_tokens=0, min_text_block_messages=0)),
    "default": Policy(),
}
MARK = 12
"""Characters around a message in the kit's text: its role in brackets, a line break."""
_TURN = re.compile(r"^\[(user|assistant)\] ", re.MULTILINE)


class Library:
    """The library as a compactor of the kit."""

    name = "mcp-compact"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def compact(self, turns: Sequence[Any], round_num: int = 1, budget_chars: int | None = None) -> Any:
        """The kit's `CompactedContext` for its turns; after the first round they are one text."""
        from compaction_kit.compacted import CompactedContext

        messages = [{"role": role_of(turn.role), "content": turn.text} for turn in turns]
        if round_num > 1:
            messages = read_back(turns[0].text)
        size = len(written(messages))
        target = budget_chars or size // 5
        if size > target:
            counting = Counting(lambda texts: [len(text) for text in texts], per_message=MARK)
            messages, _ = compact(messages, target, counting=counting, policy=self.policy)
        return CompactedContext(written(messages), self.name, round_num)


def role_of(role: str) -> str:
    """A system prompt counts as the user's."""
    return "assistant" if role == "assistant" else "user"


def written(messages: Sequence[dict[str, Any]]) -> str:
    """Messages as one text."""
    return "\n".join(f"[{message['role']}] {text_of(message['content'])}" for message in messages)


def text_of(content: Any) -> str:
    """The words of a message."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def read_back(text: str) -> list[dict[str, Any]]:
    """The messages of such a text."""
    marks = list(_TURN.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [
        {"role": mark[1], "content": text[mark.end() : end].strip("\n")} for mark, end in zip(marks, ends, strict=True)
    ]


def main() -> int:
    """0, or 2 where the kit is not installed."""
    try:
        from compaction_kit.benchmark import run_budget_benchmark
    except ImportError:
        print("compaction-conformance-kit is not installed: pip install 'mcp-compact[bench]'", file=sys.stderr)
        return 2
    budgets = tuple(float(part) for part in (sys.argv[1] if len(sys.argv) > 1 else "0.2,0.3").split(","))
    print(
        "| tail | budget | within it | survival | updates, newest held | of them without the older | stale | distinct "
        "pairs |\n|---|---|---|---|---|---|---|---|"
    )
    for tail, policy in TAILS.items():
        for entry in run_budget_benchmark({Library.name: partial(Library, policy)}, budgets=budgets)["entries"]:
            semantic = entry["semantic"]
            conflicts = semantic["conflicts"]
            print(
                f"| {tail} | {entry['budget_fraction']:.0%} | {entry['budget_compliant']} | "
                f"{entry['randomized']['overall_final_survival']:.1%} | {conflicts['latest']} of {conflicts['n']} | "
                f"{conflicts['resolved']} | {conflicts['stale']} | {semantic['distinct_pair_rate']:.0%} |"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
