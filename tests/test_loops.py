"""A simulated agent loop on windows of every size: it never overflows, never thrashes, never compacts for nothing."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from mcp_compact import Counting, compact
from mcp_compact.compaction.policy import levels
from mcp_compact.messages.blocks import parse_content
from mcp_compact.messages.weights import countable
from mcp_compact.testing import tool_result
from tests.problems import problems

TURNS = 500
RULE = "Never push to main, always open a request."


def tokens(texts: Any) -> list[int]:
    return [(len(text) + 3) // 4 for text in texts]


COUNTING = Counting(tokens, per_message=4)


def size(messages: list[dict[str, Any]]) -> int:
    return sum(sum(tokens(countable(parse_content(m["content"]))[0])) + 4 for m in messages)


def turn(number: int, window: int, chance: random.Random) -> list[dict[str, Any]]:
    """A round of work: the user now and then, a call, its result of a size that suits the window, a word."""
    out: list[dict[str, Any]] = []
    if number % 7 == 0:
        out.append({"role": "user", "content": f"Now do part {number} of the work in src/part_{number}.py, please."})
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"src/part_{number}.py"}}
    out.append({"role": "assistant", "content": [{"type": "text", "text": f"I look at part_{number}."}, call]})
    line = f"value_{number} = compute(part_{number}, {chance.random():.6f})\n"
    length = chance.choice([200, 1_000, window // 12, window // 25])
    out.append({"role": "user", "content": [tool_result(f"t{number}", line * (1 + length // len(line)))]})
    return out


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000, 64_000, 128_000, 200_000, 1_000_000])
def test_a_loop_of_500_turns_stays_inside_its_window(window: int) -> None:
    chance, ladder = random.Random(window), levels(window)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Port the library. {RULE}"}]
    compactions: list[int] = []
    before = size(messages)
    for number in range(TURNS):
        added = turn(number, window, chance)
        messages += added
        before += size(added)
        assert before < window, f"turn {number} overflows"
        if before >= ladder.compact:
            messages, report = compact(messages, context_window=window, counting=COUNTING)
            assert report.status == "compacted", report.declined
            assert report.tokens_after <= report.tokens_before * 0.95
            before = size(messages)
            assert before < ladder.compact
            assert problems(messages) == []
            assert RULE in str(messages)
            compactions.append(number)
    assert compactions
    gaps = [later - earlier for earlier, later in pairwise(compactions)]
    assert all(gap >= 2 for gap in gaps), f"compacted again at once: {compactions}"
