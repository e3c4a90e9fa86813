from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.attempt import Attempt, Window
from mcp_compact.compaction.cuts import last_round_index, total
from mcp_compact.compaction.in_memory import conversation, snapshot_of
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest, Surroundings
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import clear_largest, fitted_tail, gone_results
from mcp_compact.messages.weights import CLAUDE, NOTHING, Family
from mcp_compact.testing import Talk
from tests.conversations import live, talks

PLAIN = Family("plain", 1000, 0)


def snapshot(talk: Talk, family: Family = PLAIN) -> Snapshot:
    return snapshot_of(conversation(live(talk), family, Surroundings()))


def work(*sizes: int) -> Talk:
    """Calls whose results have so many characters, and a last answer."""
    talk = Talk()
    talk.user("go")
    for i, size in enumerate(sizes):
        talk.call(f"t{i}")
        talk.results(f"t{i}", text="x" * size)
    talk.assistant("done")
    return talk


def cleared(talk: Talk, allowed: int, first: int = 0) -> list[str]:
    shot = snapshot(talk)
    items, _ = clear_largest(shot, shot.tail[first:], allowed)
    return [str(item.clearing.tool_use_id) for item in items]


def test_a_tail_that_fits_is_left_alone() -> None:
    assert cleared(work(9000, 9000), 1_000_000) == []


def test_an_empty_tail_has_nothing_to_clear() -> None:
    assert clear_largest(snapshot(work(9000)), (), 0) == ((), NOTHING)


def test_the_largest_results_go_first_and_no_more_than_needed() -> None:
    talk = work(2000, 9000, 5000)
    whole = snapshot(talk).live_tokens
    assert cleared(talk, whole - 1) == ["t1"]
    assert cleared(talk, whole - 3000) == ["t1", "t2"]
    assert cleared(talk, 0) == ["t1", "t2", "t0"]


def test_of_equal_results_the_oldest_goes_first() -> None:
    talk = work(5000, 5000)
    assert cleared(talk, snapshot(talk).live_tokens - 1) == ["t0"]


def test_results_that_no_answer_has_followed_come_last() -> None:
    talk = work(1000)
    talk.call("new")
    talk.results("new", text="x" * 9000)
    assert cleared(talk, 0) == ["t0", "new"]


def test_results_of_excluded_tools_are_spared_as_long_as_others_suffice() -> None:
    talk = Talk()
    talk.user("go")
    for call, tool, size in (("m1", "mcp__memory__load", 9000), ("t1", "Read", 3000), ("m2", "Skill", 9000)):
        talk.call(call, name=tool)
        talk.results(call, text="x" * size)
    talk.assistant("done")
    talk.call("t2")
    talk.results("t2", text="x" * 3000)
    shot = snapshot(talk)

    def gone(allowed: int) -> list[str]:
        items, _ = clear_largest(shot, shot.tail, allowed, ("mcp__memory__*", "Skill"))
        return [str(item.clearing.tool_use_id) for item in items]

    assert gone(shot.live_tokens - 500) == ["t1"]
    assert gone(shot.live_tokens - 1200) == ["t1", "t2"]
    assert gone(0) == ["t1", "t2", "m1", "m2"]


def test_results_outside_of_the_tail_and_short_ones_stay() -> None:
    assert cleared(work(9000, 8000), 0, first=3) == ["t1"]
    assert cleared(work(3, 20), 0) == []


def test_a_result_that_counts_as_cleared_is_no_candidate() -> None:
    shot = snapshot(work(9000))
    shot = replace(shot, results=tuple(replace(result, cleared=True) for result in shot.results))
    assert clear_largest(shot, shot.tail, 0)[0] == ()


@given(talks(most=8), st.integers(0, 30_000), st.integers(0, 20))
def test_the_weight_afterwards_is_the_tails_without_what_was_freed(talk: Talk, allowed: int, first: int) -> None:
    shot = snapshot(talk, CLAUDE)
    kept = shot.tail[first:]
    items, weight = clear_largest(shot, kept, allowed)
    assert weight + sum((item.freed for item in items), NOTHING) == total(kept)
    assert CLAUDE.tokens(weight) <= CLAUDE.tokens(total(kept))
    assert {item.clearing.uuid for item in items} <= {entry.uuid for entry in kept}
    if items:
        unseen = kept[last_round_index(kept)].seq
        seqs = {entry.uuid: entry.seq for entry in kept}
        flags = [seqs[item.clearing.uuid] >= unseen for item in items]
        assert flags == sorted(flags)
        assert CLAUDE.tokens(weight + items[-1].freed) > allowed


def kept_of(talk: Talk, target: int, first: int = 0) -> tuple[Attempt, Window]:
    shot = snapshot(talk)
    attempt = Attempt(shot, CompactRequest(target_tokens=target), Policy(), Surroundings())
    return attempt, Window(target, first, shot.tail[first:], refresh=True)


def test_seen_results_are_cleared_so_that_the_memory_has_most_of_a_small_target() -> None:
    talk = work(40_000, 40_000, 5000, 9000)
    attempt, window = kept_of(talk, 5000, first=5)
    tail = fitted_tail(attempt, window)
    assert [item.clearing.tool_use_id for item in tail.cleared] == ["t3", "t2"]
    assert PLAIN.tokens(tail.weight) <= 5000 // 4
    assert gone_results(attempt, window, tail) == {"t2", "t3"}


def test_results_that_nobody_has_answered_keep_a_third_of_the_target() -> None:
    talk = work(40_000, 40_000)
    talk.call("new")
    talk.results("new", text="x" * 5000)
    attempt, window = kept_of(talk, 5000, first=6)
    assert fitted_tail(attempt, window).cleared == ()
    attempt, window = kept_of(talk, 4000, first=6)
    assert [item.clearing.tool_use_id for item in fitted_tail(attempt, window).cleared] == ["new"]


def test_nothing_is_cleared_for_a_memory_that_has_room_enough() -> None:
    attempt, window = kept_of(work(40_000, 40_000, 5000, 9000), 100_000, first=5)
    assert fitted_tail(attempt, window).cleared == ()
