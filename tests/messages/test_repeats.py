from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.repeats import answered_call, counting_results

RESULTS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.booleans()))


@pytest.mark.parametrize(
    ("errors", "counts"),
    [
        ([False], 0),
        ([True], 0),
        ([True, False], 1),
        ([False, True], 0),
        ([False, False], 1),
        ([True, True], 1),
        ([True, False, True, True], 1),
        ([False, True, False], 2),
    ],
)
def test_the_last_result_that_is_no_error_counts_else_the_last(errors: list[bool], counts: int) -> None:
    assert counting_results(("t", error, at) for at, error in enumerate(errors)) == {"t": counts}


@given(RESULTS)
def test_each_call_has_one_result_and_an_error_counts_only_where_all_are_errors(
    results: list[tuple[str, bool]],
) -> None:
    found = counting_results((call, error, at) for at, (call, error) in enumerate(results))
    assert set(found) == {call for call, _ in results}
    for call, at in found.items():
        later = [error for name, error in results[at + 1 :] if name == call]
        assert results[at][0] == call
        assert all(later)
        assert not results[at][1] or all(error for name, error in results if name == call)


def test_of_repeated_calls_the_nearest_one_before_the_result_is_answered() -> None:
    assert answered_call([1, 4, 8], 6) == 4
    assert answered_call([1, 4, 8], 9) == 8
    assert answered_call([4], 4) is None
    assert answered_call([], 4) is None
