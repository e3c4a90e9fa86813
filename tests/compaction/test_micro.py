from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.in_memory import (
    apply_clearing_plan,
    clearable_of,
    conversation,
    hash_of,
    snapshot_of,
    turns_of,
    with_clearings,
)
from mcp_compact.compaction.micro import MINUTE_MS, Clearable, MicroMode, MicroRequest, is_compactable, plan_clearing
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.snapshot import MediaFacts
from mcp_compact.messages.blocks import MediaBlock, ToolResultBlock
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.markers import ClearKind, MarkerKind
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.testing import START_MS, STEP_MS, Talk, as_messages, image, tool_result
from tests.conversations import live, talks
from tests.problems import problems

AROUND = Surroundings()
NOW = MicroRequest(mode=MicroMode.ALL)
LARGE = "a line of output\n" * 200


def clearable(context: LiveContext) -> Clearable:
    return clearable_of(conversation(context, CLAUDE, AROUND))


def cleared(talk: Talk, request: MicroRequest = NOW, policy: MicroPolicy | None = None) -> ClearingPlan:
    return plan_clearing(clearable(live(talk)), request, policy or MicroPolicy())


def names(plan: ClearingPlan) -> list[str]:
    return [str(item.clearing.tool_use_id) for item in plan.cleared]


def reads(number: int, *, name: str = "Read", text: str = LARGE, error: bool = False) -> Talk:
    talk = Talk()
    talk.user("read them all")
    for i in range(number):
        talk.call(f"t{i}", name=name)
        talk.add("user", [tool_result(f"t{i}", text, is_error=error)])
    talk.assistant("done")
    return talk


# --- which results


def test_the_newest_five_results_stay() -> None:
    assert names(cleared(reads(9))) == ["t0", "t1", "t2", "t3"]
    assert names(cleared(reads(5))) == []


def test_a_policy_keeps_at_least_one_and_an_explicit_zero_is_obeyed() -> None:
    talk = reads(3)
    assert names(cleared(talk, policy=MicroPolicy(keep_recent=0))) == ["t0", "t1"]
    assert names(cleared(talk, replace(NOW, keep=1))) == ["t0", "t1"]
    assert names(cleared(talk, replace(NOW, keep=0))) == ["t0", "t1", "t2"]
    assert names(cleared(talk, replace(NOW, keep=-4))) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("tool", ["Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"])
def test_results_of_these_tools_may_be_cleared(tool: str) -> None:
    assert is_compactable(tool, MicroPolicy())


@pytest.mark.parametrize("tool", ["mcp__memory__load", "mcp__files__read", "Task", "", "Readable"])
def test_results_of_other_tools_may_not(tool: str) -> None:
    assert not is_compactable(tool, MicroPolicy())
    assert names(cleared(reads(2, name=tool), replace(NOW, keep=0))) == []


def test_names_and_globs_add_tools_and_exclusions_win() -> None:
    policy = MicroPolicy(tools=("mcp__*", "Read"), exclude_tools=("mcp__memory__*", "Read"))
    assert is_compactable("mcp__web__fetch", policy)
    assert not is_compactable("mcp__memory__load", policy)
    assert not is_compactable("Read", policy)


def test_a_results_tool_is_found_through_its_call() -> None:
    talk = Talk()
    talk.user("q")
    talk.add("assistant", [
        {"type": "tool_use", "id": "t1", "name": "mcp__memory__load", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "Read", "input": {}},
    ])  # fmt: skip
    talk.results("t1", "t2", "t3", text=LARGE)
    talk.assistant("ok")
    plan = cleared(talk, replace(NOW, keep=0))
    assert names(plan) == ["t2"]
    assert plan.cleared[0].clearing.block == 1


def test_results_that_may_not_be_cleared_do_not_count_among_the_newest() -> None:
    talk = reads(6)
    talk.call("m1", "m2", "m3", name="mcp__memory__load")
    talk.results("m1", "m2", "m3", text=LARGE)
    assert names(cleared(talk)) == ["t0"]


def test_a_result_no_longer_than_what_would_stand_in_its_place_is_no_candidate() -> None:
    assert names(cleared(reads(9, text="ok"))) == []
    assert names(cleared(reads(9, text="exit code 1: " + "no such file " * 15, error=True))) == []


def test_content_that_starts_with_the_mark_counts_as_cleared() -> None:
    talk = reads(1, text="[Old tool result content cleared]\n" + LARGE)
    assert names(cleared(talk, replace(NOW, keep=0))) == []


# --- age


def aged(minutes: float | None, *, now: MicroRequest | None = None) -> list[str]:
    """One old result, read so many minutes before the newest answer."""
    talk = Talk()
    talk.user("q")
    talk.call("t1")
    newest = START_MS + 1000 * MINUTE_MS
    talk.results("t1", text=LARGE, at_ms=None if minutes is None else newest - int(minutes * MINUTE_MS))
    talk.assistant("ok", at_ms=newest)
    return names(cleared(talk, now or MicroRequest(keep=0)))


