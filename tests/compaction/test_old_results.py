from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.in_memory import apply_clearing_plan, clearable_of, conversation
from mcp_compact.compaction.micro import Clearable, MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.compaction.policy import MicroPolicy, levels
from mcp_compact.compaction.request import Surroundings
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.live import live_context
from mcp_compact.messages.markers import ClearKind
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import UNITS_PER_TOKEN, Family
from mcp_compact.testing import START_MS, Talk, image, tool_result
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.native import native_clearing
from mcp_compact.transcripts.registry import reader_for
from tests.conversations import live

PLAIN = Family("plain", 1000, 0)
TOKENS = MicroRequest(mode=MicroMode.TOKENS, trigger_tokens=0)
MINUTE_MS = 60_000


def quarters(texts: Sequence[str]) -> list[int]:
    """A token for four characters, halves rounded up."""
    return [(len(text) + 2) // 4 * UNITS_PER_TOKEN for text in texts]


AROUND = Surroundings(quarters, ClearedText(hint=""))


def work(*tokens: int, tool: str = "Read", answer: bool = True) -> Talk:
    """Calls t0, t1, ... whose results have so many tokens, and a last answer."""
    talk = Talk()
    talk.user("go")
    for at, size in enumerate(tokens):
        talk.call(f"t{at}", name=tool)
        talk.results(f"t{at}", text="x" * size * 4)
    if answer:
        talk.assistant("done")
    return talk


def clearable(talk: Talk) -> Clearable:
    return clearable_of(conversation(live(talk), PLAIN, AROUND))


def plan(talk: Talk, request: MicroRequest = TOKENS, policy: MicroPolicy | None = None) -> ClearingPlan:
    return plan_clearing(clearable(talk), request, policy or MicroPolicy())


def gone(found: ClearingPlan) -> list[str]:
    return [str(item.clearing.tool_use_id) for item in found.cleared]


# --- by tokens


def test_the_newest_results_up_to_the_protected_sum_stay_and_everything_older_goes() -> None:
    sizes = [5000] * 14
    found = plan(work(*sizes))
    assert gone(found) == [f"t{at}" for at in range(6)]
    assert found.declined is None
    assert gone(plan(work(*sizes, 1))) == [f"t{at}" for at in range(7)]


def test_of_the_newest_results_some_stay_whatever_they_weigh() -> None:
    talk = work(30_000, *[20_000] * 6)
    assert gone(plan(talk)) == ["t0", "t1"]
    assert gone(plan(talk, replace(TOKENS, keep=1))) == [f"t{at}" for at in range(5)]
    assert gone(plan(talk, replace(TOKENS, keep=0), MicroPolicy(protect_tokens=1))) == [f"t{at}" for at in range(7)]


def test_what_saves_too_little_is_not_done_and_the_figures_are_told() -> None:
    talk = work(19_000, *[8000] * 5)
    found = plan(talk)
    assert found.cleared == ()
    assert found.tokens_after == found.tokens_before
    assert found.declined is not None
    assert found.declined.reason == "saves_too_little"
    saved = 19_000 - len("[Old tool result content cleared]") // 4
    assert found.declined.detail.startswith(f"{saved} tokens")
    assert "20000" in found.declined.detail
    assert gone(plan(talk, TOKENS, MicroPolicy(clear_at_least=saved))) == ["t0"]
    assert gone(plan(talk, TOKENS, MicroPolicy(clear_at_least=saved + 1))) == []


def test_the_least_saving_is_over_the_sum_media_and_inputs_included() -> None:
    talk = work(19_000, *[8000] * 5)
    talk.add("user", [image(), image()])
    talk.assistant("seen")
    found = plan(talk)
    assert [item.clearing.kind for item in found.cleared] == [ClearKind.RESULT, ClearKind.MEDIA]


def test_nothing_happens_in_a_context_below_the_trigger() -> None:
    talk = work(*[5000] * 14)
    live_tokens = clearable(talk).family.tokens(clearable(talk).live_weight)
    request = replace(TOKENS, trigger_tokens=None)
    assert gone(plan(talk, request, MicroPolicy(trigger_tokens=live_tokens)))
    below = plan(talk, request, MicroPolicy(trigger_tokens=live_tokens + 1))
    assert below.cleared == ()
    assert below.declined is not None
    assert below.declined.reason == "below_trigger"
    assert str(live_tokens) in below.declined.detail
    assert str(live_tokens + 1) in below.declined.detail


def test_the_trigger_is_the_windows_warning_level_and_overhead_counts() -> None:
    talk = work(*[5000] * 14)
    request = replace(TOKENS, trigger_tokens=None)
    facts = replace(clearable(talk), context_window=128_000)
    tokens = PLAIN.tokens(facts.live_weight)
    missing = levels(128_000).warning - tokens
    assert missing > 0
    assert plan_clearing(facts, request, MicroPolicy()).cleared == ()
    assert plan_clearing(replace(facts, overhead_tokens=missing), request, MicroPolicy()).cleared
    assert not plan_clearing(replace(facts, overhead_tokens=missing - 1), request, MicroPolicy()).cleared
    assert plan_clearing(facts, replace(request, context_tokens=tokens + missing), MicroPolicy()).cleared


def test_media_that_were_asked_for_go_also_where_the_mode_declines() -> None:
    talk = work(100)
    talk.add("user", [image(28), image()])
    talk.assistant("seen")
    found = plan(talk, replace(TOKENS, all_media=True))
    assert [item.clearing.kind for item in found.cleared] == [ClearKind.MEDIA]
    assert found.declined is not None


def test_age_and_media_alone_are_no_reason_to_decline() -> None:
    talk = work(100)
    talk.add("user", [image(), image()])
    talk.assistant("seen")
    found = plan(talk, MicroRequest())
    assert [item.clearing.kind for item in found.cleared] == [ClearKind.MEDIA]
    assert found.declined is None


def test_excluded_tools_are_neither_cleared_nor_counted() -> None:
    talk = work(*[5000] * 14, tool="Grep")
    assert gone(plan(talk, TOKENS, MicroPolicy(exclude_tools=("G*",)))) == []
    assert gone(plan(talk, TOKENS, MicroPolicy(tools=("mcp__*", "Grep"))))


# --- the other modes


def test_each_mode_says_why_it_does_nothing() -> None:
    talk = work(10, 10)
    reasons = []
    for mode in MicroMode:
        found = plan(talk, MicroRequest(mode=mode, trigger_tokens=0))
        assert found.declined is not None
        reasons.append(found.declined.reason)
    assert reasons == ["nothing_old_enough", "saves_too_little", "nothing_to_clear"]


def test_the_age_of_a_request_goes_before_the_policys() -> None:
    talk = work(500, *[5] * 5)
    now_ms = START_MS + 100 * MINUTE_MS
    assert gone(plan(talk, MicroRequest(now_ms=now_ms))) == ["t0"]
    assert gone(plan(talk, MicroRequest(now_ms=now_ms, older_than_minutes=98))) == []
    assert gone(plan(talk, MicroRequest(now_ms=now_ms, older_than_minutes=10), MicroPolicy(older_than_minutes=99))) == [
        "t0"
    ]


@pytest.mark.parametrize("mode", list(MicroMode))
def test_results_that_no_answer_has_followed_stay_in_every_mode(mode: MicroMode) -> None:
    talk = Talk()
    talk.user("go")
    talk.call(*[f"t{at}" for at in range(9)], message_id="m1")
    talk.results(*[f"t{at}" for at in range(9)], text="x" * 80_000)
    request = MicroRequest(mode=mode, now_ms=START_MS + 999 * MINUTE_MS, trigger_tokens=0)
    assert gone(plan(talk, request)) == []
    talk.assistant("seen")
    assert gone(plan(talk, request)) == ["t0", "t1", "t2", "t3"]


def test_a_result_between_the_calls_of_one_message_has_not_been_seen() -> None:
    talk = Talk()
    talk.user("go")
    for at in range(3):
        talk.call(f"t{at}", message_id="m1")
        talk.results(f"t{at}", text="x" * 8000)
    policy = MicroPolicy(max_result_tokens=100)
    assert gone(plan(talk, MicroRequest(), policy)) == []
    talk.assistant("seen", message_id="m2")
    assert gone(plan(talk, MicroRequest(), policy)) == ["t0", "t1", "t2"]


# --- large results, inputs of cleared calls


def test_a_result_above_the_limit_is_cleared_once_an_answer_follows() -> None:
    policy = MicroPolicy(max_result_tokens=1000)
    assert gone(plan(work(1000, 1001), MicroRequest(), policy)) == ["t1"]
    assert gone(plan(work(1000, 1001, answer=False), MicroRequest(), policy)) == []
    assert gone(plan(work(1001, tool="Task"), MicroRequest(), policy)) == []
    assert gone(plan(work(1001), MicroRequest(), MicroPolicy())) == []


def test_inputs_of_cleared_calls_go_with_them_and_are_told_apart() -> None:
    talk = Talk()
    talk.user("go")
    for at in range(7):
        blocks = [{"type": "tool_use", "id": f"t{at}", "name": "Write", "input": {"content": "y" * 4000}}]
        talk.add("assistant", blocks)
        talk.add("user", [tool_result(f"t{at}", "ok" if at else "x" * 400)])
    talk.assistant("done")
    request = MicroRequest(mode=MicroMode.ALL)
    assert [item.clearing.kind for item in plan(talk, request).cleared] == [ClearKind.RESULT]
    found = plan(talk, request, MicroPolicy(clear_tool_inputs=True))
    kinds = [(item.clearing.kind, item.clearing.tool_use_id) for item in found.cleared]
    # A result too short to be cleared is no reason to keep a long input.
    assert kinds == [(ClearKind.INPUT, "t0"), (ClearKind.RESULT, "t0"), (ClearKind.INPUT, "t1")]
    assert [(tool, number) for tool, number, _ in found.by_tool] == [("Write", 1), ("Write input", 2)]
    assert found.first_changed == "r2"
    context = live(talk)
    after = clearable_of(conversation(apply_clearing_plan(context, found), PLAIN, AROUND))
    assert PLAIN.tokens(after.live_weight) == found.tokens_after
    assert plan_clearing(after, request, MicroPolicy(clear_tool_inputs=True)).cleared == ()


@given(st.lists(st.integers(0, 3000), max_size=12), st.integers(1, 6000), st.integers(0, 3))
def test_by_tokens_what_stays_is_protected_or_small(sizes: list[int], protect: int, keep: int) -> None:
    talk = work(*sizes)
    found = plan(talk, replace(TOKENS, keep=keep), MicroPolicy(protect_tokens=protect, clear_at_least=1))
    cleared = {str(item.clearing.tool_use_id) for item in found.cleared}
    newest = 0
    for at in range(len(sizes) - 1, -1, -1):
        newest += sizes[at]
        if f"t{at}" in cleared:
            assert newest > protect
            assert len(sizes) - at > keep
        else:
            assert newest <= protect or len(sizes) - at <= keep or sizes[at] <= 9


# --- what the original did


def transcript(shared: Path) -> list[Record]:
    file = shared / "transcripts" / "claude-code" / "cli__d5_99f72ee73a_0_930696.jsonl"
    parsed = reader_for("claude-code", "transcript").read(read_lines([file.read_bytes()]))
    records = [item.record for item in parsed if item.agent_id is None]
    return [replace(record, seq=at) for at, record in enumerate(records, 1)]


def test_a_real_micro_compaction_is_reproduced(shared: Path) -> None:
    """The same calls are cleared as a real client cleared, which counted four characters of a result as a token.

    It told the sum of the results' tokens as what it saved; what stands in their place is not taken off there.
    """
    records = transcript(shared)
    at, real = next((at, item) for at, record in enumerate(records) if (item := native_clearing(record)))
    live_now = clearable_of(conversation(live_context(records[:at], []), PLAIN, AROUND))
    found = plan_clearing(live_now, TOKENS, MicroPolicy(protect_tokens=40_000, clear_at_least=20_000))
    # It names them by their calls, two of which were answered the other way round.
    assert sorted(gone(found)) == sorted(real.tool_use_ids)
    assert len(gone(found)) == len(set(gone(found))) == 11
    weights = {result.tool_use_id: result.weight for result in live_now.results}
    told = sum(PLAIN.tokens(weights[call]) for call in real.tool_use_ids)
    assert abs(told - (real.tokens_saved or 0)) <= 2
    marks = 11 * len("[Old tool result content cleared]") / 4
    assert abs(found.tokens_before - found.tokens_after - (told - marks)) <= 3


def test_of_a_real_one_nothing_is_left_to_do_afterwards(shared: Path) -> None:
    records = transcript(shared)
    at = next(at for at, record in enumerate(records) if native_clearing(record))
    context = live_context(records[:at], [])
    first = plan_clearing(clearable_of(conversation(context, PLAIN, AROUND)), TOKENS, MicroPolicy())
    after = clearable_of(conversation(apply_clearing_plan(context, first), PLAIN, AROUND))
    again = plan_clearing(after, TOKENS, MicroPolicy())
    assert again.cleared == ()
    assert again.declined is not None
    assert again.declined.reason == "saves_too_little"
