from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.compaction.attempt import Attempt, NeedsRecords, target_of
from mcp_compact.compaction.cuts import last_round_index, open_call_index
from mcp_compact.compaction.in_memory import (
    apply_plan,
    compact_in_memory,
    conversation,
    entries,
    service_record,
    snapshot_of,
    turns_of,
    with_clearings,
)
from mcp_compact.compaction.pipeline import Finished
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import MemoryPolicy, Policy, SessionMemoryCompactConfig
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.session_memory import compact_by_memory
from mcp_compact.compaction.snapshot import Memory, Snapshot
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.testing import Talk, as_messages
from tests.conversations import live, talks
from tests.problems import problems

SMALL = Policy(tail=SessionMemoryCompactConfig(1, 1, 40_000))
"""The tail starts right after the mark."""
NOTES = "# Notes\n\n## Task\nported the parser\n"


def shot(talk: Talk, memory: Memory | None = None, *, window: int | None = 20_000, overhead: int = 0) -> Snapshot:
    return snapshot_of(
        conversation(live(talk), CLAUDE, Surroundings(), memory=memory, context_window=window, overhead_tokens=overhead)
    )


def memory(mark: int | None, text: str = NOTES) -> Memory:
    """A memory that covers everything up to a seq; None: it covers nothing of the list."""
    return Memory(text, 1, MessageUuid(f"r{mark}") if mark else None, mark)


def attempt(
    talk: Talk, kept: Memory | None = None, request: CompactRequest | None = None, policy: Policy = SMALL
) -> CompactionPlan | NeedsRecords | Declined:
    return compact_by_memory(Attempt(shot(talk, kept), request or CompactRequest(), policy, Surroundings()))


def planned(
    talk: Talk, kept: Memory | None = None, request: CompactRequest | None = None, policy: Policy = SMALL
) -> CompactionPlan:
    talked = conversation(live(talk), CLAUDE, Surroundings(), memory=kept, context_window=20_000)
    outcome = compact_in_memory(talked, replace(request or CompactRequest(), force=True), policy, Surroundings())
    assert isinstance(outcome, Finished), outcome
    return outcome.plan


def undone(talk: Talk, kept: Memory | None, request: CompactRequest) -> object:
    """Why the path declined once it had all that it asked for."""
    talked = conversation(live(talk), CLAUDE, Surroundings(), memory=kept, context_window=20_000)
    outcome = compact_in_memory(talked, replace(request, force=True), SMALL, Surroundings())
    return outcome.declined[0]


def declined(outcome: object) -> str:
    assert isinstance(outcome, Declined), outcome
    assert outcome.path == "session_memory"
    assert outcome.detail
    return outcome.reason


def chat(rounds: int = 12, size: int = 300) -> Talk:
    talk = Talk()
    for i in range(rounds):
        talk.user(f"question {i} " + "word " * size)
        talk.assistant(f"answer {i} " + "word " * size)
    return talk


def uuids(plan: CompactionPlan) -> list[str]:
    return [entry.uuid for entry in plan.preserved]


# --- declines


def test_it_declines_where_it_is_switched_off() -> None:
    assert declined(attempt(chat(), memory(20), policy=replace(SMALL, sm_compact=False))) == "switched_off"


def test_it_declines_without_a_memory_where_the_extractor_is_off() -> None:
    assert declined(attempt(chat(), policy=replace(SMALL, session_memory=False))) == "no_memory"


@pytest.mark.parametrize("text", ["", " \n", "# Notes\n\n## Task\n_what is being done_\n"])
def test_it_declines_with_an_empty_memory_where_the_extractor_is_off(text: str) -> None:
    off = replace(SMALL, session_memory=False)
    assert declined(attempt(chat(), memory(20, text), policy=off)) == "memory_empty"


def test_it_declines_with_a_memory_that_is_far_behind_where_the_extractor_is_off() -> None:
    off = Policy(session_memory=False, tail=SessionMemoryCompactConfig(1, 1, 500))
    assert declined(attempt(chat(), memory(2), policy=off)) == "memory_behind"


