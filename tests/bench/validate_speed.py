"""Prints the CPU time that it takes to validate 10,000 messages by the rules of each provider, and to repair them.

    python tests/bench/validate_speed.py

The messages are a made-up session of calls and results; the repair has a call without a result every 100 messages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from mcp_compact.messages.blocks import parse_content
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.outs import OUTS, Origin
from mcp_compact.transcripts.validity.providers import findings, repaired
from mcp_compact.transcripts.validity.rules import refused

COUNT = 10_000
RUNS = 3
BROKEN_EVERY = 100


def turns(*, is_broken: bool) -> list[Turn]:
    """A question, then calls and results in turn."""
    made = [Turn("user", parse_content("Go through the files."))]
    for number in range(COUNT // 2):
        call = {
            "type": "tool_use",
            "id": f"toolu_{number:06}",
            "name": "Read",
            "input": {"file_path": f"src/{number}.py"},
        }
        said = {"type": "text", "text": f"I read file {number} now."}
        made.append(Turn("assistant", parse_content([said, call])))
        code = f"def step_{number}(value):\n    return value + {number}\n" * 20
        if not is_broken or number % BROKEN_EVERY:
            made.append(
                Turn("user", parse_content([{"type": "tool_result", "tool_use_id": call["id"], "content": code}]))
            )
    return made


def best_s(work: Callable[[], Any]) -> float:
    """CPU seconds of the fastest run."""
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    """Print a line for each provider."""
    print("| provider | messages | validate, CPU s | repair, CPU s | changes |\n|---|---|---|---|---|")
    for out in (out for out in OUTS.values() if out.provider):
        messages = out.encode(turns(is_broken=False), Origin())
        broken = out.encode(turns(is_broken=True), Origin())
        assert not refused(findings(out.provider, messages))
        checked = best_s(lambda: findings(out.provider, messages))
        mended = best_s(lambda: repaired(out.provider, broken))
        changes = len(repaired(out.provider, broken).changes)
        print(f"| `{out.provider}` | {len(messages):,} | {checked:.3f} | {mended:.3f} | {changes} |")


if __name__ == "__main__":
    main()
