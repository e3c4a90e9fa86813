"""What of the session's results stands in the material, by the room of whoever writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.summary_material import Fitted, fitted
from mcp_compact.messages.blocks import CLEARED_RESULT
from mcp_compact.messages.weights import estimate_all
from mcp_compact.testing import Talk, tool_result

POLICY = MicroPolicy()
ENDLESS = 10**9


def worked(results: int, failing: int = 2, words: int = 120, name: str = "Bash") -> Talk:
    """A session of calls; every so-manieth of them failed."""
    talk = Talk()
    talk.user("Fix it.")
    for n in range(results):
        talk.call(f"t{n}", name=name)
        said = f"CODE_{n}: undefined symbol\n" + f"TEXT_{n} " * words
        talk.add("user", [tool_result(f"t{n}", said, is_error=n % failing == 0)])
    return talk


def material(talk: Talk, room: int, drop: int = 0, policy: MicroPolicy = POLICY) -> str:
    return text_of(fitted(talk.records, policy, room, drop, estimate_all))


def text_of(shown: Fitted) -> str:
    return "\n\n".join(item.text for item in shown.rendered)


def whole_results(text: str, results: int) -> list[int]:
    return [n for n in range(results) if f"TEXT_{n} " in text]


def units_of(text: str) -> int:
    return sum(estimate_all([text]))


def test_a_session_that_fits_is_given_whole():
    text = material(worked(30), ENDLESS)
    assert whole_results(text, 30) == list(range(30))
    assert CLEARED_RESULT not in text


def test_where_the_room_is_short_the_oldest_results_leave_and_those_of_errors_last():
    talk = worked(30)
    whole = units_of(material(talk, ENDLESS))
    kept = whole_results(material(talk, whole * 70 // 100), 30)
    gone = [n for n in range(30) if n not in kept]
    assert gone, "nothing had to leave"
    assert all(n % 2 for n in gone), "an error left before the others"
    assert gone == list(range(1, 2 * len(gone), 2)), "not the oldest"


def test_an_error_that_leaves_keeps_its_first_line():
    text = material(worked(30), 0)
    assert whole_results(text, 30) == list(range(25, 30))
    assert [n for n in range(30) if f"CODE_{n}:" in text] == [*range(0, 25, 2), *range(25, 30)]


def test_one_result_without_room_takes_no_older_ones_along():
    talk = worked(3, failing=99)
    talk.call("large", name="Bash")
    talk.results("large", text="HUGE " * 9_000)
    for n in range(5):
        talk.call(f"new{n}", name="Bash")
        talk.results(f"new{n}", text=f"newest {n}")
    text = material(talk, 4_000_000)
    assert "HUGE" not in text
    assert whole_results(text, 3) == [0, 1, 2]


def test_tools_that_are_never_cleared_are_never_left_out():
    text = material(worked(12, name="mcp__db__query"), 0)
    assert whole_results(text, 12) == list(range(12))


def test_what_the_writer_found_too_long_leaves_by_results_before_any_round_does():
    talk = worked(30)
    whole = fitted(talk.records, POLICY, ENDLESS, 0, estimate_all)
    size = units_of(text_of(whole))
    shorter = fitted(talk.records, POLICY, ENDLESS, size // 3, estimate_all)
    assert shorter.dropped == 0
    assert units_of(text_of(shorter)) <= size - size // 3


def test_where_results_are_not_enough_whole_rounds_leave_too():
    talk = worked(30)
    size = units_of(material(talk, ENDLESS))
    shorter = fitted(talk.records, POLICY, ENDLESS, size * 95 // 100, estimate_all)
    assert shorter.dropped > 0
    assert shorter.rendered[0].record.type == "assistant"


@pytest.mark.parametrize("share", [10, 40, 70])
@given(results=st.integers(6, 40), failing=st.integers(1, 5), words=st.integers(1, 200))
def test_the_material_fits_wherever_leaving_out_results_can_make_it_fit(
    share: int, results: int, failing: int, words: int
) -> None:
    talk = worked(results, failing, words)
    size, barest = units_of(material(talk, ENDLESS)), units_of(material(talk, 0))
    room = size * share // 100
    shown = fitted(talk.records, POLICY, room, 0, estimate_all)
    assert sum(estimate_all([item.text for item in shown.rendered])) <= max(room, barest)
    assert shown.dropped == 0