def test_it_declines_where_the_mark_is_not_in_the_archive() -> None:
    unknown = Memory(NOTES, 1, MessageUuid("not-there"), None)
    assert declined(attempt(chat(), unknown)) == "mark_not_found"


def test_it_declines_where_every_message_would_stay() -> None:
    assert declined(attempt(chat(2, 3), policy=Policy())) == "nothing_to_compact"
    assert declined(attempt(chat(2, 3), Memory(NOTES, 1, MessageUuid("old"), 0))) == "nothing_to_compact"


def test_it_declines_where_what_could_leave_is_hardly_more_than_the_notes_for_it() -> None:
    talk = Talk()
    talk.user("hi")
    talk.assistant("hello")
    talk.user("word " * 2000)
    assert declined(attempt(talk, memory(2))) == "nothing_to_compact"


def test_it_declines_where_the_overhead_leaves_no_room() -> None:
    full = Attempt(shot(chat(), memory(20), overhead=9_990), CompactRequest(), SMALL, Surroundings())
    assert declined(compact_by_memory(full)) == "no_room"


def test_it_declines_where_what_must_stay_is_above_the_target_even_after_clearing() -> None:
    talk = chat()
    talk.user("word " * 3000)
    talk.assistant("word " * 3000)
    assert declined(undone(talk, memory(24), CompactRequest(target_tokens=3000))) == "still_above_target"


def test_a_memory_that_is_too_long_for_the_target_becomes_shorter_though_every_message_stays() -> None:
    notes = "# Session memory\n\n## Worklog\n" + "".join(
        f"- ported src/part{i}.py to the new parser\n" for i in range(99)
    )
    context = LiveContext((service_record(notes, "s", is_summary=True),), tuple(chat(2, 30).records), {})
    kept = Memory(notes, 1, mark_seq=0, writer="extractor")
    talked = conversation(context, CLAUDE, Surroundings(), memory=kept)
    made = compact_in_memory(talked, CompactRequest("manual", target_tokens=900), SMALL, Surroundings())
    assert isinstance(made, Finished)
    assert made.plan.tokens_after <= 900
    assert len(made.plan.preserved) == len(context.records)
    assert made.plan.memory is not None
    assert made.plan.memory.mark_seq == 0


def test_it_declines_where_the_service_records_would_be_above_the_target() -> None:
    pushy = CompactRequest(target_tokens=900, must_keep="word " * 900)
    whole = Loaded(0, tuple(chat().records))
    outcome = compact_by_memory(Attempt(shot(chat(), memory(24)), pushy, SMALL, Surroundings(), whole))
    assert declined(outcome) == "still_above_target"


def test_it_declines_where_less_than_five_percent_would_be_freed() -> None:
    talk = Talk()
    talk.user("few " * 200)
    talk.assistant("hello")
    talk.user("word " * 2500)
    talk.assistant("ok")
    assert declined(attempt(talk, memory(2))) == "gain_too_small"
    assert planned(talk, memory(2), policy=replace(SMALL, min_gain_percent=-1000)).tokens_after > 0


# --- is the memory brought up to date?


def test_a_memory_that_is_missing_or_empty_is_written_from_all_that_leaves() -> None:
    for kept in (None, memory(20, "# Notes\n")):
        needed = attempt(chat(), kept)
        assert isinstance(needed, NeedsRecords)
        assert needed.after_seq in (0, 20)


def test_a_memory_that_leaves_too_much_uncovered_is_brought_up_to_date_from_its_mark_on() -> None:
    needed = attempt(chat(), memory(6), policy=Policy(tail=SessionMemoryCompactConfig(1, 1, 2000)))
    assert isinstance(needed, NeedsRecords)
    assert needed.after_seq == 6


def test_a_memory_that_covers_nothing_of_the_list_is_brought_up_to_date_from_its_start() -> None:
    needed = attempt(chat(), memory(None), policy=Policy(tail=SessionMemoryCompactConfig(1, 1, 2000)))
    assert isinstance(needed, NeedsRecords)
    assert needed.after_seq == 0


def test_a_memory_that_is_up_to_date_needs_no_records_and_stays_as_it_is() -> None:
    plan = planned(chat(), memory(20))
    assert plan.memory is None
    assert "ported the parser" in plan.service[0].text


