from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_compact.compaction.attempt import Attempt, NeedsRecords
from mcp_compact.compaction.in_memory import compact_in_memory, conversation, snapshot_of
from mcp_compact.compaction.pipeline import Finished, NothingDone, start
from mcp_compact.compaction.policy import Policy, SessionMemoryCompactConfig
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import Memory, Snapshot
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.testing import Talk
from tests.conversations import live

SMALL = Policy(tail=SessionMemoryCompactConfig(1, 1, 40_000))
NOTES = Memory("# Notes\n\n## Task\nported the parser\n", 1, MessageUuid("r6"), 6)


def chat() -> Talk:
    talk = Talk()
    for i in range(4):
        talk.user(f"question {i} " + "word " * 300)
        talk.assistant(f"answer {i} " + "word " * 300)
    return talk


def shot(talk: Talk, *, overhead: int = 0, window: int = 200_000, memory: Memory | None = NOTES) -> Snapshot:
    talked = conversation(live(talk), CLAUDE, Surroundings(), memory=memory)
    return replace(snapshot_of(talked), overhead_tokens=overhead, context_window=window)


def begun(snapshot: Snapshot, request: CompactRequest, policy: Policy = SMALL, *, loaded: bool = True) -> object:
    whole = Loaded(0, tuple(chat().records)) if loaded else None
    return start(Attempt(snapshot, request, policy, Surroundings(), whole))


def status(outcome: object) -> tuple[str, list[str]]:
    assert isinstance(outcome, NothingDone)
    return outcome.status, [item.reason for item in outcome.declined]


def test_the_automatic_trigger_waits_for_the_threshold() -> None:
    used = shot(chat()).live_tokens
    for spare, waits in ((1, True), (0, False)):
        outcome = begun(shot(chat(), overhead=167_000 - used - spare), CompactRequest("auto", target_tokens=4000))
        assert isinstance(outcome, NothingDone) is waits


def test_the_agents_trigger_waits_for_the_warning_level_and_the_numbers_are_given() -> None:
    used = shot(chat()).live_tokens
    outcome = begun(shot(chat(), overhead=147_000 - used - 1), CompactRequest("agent"))
    assert status(outcome) == ("below_threshold", ["below_threshold"])
    assert isinstance(outcome, NothingDone)
    assert outcome.declined[0].detail == "146999 tokens of 200000; trigger `agent` waits for 147000"
    assert isinstance(begun(shot(chat(), overhead=147_000 - used), CompactRequest("agent")), Finished)


@pytest.mark.parametrize(
    "request_", [CompactRequest("manual"), CompactRequest("reactive"), CompactRequest("auto", force=True)]
)
def test_a_person_an_overrun_and_force_do_not_wait(request_: CompactRequest) -> None:
    assert not isinstance(begun(shot(chat()), request_), NothingDone)


def test_an_earlier_threshold_that_was_asked_for_is_obeyed() -> None:
    policy = replace(SMALL, compact_at="2%")
    assert isinstance(begun(shot(chat()), CompactRequest("auto"), policy), Finished)


def test_an_empty_session_has_nothing_to_compact() -> None:
    assert status(begun(shot(Talk()), CompactRequest("manual")))[0] == "nothing_to_compact"


def test_where_every_message_would_stay_there_is_nothing_to_compact() -> None:
    assert status(begun(shot(chat()), CompactRequest("manual"), Policy()))[0] == "nothing_to_compact"


def test_too_small_a_gain_on_every_path_is_no_progress() -> None:
    talk = Talk()
    talk.user("few " * 200)
    talk.assistant("hello")
    talk.user("word " * 20_000)
    kept = replace(NOTES, mark_uuid=MessageUuid("r2"), mark_seq=2)
    name, reasons = status(begun(shot(talk, memory=kept), CompactRequest("manual")))
    assert name == "no_progress"
    assert reasons[0] == "gain_too_small"


def test_any_other_reason_is_a_failure_that_names_it() -> None:
    name, reasons = status(begun(shot(chat()), CompactRequest("manual"), replace(SMALL, sm_compact=False)))
    assert name == "failed"
    assert reasons[0] == "switched_off"


def test_instructions_for_the_summary_need_a_written_one_unless_they_are_blank() -> None:
    _, reasons = status(begun(shot(chat()), CompactRequest("manual", custom_instructions="keep FOCUS-42")))
    assert reasons[0] == "custom_instructions"
    assert isinstance(begun(shot(chat()), CompactRequest("manual", custom_instructions=" \n")), Finished)


def test_records_are_asked_for_before_a_memory_is_written_and_are_asked_for_once() -> None:
    assert isinstance(begun(shot(chat(), memory=None), CompactRequest("manual"), loaded=False), NeedsRecords)
    talked = conversation(live(chat()), CLAUDE, Surroundings())
    outcome = compact_in_memory(talked, CompactRequest("manual"), SMALL, Surroundings())
    assert isinstance(outcome, Finished)
    assert outcome.plan.memory is not None
    assert outcome.declined == ()