def test_a_result_older_than_an_hour_is_cleared_and_a_younger_one_stays() -> None:
    assert aged(60.01) == ["t1"]
    assert aged(60) == []
    assert aged(5) == []


def test_missing_and_future_times_and_the_epoch_are_never_old() -> None:
    assert aged(None) == []
    assert aged(-5) == []
    assert aged((START_MS + 1000 * MINUTE_MS) / MINUTE_MS) == []


def test_age_is_measured_against_now_where_now_is_given() -> None:
    newest = START_MS + 1000 * MINUTE_MS
    assert aged(5, now=MicroRequest(now_ms=newest + 56 * MINUTE_MS, keep=0)) == ["t1"]
    assert aged(90, now=MicroRequest(now_ms=newest - 80 * MINUTE_MS, keep=0)) == []


def test_without_an_answer_nothing_has_an_age() -> None:
    talk = Talk()
    talk.user("q")
    talk.results("t1", text=LARGE)
    assert names(cleared(talk, MicroRequest(keep=0))) == []


def test_whatever_the_age_is_cleared_where_everything_is_asked_for() -> None:
    assert aged(None, now=MicroRequest(keep=0, mode=MicroMode.ALL)) == ["t1"]


# --- media


def pictures(*sides: int | None, answer: bool = True) -> Talk:
    talk = Talk()
    for side in sides:
        talk.add("user", [{"type": "text", "text": "see"}, image(side)])
    if answer:
        talk.assistant("seen")
    return talk


def media(plan: ClearingPlan) -> list[MessageUuid]:
    return [item.clearing.uuid for item in plan.cleared if item.clearing.kind is ClearKind.MEDIA]


def test_media_of_unknown_size_count_as_large_and_small_ones_stay() -> None:
    assert media(cleared(pictures(None, 280, None))) == ["r1"]
    assert media(cleared(pictures(None, 280, None), policy=MicroPolicy(media_tokens=100))) == ["r1", "r2"]


def test_all_media_go_on_request_but_the_newest_one() -> None:
    assert media(cleared(pictures(None, 28, None, 28), MicroRequest(all_media=True))) == ["r1", "r2", "r3"]


def test_media_that_no_answer_has_followed_yet_stay() -> None:
    talk = pictures(None, None)
    talk.add("user", [image(), image()])
    assert media(cleared(talk)) == ["r1", "r2"]
    assert media(cleared(pictures(None, None, answer=False))) == []


def test_by_itself_nothing_is_cleared_that_is_smaller_than_its_mark() -> None:
    assert media(cleared(pictures(1, 1), policy=MicroPolicy(media_tokens=1))) == []


def test_media_inside_results_are_cleared_alone() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1", name="mcp__browser__shot")
    talk.add("user", [tool_result("t1", "") | {"content": [{"type": "text", "text": "shot"}, image()]}])
    talk.add("user", [image()])
    talk.assistant("ok")
    (item,) = cleared(talk).cleared
    assert (item.clearing.kind, item.clearing.part, item.clearing.tool_use_id) == (ClearKind.MEDIA, 1, "t1")


def test_media_of_a_result_that_is_cleared_whole_are_freed_once() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1")
    talk.add("user", [tool_result("t1", "") | {"content": [{"type": "text", "text": LARGE}, image()]}])
    talk.add("user", [image()])
    talk.assistant("ok")
    plan = cleared(talk, replace(NOW, keep=0))
    assert [item.clearing.kind for item in plan.cleared] == [ClearKind.RESULT]
    after = snapshot_of(conversation(apply_clearing_plan(live(talk), plan), CLAUDE, AROUND))
    assert plan.tokens_after == after.live_tokens


# --- what is told


def test_the_result_tells_tokens_by_tool_and_where_the_cached_prefix_ends() -> None:
    talk = reads(7)
    plan = cleared(talk)
    assert plan.kind is MarkerKind.MICRO
    ((tool, number, freed),) = plan.by_tool
    assert (tool, number) == ("Read", 2)
    assert 0 <= freed - (plan.tokens_before - plan.tokens_after) <= 1
    assert plan.first_changed == "r3"
    assert plan.tokens_before == snapshot_of(conversation(live(talk), CLAUDE, AROUND)).live_tokens


def test_an_empty_plan_changes_nothing() -> None:
    plan = cleared(reads(2))
    assert plan.cleared == ()
    assert plan.first_changed is None
    assert plan.tokens_before == plan.tokens_after
    assert plan.by_tool == ()


