"""Faults that people reported, as far as the pure functions can show them. Each test names its cases."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.in_memory import (
    apply_clearing_plan,
    apply_plan,
    clearable_of,
    compact_in_memory,
    conversation,
    hash_of,
    snapshot_of,
    turns_of,
)
from mcp_compact.compaction.micro import MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.pipeline import Finished, NothingDone, start
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.compaction.policy import MicroPolicy, Policy, SessionMemoryCompactConfig, levels
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import Memory
from mcp_compact.messages.blocks import ThinkingBlock, ToolUseBlock
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.transcripts.anthropic_out import to_messages
from mcp_compact.transcripts.claude_code import ClaudeCodeReader

AROUND = Surroundings()


@dataclass(frozen=True)
class Case:
    id: str
    input: dict[str, Any]
    problems: Callable[[list[dict[str, Any]]], list[str]]
    """The case collection's own reading of what makes no valid request."""

    @property
    def all_records(self) -> list[Record]:
        reader = ClaudeCodeReader("case")
        items = enumerate(self.input["messages"], 1)
        parsed = [one for at, item in items for one in reader.feed(item, canonical(item), at)]
        return [replace(one.record, seq=at, agent_id=one.agent_id) for at, one in enumerate(parsed, 1)]

    @property
    def live(self) -> LiveContext:
        return live_context([record for record in self.all_records if record.agent_id is None], [])


@pytest.fixture(scope="module")
def case_of(shared: Path) -> Callable[[str], Case]:
    spec = importlib.util.spec_from_file_location("case_macros", shared / "cases" / "expand.py")
    assert spec is not None
    assert spec.loader is not None
    macros = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(macros)
    lines = (shared / "cases" / "cases.jsonl").read_text("utf-8").split("\n")
    cases = {case["id"]: case["input"] for case in map(json.loads, filter(None, lines))}
    return lambda name: Case(name, macros.expand(cases[name]), macros.problems)


# --- session-memory compaction


def remembered(case: Case) -> Memory:
    """The memory of a case. An id that is not in the list is a mark that the archive does not hold."""
    mark = case.input.get("last_summarized_uuid")
    seqs = {record.uuid: record.seq for record in case.all_records}
    if mark is None:
        return Memory(case.input["memory"], 1, covers_all=True)
    return Memory(case.input["memory"], 1, MessageUuid(mark), seqs.get(MessageUuid(mark)))


def policy_of(case: Case) -> Policy:
    config = case.input["config"]
    tail = SessionMemoryCompactConfig(config["min_tokens"], config["min_text_messages"], config["max_tokens"])
    # The cases are tiny: any notes are longer than what they stand for, so a compaction must be allowed to gain nothing.
    return Policy(tail=tail, min_gain_percent=-1000)


def compacted(case: Case) -> tuple[LiveContext, Finished]:
    before = padded(case.live)
    talk = conversation(
        before, CLAUDE, AROUND, memory=remembered(case), context_window=case.input.get("context_window")
    )
    outcome = compact_in_memory(talk, CompactRequest("manual"), policy_of(case), AROUND)
    assert isinstance(outcome, Finished), outcome
    return apply_plan(before, outcome.plan, [f"s{i}" for i in range(len(outcome.plan.service))]), outcome


def padded(context: LiveContext) -> LiveContext:
    """The first message of a case made long: what leaves must be more than the notes that stand for it."""
    first = context.records[0]
    assert first.message is not None
    text = f"{first.message.content} " + "word " * 400
    raw = {**first.raw, "message": {"role": "user", "content": text}}
    (one,) = ClaudeCodeReader("case").feed(raw, canonical(raw), 1)
    return replace(context, records=(replace(one.record, seq=first.seq), *context.records[1:]))


def view(context: LiveContext, *, merge: bool = False) -> list[dict[str, Any]]:
    turns, warnings = valid_turns(turns_of(context, AROUND))
    assert warnings == []
    return to_messages(turns, {record.uuid: record for record in context.all}, merge_neighbours=merge)


def kept(context: LiveContext) -> list[str]:
    return [record.uuid for record in context.records]


