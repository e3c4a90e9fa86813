from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from mcp_compact.compaction.in_memory import (
    apply_clearing_plan,
    apply_plan,
    clearable_of,
    compact_in_memory,
    conversation,
    entries,
    fingerprint,
    hash_of,
    instructions_of,
    result_facts,
    service_json,
    service_record,
    snapshot_of,
    turns_of,
    with_clearings,
)
from mcp_compact.compaction.micro import MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.pipeline import Finished, NothingDone
from mcp_compact.compaction.policy import MicroPolicy, Policy, SessionMemoryCompactConfig
from mcp_compact.compaction.request import CompactRequest, Surroundings
from mcp_compact.compaction.snapshot import Memory, Snapshot
from mcp_compact.messages.blocks import CLEARED_RESULT
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.markers import Clearing, ClearKind, MarkerKind
from mcp_compact.messages.weights import CLAUDE, NOTHING
from mcp_compact.testing import Talk, tool_result
from tests.conversations import live, talks

AROUND = Surroundings()
POLICY = Policy(tail=SessionMemoryCompactConfig(1, 1, 40_000))
RESULT = Clearing(ClearKind.RESULT, MessageUuid("r3"), 0)


def shot(context: LiveContext) -> Snapshot:
    return snapshot_of(conversation(context, CLAUDE, AROUND))


def work() -> Talk:
    talk = Talk()
    talk.user("Always run the tests.")
    talk.call("t1")
    talk.results("t1", text="output\n" * 200)
    talk.assistant("done")
    return talk


def with_summary(talk: Talk) -> LiveContext:
    return replace(live(talk), service=(service_record("what was", "s1", is_summary=True),))


# --- the snapshot


def test_a_snapshot_tells_the_whole_live_context() -> None:
    snapshot = shot(with_summary(work()))
    assert [entry.uuid for entry in snapshot.tail] == ["r1", "r2", "r3", "r4"]
    assert snapshot.tail_is_all
    assert snapshot.live_count == 4
    assert [item.text for item in snapshot.service] == ["what was"]
    assert snapshot.live_weight == sum((entry.weight for entry in snapshot.tail), snapshot.service_weight)
    assert (snapshot.base.last_seq, snapshot.base.marker_seq) == (4, 0)
    assert (snapshot.last_message_uuid, snapshot.last_user_message_uuid) == ("r4", "r1")
    assert [item.text for item in snapshot.instructions] == ["Always run the tests."]


def test_a_snapshot_of_nothing_is_empty() -> None:
    snapshot = shot(live(Talk()))
    assert (snapshot.tail, snapshot.live_weight, snapshot.live_tokens) == ((), NOTHING, 0)
    assert snapshot.last_message_uuid is None
    assert clearable_of(conversation(live(Talk()), CLAUDE, AROUND)).newest_answer_seq == 0


def test_results_are_known_with_their_tools_and_cleared_ones_are_left_out() -> None:
    talk = work()
    talk.add(
        "user",
        [tool_result("nobody", "x"), {"type": "text", "text": CLEARED_RESULT}, tool_result("old", CLEARED_RESULT)],
    )
    context = live(talk)
    facts = result_facts(conversation(context, CLAUDE, AROUND))
    assert [(fact.tool_use_id, fact.tool, fact.block) for fact in facts] == [("t1", "Read", 0), ("nobody", "", 0)]
    cleared = replace(context, clearings={MessageUuid("r3"): (RESULT,)})
    assert [fact.tool_use_id for fact in result_facts(conversation(cleared, CLAUDE, AROUND))] == ["nobody"]


def test_a_cleared_context_weighs_what_is_sent_of_it() -> None:
    context = live(work())
    cleared = replace(context, clearings={MessageUuid("r3"): (RESULT,)})
    assert shot(cleared).live_tokens < shot(context).live_tokens
    assert hash_of(cleared) != hash_of(context)
    assert [record.uuid for record in cleared.all] == [record.uuid for record in context.all]


def test_a_records_other_fields_stay_where_its_content_is_cleared() -> None:
    context = replace(live(work()), clearings={MessageUuid("r3"): (RESULT,), MessageUuid("s9"): (RESULT,)})
    shown = with_clearings(context.records[2], context, AROUND)
    assert shown.message is not None
    assert shown.message.content[0]["content"].startswith(CLEARED_RESULT)
    assert (shown.uuid, shown.body) == ("r3", context.records[2].body)
    assert with_clearings(context.records[0], context, AROUND) is context.records[0]
    nothing = replace(context.records[2], message=None)
    assert with_clearings(nothing, context, AROUND) is nothing


def test_a_turn_is_whole_unless_something_of_it_was_cleared() -> None:
    context = replace(with_summary(work()), clearings={MessageUuid("r3"): (RESULT,)})
    context = replace(context, records=(*context.records, replace(context.records[0], message=None)))
    turns = turns_of(context, AROUND)
    assert [(turn.uuid, turn.whole) for turn in turns] == [
        ("s1", True),
        ("r1", True),
        ("r2", True),
        ("r3", False),
        ("r4", True),
    ]