def test_a_memory_that_was_brought_up_to_date_covers_what_left() -> None:
    plan = planned(chat(40))
    assert plan.memory is not None
    assert plan.memory.writer == "extractor"
    assert plan.memory.mark_seq == plan.preserved[0].seq - 1
    assert plan.memory.mark_uuid == f"r{plan.memory.mark_seq}"


def test_an_old_memory_is_carried_on_into_the_new_one() -> None:
    plan = planned(chat(40), memory(4))
    assert plan.memory is not None
    assert "ported the parser" in plan.memory.text


# --- what stays


def test_the_tail_starts_right_after_the_mark() -> None:
    assert uuids(planned(chat(), memory(20))) == ["r21", "r22", "r23", "r24"]


def test_a_memory_known_to_cover_everything_starts_from_the_end() -> None:
    plan = planned(
        chat(), Memory(NOTES, 1, covers_all=True), policy=Policy(tail=SessionMemoryCompactConfig(1, 3, 40_000))
    )
    assert uuids(plan) == ["r22", "r23", "r24"]


def test_without_a_target_it_is_what_the_threshold_and_the_overhead_leave() -> None:
    assert target_of(shot(chat(), overhead=100), CompactRequest(), SMALL) == 10_000 - 1 - 100
    assert target_of(shot(chat()), CompactRequest(target_tokens=777), SMALL) == 777


def test_the_largest_results_of_the_tail_are_cleared_where_it_would_not_fit() -> None:
    talk = chat()
    talk.call("t1")
    talk.results("t1", text="line of output\n" * 3000)
    plan = planned(talk, memory(24), CompactRequest(target_tokens=3000))
    assert [item.clearing.tool_use_id for item in plan.cleared] == ["t1"]
    assert plan.tokens_after <= 3000
    assert [span.fate for span in plan.spans] == ["summarised", "cleared", "kept"]


# --- the summary message


def test_the_summary_says_how_to_go_on_and_that_newer_messages_follow() -> None:
    text = planned(chat(), memory(20)).service[0].text
    assert "without asking" in text
    assert "newest messages follow" in text


def test_the_summary_names_the_session_to_search_only_where_there_is_one() -> None:
    made = Attempt(
        shot(chat(), memory(20)),
        CompactRequest(),
        SMALL,
        Surroundings(session_id="s-1"),
        Loaded(0, tuple(chat().records)),
    )
    plan = compact_by_memory(made)
    assert isinstance(plan, CompactionPlan)
    assert 'session_id="s-1"' in plan.service[0].text
    assert "search_messages" not in planned(chat(), memory(20)).service[0].text


def test_lines_that_must_be_kept_go_in_word_for_word() -> None:
    plan = planned(chat(), memory(20), CompactRequest(must_keep="  ticket ABC-1: keep \u2028 me\nsecond line "))
    assert "ticket ABC-1: keep \u2028 me\nsecond line" in plan.service[0].text


def test_the_memory_is_cut_to_its_size() -> None:
    long = "# Notes\n\n## Worklog\n" + "".join(f"- step {i} was done\n" for i in range(3000))
    plan = planned(chat(30), memory(56, long), policy=replace(SMALL, memory=MemoryPolicy(total_tokens=800)))
    assert CLAUDE.tokens(plan.service[0].weight) <= 800


# --- standing instructions and loss

RULE = "Never push to the main branch."


def ruled(rule: str = RULE, rounds: int = 12) -> Talk:
    talk = Talk()
    talk.user(rule)
    talk.assistant("understood")
    for i in range(rounds):
        talk.user(f"question {i} " + "word " * 300)
        talk.assistant(f"answer {i} " + "word " * 300)
    return talk


def test_an_instruction_that_nothing_else_holds_is_added_word_for_word() -> None:
    plan = planned(ruled(), memory(22))
    assert [item.name for item in plan.service] == ["summary", "pins"]
    assert plan.service[1].kind == "attachment"
    assert RULE in plan.service[1].text
    assert (plan.loss.instructions, plan.loss.instructions_kept, plan.loss.instructions_missing) == (1, 1, ())