SESSION_MEMORY = [
    ("PAIR-01", ["a1", "a2", "u2", "a3"]),
    ("PAIR-07", ["a1", "a2", "u2", "a3"]),
    ("THINK-01", ["a1", "a2", "a3", "u1", "a4"]),
    ("THINK-04", ["a1", "a2", "u1", "a3", "u2", "a4"]),
    ("SHAPE-04", ["u1", "a2"]),
    ("LOOP-02", ["u1", "a2"]),
    ("BOUND-01", ["u2", "a2"]),
    ("SIDE-01", ["u2", "a2"]),
    ("REINJ-01", ["a2", "u3"]),
    ("DEDUP-01", ["u2", "a2", "u3"]),
]


@pytest.mark.parametrize(("name", "tail"), SESSION_MEMORY, ids=[name for name, _ in SESSION_MEMORY])
def test_the_tail_starts_where_no_pair_and_no_message_id_is_split(
    case_of: Callable[[str], Case], name: str, tail: list[str]
) -> None:
    after, _ = compacted(case_of(name))
    # The last answer stays with what follows it (REINJ-01), also where the memory covers it.
    assert kept(after) == tail


@pytest.mark.parametrize("name", [name for name, _ in SESSION_MEMORY])
def test_the_new_context_is_a_valid_request_with_pairs_and_groups_whole(
    case_of: Callable[[str], Case], name: str
) -> None:
    case = case_of(name)
    after, _ = compacted(case)
    messages = view(after)
    assert case.problems(messages) == []
    ids = {record.message.id for record in after.records if record.message and record.message.id}
    group = [r.uuid for r in case.live.records if r.message and r.message.id in ids]
    assert set(group) <= set(kept(after))
    calls = [b.id for r in after.records for b in r.blocks if isinstance(b, ToolUseBlock)]
    assert len(calls) == len(set(calls))


@pytest.mark.parametrize("name", ["THINK-01", "THINK-04"])
def test_thinking_stays_byte_for_byte(case_of: Callable[[str], Case], name: str) -> None:
    after, _ = compacted(case_of(name))
    before = [b.raw for r in case_of(name).live.records for b in r.blocks if isinstance(b, ThinkingBlock)]
    sent = [b for m in view(after) for b in m["content"] if isinstance(b, dict) and b["type"] == "thinking"]
    assert sent == before


@pytest.mark.parametrize("name", ["SHAPE-04"])
def test_roles_alternate_on_request_and_the_users_words_are_unchanged(
    case_of: Callable[[str], Case], name: str
) -> None:
    after, _ = compacted(case_of(name))
    strict = [message["role"] for message in view(after, merge=True)]
    assert strict == ["user", "assistant"]
    plain = view(after)
    assert [message["role"] for message in plain] == ["user", "user", "assistant"]
    assert plain[1]["content"] == "next question"
    assert view(after, merge=True)[0]["content"][-1] == {"type": "text", "text": "next question"}


@pytest.mark.parametrize("name", ["LOOP-02"])
def test_usage_from_before_the_boundary_does_not_count_after_it(case_of: Callable[[str], Case], name: str) -> None:
    after, outcome = compacted(case_of(name))
    usage = after.records[-1].message.usage if after.records[-1].message else None
    assert usage is not None
    assert usage.context_tokens == 185_902
    tokens = snapshot_of(conversation(after, CLAUDE, AROUND)).live_tokens
    assert tokens == outcome.plan.tokens_after < 1000
    assert levels(200_000).level(tokens) == "ok"


