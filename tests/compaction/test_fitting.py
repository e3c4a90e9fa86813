"""Cutting a memory to a size: the number of lines that fits is found from any guess."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.fitting import _most


@given(st.integers(0, 200), st.integers(-50, 400), st.integers(0, 250))
def test_the_largest_number_that_fits_is_found_from_any_guess(most, guess, limit):
    asked: list[int] = []

    def fits(number: int) -> bool:
        assert 1 <= number <= most
        asked.append(number)
        return number <= limit

    assert _most(most, guess, fits) == min(limit, most)
    assert len(asked) == len(set(asked)) <= 24


@given(st.integers(8, 200), st.integers(0, 200))
def test_a_good_guess_takes_few_looks(most, limit):
    asked: list[int] = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= limit

    _most(most, min(limit, most), fits)
    assert len(asked) <= 3