def test_an_instruction_said_twice_stands_once_at_its_newest_place() -> None:
    talk = Talk()
    talk.user("Never push.\nAlways test.")
    talk.user("Never push.", is_meta=True)
    talk.user("ok. Never push.")
    assert [(item.seq, item.text) for item in instructions_of(talk.records)] == [
        (1, "Always test."),
        (3, "Never push."),
    ]


# --- service records


def test_a_summary_and_an_attachment_are_written_as_user_messages_of_a_transcript() -> None:
    summary = service_json("text", "s1", is_summary=True)
    assert summary["isCompactSummary"] is True
    assert summary["isVisibleInTranscriptOnly"] is True
    assert service_json("text", "s2", is_summary=False)["isMeta"] is True
    record = service_record("text", "s1", is_summary=True)
    assert (record.is_summary, record.is_meta, record.is_text_holding, record.text) == (True, False, False, "text")
    assert record.body == canonical(summary)
    assert service_record("text", "s2", is_summary=False).is_meta


# --- plans applied


def compacted(talk: Talk, context: LiveContext) -> tuple[LiveContext, Finished]:
    memory = Memory("# N\n\n## Task\nx\n", 1, MessageUuid("r20"), 20)
    outcome = compact_in_memory(
        conversation(context, CLAUDE, AROUND, memory=memory), CompactRequest("manual"), POLICY, AROUND
    )
    assert isinstance(outcome, Finished)
    return apply_plan(context, outcome.plan, [f"s{i}" for i in range(len(outcome.plan.service))]), outcome


def long() -> Talk:
    talk = Talk()
    for i in range(12):
        talk.user(f"q{i} " + "word " * 300)
        talk.call(f"t{i}")
        talk.results(f"t{i}", text="output\n" * 100)
        talk.assistant(f"a{i} " + "word " * 300)
    return talk


def test_after_a_plan_come_its_service_records_then_what_it_preserves() -> None:
    context, outcome = compacted(long(), live(long()))
    assert [record.uuid for record in context.service] == ["s0"]
    assert context.service[0].is_summary
    assert context.records[0].uuid == "r21"
    assert outcome.plan.kind is MarkerKind.COMPACT
    assert shot(context).live_tokens == outcome.plan.tokens_after


def test_clearings_of_what_stays_go_on_and_those_of_what_left_go() -> None:
    context = live(long())
    old, kept = (Clearing(ClearKind.RESULT, MessageUuid(uuid), 0) for uuid in ("r3", "r23"))
    context = replace(context, clearings={old.uuid: (old,), kept.uuid: (kept,)})
    after, outcome = compacted(long(), context)
    assert after.clearings == {kept.uuid: (kept,)}
    assert shot(after).live_tokens == outcome.plan.tokens_after


def test_nobody_is_asked_for_a_summary_where_nobody_could_write_one() -> None:
    asking = replace(POLICY, summaries=True, sm_compact=False)
    outcome = compact_in_memory(conversation(live(long()), CLAUDE, AROUND), CompactRequest("manual"), asking, AROUND)
    assert isinstance(outcome, NothingDone)
    assert [item.reason for item in outcome.declined] == ["switched_off", "not_configured", "not_configured"]


def test_every_service_record_needs_a_name() -> None:
    _, outcome = compacted(long(), live(long()))
    with pytest.raises(ValueError, match="shorter"):
        apply_plan(live(long()), outcome.plan, [])


@given(talks(most=6))
def test_a_clearing_plan_applied_weighs_what_it_said(talk: Talk) -> None:
    context = live(talk)
    talked = conversation(context, CLAUDE, AROUND)
    plan = plan_clearing(clearable_of(talked), MicroRequest(mode=MicroMode.ALL, all_media=True, keep=0), MicroPolicy())
    after = apply_clearing_plan(context, plan)
    assert shot(after).live_tokens == plan.tokens_after
    assert [entry.uuid for entry in entries(conversation(after, CLAUDE, AROUND))] == [
        record.uuid for record in context.records
    ]


# --- naming an attempt


def test_the_same_attempt_has_the_same_name_and_any_change_another_one() -> None:
    snapshot = shot(live(work()))
    request = CompactRequest("manual", target_tokens=5000)
    same = fingerprint(snapshot, request, POLICY)
    assert fingerprint(shot(live(work())), CompactRequest("auto", target_tokens=5000, force=True), POLICY) == same
    changed = [
        fingerprint(shot(with_summary(work())), request, POLICY),
        fingerprint(replace(snapshot, memory=Memory("# N", 2)), request, POLICY),
        fingerprint(replace(snapshot, overhead_tokens=9), request, POLICY),
        fingerprint(replace(snapshot, context_window=64_000), request, POLICY),
        fingerprint(snapshot, replace(request, target_tokens=4000), POLICY),
        fingerprint(snapshot, replace(request, must_keep="x"), POLICY),
        fingerprint(snapshot, replace(request, custom_instructions="x"), POLICY),
        fingerprint(snapshot, request, Policy()),
    ]
    assert len({same, *changed}) == 1 + len(changed)