def test_an_instruction_that_the_memory_or_the_tail_holds_is_not_added_again() -> None:
    assert len(planned(ruled(), memory(22, "# N\n\n## Task\n- never  push to the\n  MAIN branch.\n")).service) == 1
    talk = ruled("hello there")
    talk.user(RULE)
    assert len(planned(talk, memory(26)).service) == 1


def test_without_the_requirement_a_lost_instruction_is_told_of() -> None:
    plan = planned(ruled(), memory(22), policy=replace(SMALL, require_instructions=False))
    assert len(plan.service) == 1
    assert plan.loss.instructions_missing == (RULE,)
    assert RULE in plan.warnings[0]


def test_a_lost_instruction_is_told_of_without_the_key_in_it() -> None:
    key = "sk-ant-api03-" + "aB3dE5gH7jK9" * 8
    talk = ruled(f"Never print the key {key} anywhere.")
    plan = planned(talk, memory(22), policy=replace(SMALL, require_instructions=False))
    assert any("Never print the key" in text for text in plan.warnings)
    assert not any(key[:40] in text for text in plan.warnings)


def test_where_not_all_instructions_fit_the_newest_stay_and_the_rest_is_told_of() -> None:
    talk = Talk()
    for i in range(30):
        talk.user(f"Never touch file number {i} of the project without asking me first, and keep its format.")
        talk.assistant("understood")
    talk.user("word " * 100)
    talk.assistant("done")
    plan = planned(talk, memory(60), CompactRequest(target_tokens=700))
    shown = plan.service[1].text
    assert "number 29" in shown
    assert "number 0 " not in shown
    assert plan.loss.instructions_kept == 30 - len(plan.loss.instructions_missing)
    assert len(plan.warnings) == len(plan.loss.instructions_missing) > 0


def test_the_plan_counts_what_left() -> None:
    plan = planned(chat(), memory(20))
    assert plan.loss.records == 20
    assert plan.spans[0].records == 20
    assert plan.spans[0].last_uuid == "r20"
    assert (plan.spans[1].records, plan.spans[1].first_uuid, plan.spans[1].last_uuid) == (4, "r21", "r24")
    assert plan.loss.tokens == plan.spans[0].tokens
    assert plan.tokens_before > plan.spans[0].tokens
    assert plan.pre_compact_token_count == plan.tokens_before


def test_the_plan_names_its_base_and_the_newest_messages() -> None:
    talk = chat()
    made = Attempt(
        shot(talk, memory(20), overhead=50),
        CompactRequest("manual"),
        SMALL,
        Surroundings(),
        Loaded(0, tuple(talk.records)),
    )
    plan = compact_by_memory(made)
    assert isinstance(plan, CompactionPlan)
    assert (plan.strategy, plan.trigger, plan.base.last_seq) == ("session_memory", "manual", 24)
    assert (plan.last_message_uuid, plan.last_user_message_uuid) == ("r24", "r23")
    assert plan.pre_compact_token_count == plan.tokens_before + 50


# --- laws

REQUESTS = st.builds(CompactRequest, target_tokens=st.none() | st.sampled_from([400, 1500, 6000, 50_000]))
POLICIES = st.builds(
    lambda low, texts, high: Policy(tail=SessionMemoryCompactConfig(low, texts, high), min_gain_percent=-1000),
    st.sampled_from([1, 300, 2000]),
    st.integers(1, 3),
    st.sampled_from([1, 500, 5000]),
)
MARKS = st.one_of(st.none(), st.integers(0, 40), st.just("all"))


def remembered(talk: Talk, mark: object) -> Memory | None:
    if mark is None:
        return None
    if mark == "all":
        return Memory(NOTES, 1, covers_all=True)
    assert isinstance(mark, int)
    return memory(min(mark, len(talk.records)))


