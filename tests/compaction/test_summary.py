from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.attempt import Attempt, NeedsRecords
from mcp_compact.compaction.in_memory import conversation, snapshot_of
from mcp_compact.compaction.pipeline import Finished, NothingDone, start
from mcp_compact.compaction.policy import Policy, SessionMemoryCompactConfig
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.testing import Talk
from tests.conversations import live

WRITTEN_ONLY = Policy(sm_compact=False, summaries=True, tail=SessionMemoryCompactConfig(1, 1, 40_000))
Outcome = Finished | NeedsRecords | SummaryRequest | NothingDone


def talk(leaving_words: int, staying_words: int) -> Talk:
    """An exchange that may leave, and a last message that stays."""
    out = Talk()
    out.user("Please look.")
    out.assistant("answer " * leaving_words)
    out.user("And then?")
    out.assistant("That was all.")
    out.user("Go on. " + "word " * staying_words)
    return out


def outcome(spoken: Talk, summary: str | None = None, policy: Policy = WRITTEN_ONLY) -> Outcome:
    snapshot = snapshot_of(conversation(live(spoken), CLAUDE, Surroundings()))
    request = CompactRequest("manual", target_tokens=max(4_000, snapshot.live_tokens))
    answer = None if summary is None else SummaryAnswer(summary)
    return start(Attempt(snapshot, request, policy, Surroundings(), Loaded(0, tuple(spoken.records)), answer))


def reasons(done: Outcome) -> tuple[str, list[str]]:
    assert isinstance(done, NothingDone), done
    return done.status, [item.reason for item in done.declined if item.path == "summary"]


def test_nobody_is_asked_where_even_an_empty_summary_would_free_too_little() -> None:
    assert reasons(outcome(talk(500, 20_000)))[1] == ["gain_too_small"]


def test_nobody_is_asked_where_hardly_anything_could_leave() -> None:
    assert reasons(outcome(talk(1, 1))) == ("nothing_to_compact", ["nothing_to_compact"])


def test_bodies_are_not_read_either_where_nobody_would_be_asked() -> None:
    spoken = talk(500, 20_000)
    snapshot = snapshot_of(conversation(live(spoken), CLAUDE, Surroundings()))
    request = CompactRequest("manual", target_tokens=snapshot.live_tokens)
    assert isinstance(start(Attempt(snapshot, request, WRITTEN_ONLY, Surroundings())), NothingDone)


@pytest.mark.parametrize("leaving", range(200, 3_000, 200))
def test_whoever_could_free_enough_is_asked(leaving: int) -> None:
    spoken = talk(leaving, 15_000)
    done = outcome(spoken, "Summary.", replace(WRITTEN_ONLY, min_gain_percent=-100))
    if not isinstance(done, Finished):
        assert reasons(outcome(spoken))[0] == "nothing_to_compact"
    elif (done.plan.tokens_before - done.plan.tokens_after) * 100 >= 5 * done.plan.tokens_before:
        assert isinstance(outcome(spoken), SummaryRequest)


def test_the_least_gain_that_is_asked_for_decides_who_is_asked() -> None:
    spoken = talk(500, 20_000)
    assert isinstance(outcome(spoken, policy=replace(WRITTEN_ONLY, min_gain_percent=0)), SummaryRequest)


def test_both_answers_occur_among_these_sizes() -> None:
    kinds = {type(outcome(talk(leaving, 15_000))) for leaving in range(200, 3_000, 200)}
    assert kinds == {SummaryRequest, NothingDone}
