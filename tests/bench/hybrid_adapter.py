"""A written summary, completed by the extractor, as a compactor for the recall benchmark.

    python tests/bench/run_recall.py -c tests/bench/hybrid_adapter.py:hybrid -b 6000,10000

The summaries are those that the clients' own models wrote at the same places: the session's file is looked up by its
messages. Where there is none the messages are compacted without one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.in_memory import apply_plan, conversation, snapshot_of
from mcp_compact.compaction.pipeline import Finished, start
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.live import live_context
from mcp_compact.messages.weights import Family
from mcp_compact.service.offline import encode
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from tests.bench.recall_adapter import compact as compact_only
from tests.bench.recall_adapter import thinking_in, unlinked, without

FAMILY = Family("own", 1000, 0, 4)


def hybrid(
    messages: list[dict[str, Any]], budget_tokens: int, archive: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Messages that fit the budget: the summary that was written here, what it lost, the newest messages."""
    del archive
    summary = summaries().get(messages[-1].get("uuid", ""))
    if summary is None:
        return compact_only(messages, budget_tokens)
    reader = ClaudeCodeReader("messages")
    given, count = [unlinked(message) for message in messages], without(thinking_in(messages))
    parsed = [p.record for at, own in enumerate(given, 1) for p in reader.feed(own, canonical(own), at)]
    around = Surroundings(lambda texts: [n * 1000 for n in count(texts)], ClearedText(hint=""))
    live = live_context(numbered(parsed), [])
    snapshot = snapshot_of(conversation(live, FAMILY, around))
    request = CompactRequest("manual", target_tokens=budget_tokens, force=True, custom_instructions="all")
    policy = Policy(summaries=True)
    loaded = Loaded(0, live.records)
    outcome = start(Attempt(snapshot, request, policy, around, loaded, SummaryAnswer(summary)))
    if not isinstance(outcome, Finished):
        return compact_only(messages, budget_tokens)
    uuids = [f"made-{at}" for at in range(len(outcome.plan.service))]
    out, _ = encode(apply_plan(live, outcome.plan, uuids), "claude-code")
    return out


def numbered(records: Sequence[Any]) -> list[Any]:
    """The records with their places."""
    return [replace(record, seq=at) for at, record in enumerate(records, 1)]


@cache
def summaries() -> Mapping[str, str]:
    """The summary that was written after each message, by that message's uuid."""
    bench = sys.modules["recall"]
    shared = Path(os.environ.get("MCP_COMPACT_SHARED") or ROOT.parent / "shared")
    found: dict[str, str] = {}
    for path in [*shared.glob("transcripts/recall/*.jsonl"), *shared.glob("transcripts/claude-code/*.jsonl")]:
        messages = bench.load(str(path))
        for at, message in enumerate(messages):
            if at > 1 and message.get("isCompactSummary") and bench.is_boundary(messages[at - 1]):
                found[messages[at - 2].get("uuid", "")] = bench.render(message)
    return found