def outcome_of(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> tuple[LiveContext, CompactionPlan, LiveContext] | None:
    """The context before, the plan, and the context after it; None where nothing was done."""
    before = live(talk)
    talked = conversation(before, CLAUDE, Surroundings(), memory=remembered(talk, mark), context_window=window)
    outcome = compact_in_memory(talked, replace(request, force=True), policy, Surroundings())
    if not isinstance(outcome, Finished):
        assert all(item.reason for item in outcome.declined)
        return None
    plan = outcome.plan
    return before, plan, apply_plan(before, plan, [f"service-{i}" for i in range(len(plan.service))])


def shown_text(context: LiveContext) -> str:
    return "\n".join(with_clearings(record, context, Surroundings()).text for record in context.all)


CASES = (talks(least=2, most=9), MARKS, REQUESTS, POLICIES, st.sampled_from([4000, 20_000, 200_000]))


@settings(max_examples=50)
@given(*CASES)
def test_a_compacted_context_is_valid_without_repair(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> None:
    if (made := outcome_of(talk, mark, request, policy, window)) is not None:
        view, warnings = valid_turns(turns_of(made[2], Surroundings()))
        assert problems(as_messages(view)) == []
        assert warnings == []


@settings(max_examples=50)
@given(*CASES)
def test_a_plan_keeps_to_its_target_and_tells_the_tokens_that_are_there(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> None:
    if (made := outcome_of(talk, mark, request, policy, window)) is not None:
        before, plan, after = made
        assert plan.tokens_after <= plan.target_tokens
        assert snapshot_of(conversation(before, CLAUDE, Surroundings())).live_tokens == plan.tokens_before
        assert snapshot_of(conversation(after, CLAUDE, Surroundings())).live_tokens == plan.tokens_after


@settings(max_examples=50)
@given(*CASES)
def test_nothing_newer_than_the_mark_leaves_unless_the_memory_was_brought_up_to_date(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> None:
    if (made := outcome_of(talk, mark, request, policy, window)) is not None:
        before, plan, _ = made
        kept = remembered(talk, mark)
        if plan.memory is None and kept is not None and not kept.covers_all:
            newer = {record.uuid for record in before.records if record.seq > (kept.mark_seq or 0)}
            assert newer <= set(uuids(plan))
        if plan.memory is not None and plan.memory.mark_seq is not None:
            gone = [record.seq for record in before.records if record.uuid not in uuids(plan)]
            assert max(gone) <= plan.memory.mark_seq


@settings(max_examples=50)
@given(*CASES)
def test_the_last_round_and_an_open_call_stay(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> None:
    if (made := outcome_of(talk, mark, request, policy, window)) is not None:
        all_ = entries(conversation(made[0], CLAUDE, Surroundings()))
        opened = open_call_index(all_)
        first = min(last_round_index(all_), len(all_) if opened is None else opened)
        assert uuids(made[1])[-(len(all_) - first) :] == [entry.uuid for entry in all_[first:]]


@settings(max_examples=50)
@given(*CASES)
def test_the_users_instructions_are_in_the_new_context_or_told_of(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> None:
    if (made := outcome_of(talk, mark, request, policy, window)) is not None:
        before, plan, after = made
        text = folded(shown_text(after))
        for item in conversation(before, CLAUDE, Surroundings()).instructions:
            assert folded(item.text) in text or item.text in plan.loss.instructions_missing
        if plan.target_tokens >= 6000:
            assert plan.loss.instructions_missing == ()


def folded(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=50)
@given(*CASES)
def test_what_stays_is_a_whole_end_of_the_list_and_nothing_that_was_given_changes(
    talk: Talk, mark: object, request: CompactRequest, policy: Policy, window: int
) -> None:
    given_ = deepcopy(talk.records)
    made = outcome_of(talk, mark, request, policy, window)
    assert talk.records == given_
    if made is not None:
        before, plan, after = made
        ends = [record.uuid for record in before.records]
        assert uuids(plan) == ends[len(ends) - len(plan.preserved) :]
        assert [record.uuid for record in after.records] == uuids(plan)
        assert 0 < len(plan.preserved) < len(ends)
        _spans_add_up(plan, len(ends))


def _spans_add_up(plan: CompactionPlan, records: int) -> None:
    by_fate = {span.fate: span for span in plan.spans}
    assert by_fate["summarised"].records + by_fate["kept"].records == records
    freed: Sequence[int] = [span.tokens for span in plan.spans]
    assert min(freed) >= 0