def test_clearings_come_in_the_order_of_the_conversation() -> None:
    facts = [MediaFacts("image", MessageUuid(f"r{i}"), i, 0, None, 2000) for i in (2, 4, 6)]
    base = clearable(live(reads(8)))
    plan = plan_clearing(replace(base, media=facts), NOW, MicroPolicy())
    assert [item.clearing.uuid for item in plan.cleared] == ["r2", "r3", "r4", "r5", "r7"]


# --- laws

REQUESTS = st.builds(
    MicroRequest,
    now_ms=st.none() | st.integers(START_MS, START_MS + 100 * STEP_MS),
    all_media=st.booleans(),
    keep=st.none() | st.integers(0, 4),
    mode=st.sampled_from(MicroMode),
    older_than_minutes=st.none() | st.integers(1, 20),
    trigger_tokens=st.none() | st.sampled_from([0, 3000]),
)
POLICIES = st.builds(
    MicroPolicy,
    older_than_minutes=st.integers(1, 20),
    keep_recent=st.integers(1, 3),
    media_tokens=st.sampled_from([1, 500, 2000]),
    trigger_tokens=st.sampled_from([1, 2000]),
    protect_tokens=st.sampled_from([1, 500, 3000]),
    clear_at_least=st.sampled_from([1, 1500]),
    max_result_tokens=st.sampled_from([0, 0, 1500]),
    clear_tool_inputs=st.booleans(),
    clear_outdated_reads=st.booleans(),
    clear_repeated_calls=st.booleans(),
    clear_failed_inputs=st.booleans(),
)


@given(talks(most=8), REQUESTS, POLICIES)
def test_clearing_twice_is_clearing_once(talk: Talk, request: MicroRequest, policy: MicroPolicy) -> None:
    context = live(talk)
    plan = plan_clearing(clearable(context), request, policy)
    once = apply_clearing_plan(context, plan)
    again = plan_clearing(clearable(once), request, policy)
    assert again.cleared == ()
    assert again.tokens_before == again.tokens_after == plan.tokens_after
    assert hash_of(apply_clearing_plan(once, again)) == hash_of(once)


@given(talks(most=8), REQUESTS, POLICIES)
def test_clearing_never_makes_a_context_larger(talk: Talk, request: MicroRequest, policy: MicroPolicy) -> None:
    request = replace(request, all_media=False)
    plan = plan_clearing(clearable(live(talk)), request, policy)
    assert plan.tokens_after <= plan.tokens_before
    assert (plan.tokens_after < plan.tokens_before) == bool(plan.cleared)


@given(talks(most=8), REQUESTS, POLICIES)
def test_a_cleared_context_is_valid_and_holds_everything_else_unchanged(
    talk: Talk, request: MicroRequest, policy: MicroPolicy
) -> None:
    context = live(talk)
    bodies = [record.body for record in context.all]
    plan = plan_clearing(clearable(context), request, policy)
    after = apply_clearing_plan(context, plan)
    view, warnings = valid_turns(turns_of(after, AROUND))
    assert problems(as_messages(view)) == []
    assert warnings == []
    assert [record.body for record in after.all] == bodies
    touched = {(item.clearing.uuid, item.clearing.block) for item in plan.cleared}
    for record in after.all:
        shown = with_clearings(record, after, AROUND)
        for number, (was, now) in enumerate(zip(record.blocks, shown.blocks, strict=True)):
            assert was is now or (record.uuid, number) in touched
            assert _ends(was) == _ends(now)


def _ends(block: Any) -> object:
    """What no clearing may change: which call a result answers, whether it failed."""
    return (block.tool_use_id, block.is_error) if isinstance(block, ToolResultBlock) else None


@given(talks(most=8), REQUESTS)
def test_the_newest_results_are_never_cleared(talk: Talk, request: MicroRequest) -> None:
    policy = MicroPolicy()
    keep = policy.keep_recent if request.keep is None else request.keep
    ours = [fact.tool_use_id for fact in clearable(live(talk)).results if is_compactable(fact.tool, policy)]
    gone = names(cleared(talk, replace(request, all_media=False), policy))
    assert set(_last(ours, keep)).isdisjoint(gone)


def _last(items: Sequence[str], number: int) -> Sequence[str]:
    return items[len(items) - number :] if 0 < number <= len(items) else items if number else ()


@given(talks(most=8), REQUESTS)
def test_the_newest_medium_and_what_follows_the_last_answer_stay(talk: Talk, request: MicroRequest) -> None:
    context = live(talk)
    places = [(r.seq, b) for r in context.all for b in r.blocks if isinstance(b, MediaBlock)]
    gone = set(media(cleared(talk, request)))
    answers = [r.seq for r in context.all if r.type == "assistant"]
    seqs = {r.uuid: r.seq for r in context.all}
    assert all(seqs[uuid] < max(answers, default=0) for uuid in gone)
    if places and not any(isinstance(p, MediaBlock) for r in context.all for b in r.results for p in b.parts):
        assert places[-1][0] not in {seqs[uuid] for uuid in gone}
