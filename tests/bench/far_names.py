"""What names of long ago cost: how many of them are held against how many of all, and how far their names alone reach.

    python tests/bench/far_names.py [options of the benchmark, default: -b llm]

`times_N` is the library with names last seen more than 10,000 tokens ago worth N times as much; `names` gives nothing
but names, the most likely for their length first, no line around them, so its frr_ctx says nothing and its frr_far is
what a list of so many tokens would hold: `-b 400,800,1600`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact.compaction import extract
from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_memory import summary_passages
from mcp_compact.compaction.extract_passages import passages, working_directory
from mcp_compact.compaction.extract_score import Evidence, gather, worth
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from tests.bench.recall_adapter import compact as with_library
from tests.bench.run_recall import referee

FAR_CHARS = 40_000
TIMES = (1, 2, 4, 8, 16)
Messages = list[dict[str, Any]]
Compactor = Callable[..., Messages]


def raised(times: float) -> Compactor:
    """The library with names of long ago worth so many times as much."""

    def own_worth(evidence: Mapping[str, Evidence], records: int, chars: int) -> dict[str, float]:
        found = worth(evidence, records, chars)
        far = (name for name, own in evidence.items() if own.last_at < chars - FAR_CHARS)
        return found | {name: found[name] * times for name in far}

    def compact(messages: Messages, budget_tokens: int, archive: Messages | None = None) -> Messages:
        vars(extract)["worth"] = own_worth
        try:
            return with_library(messages, budget_tokens, archive)
        finally:
            vars(extract)["worth"] = worth

    return compact


times_1, times_2, times_4, times_8, times_16 = map(raised, TIMES)


def names(messages: Messages, budget_tokens: int, archive: Messages | None = None) -> Messages:
    """Names alone, as many as fit."""
    del archive
    records = [record_of(message) for message in messages if isinstance(message.get("message"), dict)]
    cwd = working_directory(records)
    splitter = Splitter(cwd)
    summaries = [record.text for record in records if record.is_summary]
    evidence, chars = gather([*summary_passages(summaries, splitter), *passages(records, splitter, cwd)])
    value = worth(evidence, len(records), chars)
    far = [name for name, own in evidence.items() if own.last_at < chars - FAR_CHARS]
    text, room = "", 4 * (budget_tokens - 8)
    for name in sorted(far, key=lambda name: (-value[name] / (len(name) + 1), name)):
        if len(text) + len(name) + 1 <= room:
            text += name + "\n"
    return [{"type": "user", "uuid": "names", "cwd": cwd, "message": {"role": "user", "content": text}}]


def record_of(raw: dict[str, Any]) -> Record:
    """A message as the algorithms see it."""
    message = decode_message(raw["message"], raw["type"])
    meta, summary = bool(raw.get("isMeta")), bool(raw.get("isCompactSummary"))
    return Record(MessageUuid(""), raw["type"], b"", raw, message, is_meta=meta, is_summary=summary)


def main() -> int:
    """The benchmark's own exit code."""
    own = [f"tests/bench/far_names.py:times_{times}" for times in TIMES] + ["tests/bench/far_names.py:names"]
    return subprocess.run([*referee(own), *(sys.argv[1:] or ["-b", "llm"])], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