@pytest.mark.parametrize("name", ["BOUND-05"])
def test_an_unknown_mark_is_declined_with_a_reason(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    talk = conversation(case.live, CLAUDE, AROUND, memory=remembered(case))
    outcome = compact_in_memory(talk, CompactRequest("manual"), policy_of(case), AROUND)
    assert isinstance(outcome, NothingDone)
    assert outcome.declined[0].reason == "mark_not_found"
    assert "not in the archive" in outcome.declined[0].detail


@pytest.mark.parametrize("name", ["BOUND-05"])
def test_without_a_mark_a_memory_that_covers_everything_grows_the_tail_from_the_end(
    case_of: Callable[[str], Case], name: str
) -> None:
    case = case_of(name)
    del case.input["last_summarized_uuid"]
    assert kept(compacted(case)[0]) == ["a1", "u2"]


@pytest.mark.parametrize("name", ["BOUND-01"])
def test_the_plan_names_the_kept_messages(case_of: Callable[[str], Case], name: str) -> None:
    after, outcome = compacted(case_of(name))
    assert [entry.uuid for entry in outcome.plan.preserved] == kept(after) == ["u2", "a2"]
    assert snapshot_of(conversation(after, CLAUDE, AROUND)).live_tokens == outcome.plan.tokens_after


@pytest.mark.parametrize("name", ["BOUND-03"])
def test_compacting_four_times_keeps_each_message_once(case_of: Callable[[str], Case], name: str) -> None:
    context = padded(case_of(name).live)
    seen: list[int] = []
    for _ in range(4):
        memory = Memory(case_of(name).input["memory"], 1, covers_all=True)
        talk = conversation(context, CLAUDE, AROUND, memory=memory)
        outcome = compact_in_memory(talk, CompactRequest("manual"), policy_of(case_of(name)), AROUND)
        if isinstance(outcome, Finished):
            context = apply_plan(context, outcome.plan, ["summary"])
        assert len(set(kept(context))) == len(kept(context))
        seen.append(len(context.all))
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("name", ["SIDE-01"])
def test_a_sub_agents_records_are_in_no_view_and_in_no_count(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    assert [record.uuid for record in case.live.records] == ["u1", "a1", "u2", "a2"]
    assert snapshot_of(conversation(case.live, CLAUDE, AROUND)).live_tokens < 50


@pytest.mark.parametrize("name", ["REINJ-01"])
def test_names_of_discovered_tools_reach_the_plan(case_of: Callable[[str], Case], name: str) -> None:
    # What a caller pins goes back in through the service; here it is the tools' names that the boundary must tell.
    case = case_of(name)
    talk = conversation(padded(case.live), CLAUDE, AROUND, memory=remembered(case))
    snapshot = replace(snapshot_of(talk), discovered_tools=tuple(case.input["attachments"]["discovered_tools"]))
    outcome = start(Attempt(snapshot, CompactRequest("manual"), policy_of(case), AROUND, Loaded(0, talk.live.records)))
    assert isinstance(outcome, Finished)
    assert outcome.plan.discovered_tools == ("mcp__gh__list",)


# --- micro-compaction


def cleared(case: Case) -> tuple[LiveContext, ClearingPlan]:
    config = case.input["config"]
    # Messages of a case have no times, so age is set aside.
    request = MicroRequest(keep=config.get("keep_recent"), mode=MicroMode.ALL, all_media="keep_recent_media" in config)
    plan = plan_clearing(clearable_of(conversation(case.live, CLAUDE, AROUND)), request, MicroPolicy())
    return apply_clearing_plan(case.live, plan), plan


MICRO = [
    ("MICRO-01", ["t2"]),
    ("MICRO-03", ["t0", "t1", "t2", "t3"]),
    ("MICRO-05", ["t1"]),
    ("MICRO-06", ["t1"]),
    ("ARCH-01", ["t1"]),
]


@pytest.mark.parametrize(("name", "ids"), MICRO, ids=[name for name, _ in MICRO])
def test_only_these_results_are_cleared(case_of: Callable[[str], Case], name: str, ids: list[str]) -> None:
    _, plan = cleared(case_of(name))
    assert [item.clearing.tool_use_id for item in plan.cleared] == ids
    assert plan.tokens_after < plan.tokens_before


@pytest.mark.parametrize("name", ["MICRO-05", "MICRO-01", "MICRO-03", "ARCH-01", "MEDIA-03"])
def test_a_second_and_a_third_run_change_nothing(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    once, plan = cleared(case)
    for _ in range(2):
        request = MicroRequest(keep=case.input["config"].get("keep_recent"), mode=MicroMode.ALL, all_media=True)
        again = plan_clearing(clearable_of(conversation(once, CLAUDE, AROUND)), request, MicroPolicy())
        assert again.cleared == ()
        assert again.tokens_after == plan.tokens_after
        assert hash_of(apply_clearing_plan(once, again)) == hash_of(once)
        assert canonical(view_of(apply_clearing_plan(once, again))) == canonical(view_of(once))


def view_of(context: LiveContext) -> list[dict[str, Any]]:
    turns, _ = valid_turns(turns_of(context, AROUND))
    return to_messages(turns)


@pytest.mark.parametrize("name", ["MICRO-06", "ARCH-01"])
def test_the_mark_carries_a_handle_and_the_original_is_still_there(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    after, _ = cleared(case)
    (block,) = [b for m in view(after) for b in m["content"] if isinstance(b, dict) and b.get("tool_use_id") == "t1"]
    assert block["content"].split("\n")[0] == "[Old tool result content cleared]"
    assert "get_original" in block["content"]
    (original,) = [result for record in after.records for result in record.results if result.tool_use_id == "t1"]
    asked = [
        b for m in case.input["messages"] for b in m["content"] if isinstance(b, dict) and b.get("tool_use_id") == "t1"
    ]
    assert original.raw == asked[0]


@pytest.mark.parametrize("name", ["ARCH-01"])
def test_clearing_compacting_and_clearing_again_leave_the_first_bytes(
    case_of: Callable[[str], Case], name: str
) -> None:
    case = case_of(name)
    once, _ = cleared(case)
    memory = Memory("# Task\nx", 1, covers_all=True)
    policy = Policy(tail=SessionMemoryCompactConfig(1, 2, 40_000), min_gain_percent=-1000)
    outcome = compact_in_memory(
        conversation(once, CLAUDE, AROUND, memory=memory), CompactRequest("manual"), policy, AROUND
    )
    after = apply_plan(once, outcome.plan, ["s"]) if isinstance(outcome, Finished) else once
    again = plan_clearing(
        clearable_of(conversation(after, CLAUDE, AROUND)), MicroRequest(keep=0, mode=MicroMode.ALL), MicroPolicy()
    )
    final = apply_clearing_plan(after, again)
    bodies = {record.uuid: record.body for record in case.live.records}
    assert all(record.body == bodies[record.uuid] for record in final.records)


@pytest.mark.parametrize("name", ["MEDIA-03"])
def test_an_old_image_is_cleared_on_demand_and_leaves_a_mark(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    after, plan = cleared(case)
    messages = view(after)
    assert len(plan.cleared) == 1
    assert messages[0]["content"] == [{"type": "text", "text": "[image]"}]
    assert messages[2]["content"][0]["type"] == "image"
    assert case.problems(messages) == []
    assert [record.body for record in after.all] == [record.body for record in case.live.all]


# --- counting and levels


def tokens(case: Case) -> int:
    return snapshot_of(conversation(case.live, CLAUDE, AROUND)).live_tokens


COUNTED = [("COUNT-01", 500, 6000), ("COUNT-04", 6000, 20_000), ("COUNT-08", 0, 50), ("TOK-02", 100_000, 4_000_000)]


@pytest.mark.parametrize(("name", "least", "most"), COUNTED, ids=[name for name, *_ in COUNTED])
def test_a_count_lies_between_these_bounds(case_of: Callable[[str], Case], name: str, least: int, most: int) -> None:
    assert least <= tokens(case_of(name)) <= most


@pytest.mark.parametrize("name", ["COUNT-06"])
def test_the_threshold_lies_between_zero_and_the_window(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    ladder = levels(case.input["context_window"])
    assert 1 <= ladder.compact <= 63_999
    assert ladder.level(tokens(case)) in ("compact", "hard")


def test_every_case_of_these_kinds_is_run(shared: Path) -> None:
    lines = (shared / "cases" / "cases.jsonl").read_text("utf-8").split("\n")
    ours = [case["id"] for case in map(json.loads, filter(None, lines)) if _is_ours(case["op"])]
    run: Sequence[str] = [
        *(name for name, _ in SESSION_MEMORY),
        *(name for name, _ in MICRO),
        *(name for name, *_ in COUNTED),
    ]
    assert set(ours) <= {*run, "BOUND-05", "BOUND-03", "MEDIA-03", "COUNT-06"}


def _is_ours(op: str) -> bool:
    return op.startswith(("microcompact", "count_tokens", "should_compact")) or "compact:session_memory" in op
