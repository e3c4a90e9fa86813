"""At every tenth cut point of real sessions every path gives a context that a provider accepts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.in_memory import (
    Conversation,
    apply_clearing_plan,
    apply_plan,
    clearable_of,
    conversation,
    entries,
    snapshot_of,
    turns_of,
)
from mcp_compact.compaction.micro import MicroRequest, plan_clearing
from mcp_compact.compaction.pipeline import Finished, start
from mcp_compact.compaction.plan import CompactionPlan
from mcp_compact.compaction.policy import MicroPolicy, Policy
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import Base
from mcp_compact.compaction.snip import Snippable, SnipPlan, SnipRequest, plan_snip
from mcp_compact.compaction.summary import compact_by_summary
from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.service.offline import native_markers
from mcp_compact.testing import as_messages
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines
from tests.conftest import SHARED
from tests.problems import problems

FILES = sorted((SHARED / "transcripts").glob("claude-code/*.jsonl")) if SHARED else []
EVERY = 10
MOST_CUTS = 10_000 if os.environ.get("ALL_CUTS") else 10
"""Cuts of one file; with ALL_CUTS in the environment every tenth message is one, however long the file."""
AROUND = Surroundings()
SUMMARY = SummaryAnswer(
    "## Current work\n" + "The work goes on with the files that were read and the tests that failed. " * 8
)


def records_of(path: Path) -> list[Record]:
    reader = ClaudeCodeReader("x")
    parsed = list(reader.read(read_lines([path.read_bytes()])))
    main = [p.record for p in parsed if p.agent_id is None or p.agent_id == reader.sole_agent]
    return [replace(record, seq=at) for at, record in enumerate(main, 1)]


def check(live: LiveContext) -> None:
    out, _ = valid_turns(turns_of(live, AROUND))
    assert problems(as_messages(out)) == []


def applied(talk: Conversation, plan: CompactionPlan) -> LiveContext:
    return apply_plan(talk.live, plan, [f"s{n}" for n in range(len(plan.service))])


def every_path(records: list[Record]) -> set[str]:
    """The paths that gave a plan at this cut; each plan's context is valid."""
    live = live_context(records, native_markers(records))
    check(live)
    talk = conversation(live, CLAUDE, AROUND)
    snapshot, done = snapshot_of(talk), set()
    target = max(200, snapshot.live_tokens // 2)
    policy = Policy(min_gain_percent=-1000)
    loaded = Loaded(0, live.records)
    for trigger in ("manual", "reactive"):
        request = CompactRequest(trigger, target_tokens=target, force=True)
        outcome = start(Attempt(snapshot, request, policy, AROUND, loaded))
        if isinstance(outcome, Finished):
            check(applied(talk, outcome.plan))
            done.add(outcome.plan.strategy)
    request = CompactRequest("manual", "dwell on the tests", target_tokens=target, force=True)
    plan = compact_by_summary(Attempt(snapshot, request, replace(policy, summaries=True), AROUND, loaded, SUMMARY))
    if isinstance(plan, CompactionPlan):
        check(applied(talk, plan))
        done.add("summary")
    cleared = plan_clearing(clearable_of(talk), MicroRequest(keep=1), MicroPolicy(older_than_minutes=1))
    if cleared.cleared:
        check(apply_clearing_plan(live, cleared))
        done.add("micro")
    return done | snipped(talk)


def snipped(talk: Conversation) -> set[str]:
    live = talk.live
    could = Snippable(Base(0, 0, ""), CLAUDE, snapshot_of(talk).live_weight, entries(talk), live.records)
    plan = plan_snip(could, SnipRequest(uuids=tuple(record.uuid for record in live.records[::7])))
    if not isinstance(plan, SnipPlan):
        return set()
    gone = set(plan.snipped)
    check(replace(live, records=tuple(record for record in live.records if record.uuid not in gone)))
    return {"snip"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[-12:])
def test_every_path_gives_a_valid_context_at_every_tenth_cut(path: Path) -> None:
    records = records_of(path)
    messages = [at for at, record in enumerate(records, 1) if record.is_message]
    step = max(EVERY, len(messages) // MOST_CUTS)
    seen: set[str] = set()
    for at in [*messages[step - 1 :: step], messages[-1]]:
        seen |= every_path(records[:at])
    if len(messages) > 100:
        assert seen >= {"session_memory", "reactive", "summary", "snip"}
