"""Cutting a memory to a size: the number of lines that fits is found from any guess."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.tokenizers import O200kTokenizer
from mcp_compact.compaction.fitting import _most, fit
from mcp_compact.messages.memory_document import MemoryDocument, Section
from mcp_compact.messages.weights import UNITS_PER_TOKEN, CountUnits, estimate_all

tokenizer = O200kTokenizer()
texts = st.text(st.sampled_from("ab A\n\n #-.'/_1\u00e9\u4e2d"), max_size=60) | st.text(max_size=30)
sections = st.lists(st.builds(Section, st.sampled_from(("Task", "State", "", "Worklog")), texts), max_size=6)


def exact(texts: Sequence[str]) -> list[int]:
    return [UNITS_PER_TOKEN * tokens for tokens in tokenizer.count(texts)]


@pytest.mark.parametrize("count", [exact, estimate_all])
@given(
    sections=sections,
    title=st.sampled_from(("", "M")),
    room=st.integers(-5_000, 20_000),
    of_a_section=st.integers(0, 60_000),
)
def test_what_is_left_whole_fits(sections: list[Section], title: str, room: int, of_a_section: int, count: CountUnits):
    """Whether it was counted as a whole or by its sections."""
    document = MemoryDocument(title, tuple(sections))
    units = count([document.render()])[0] + room
    left = fit(document, units, of_a_section, count)
    if left == document:
        assert units >= count([document.render()])[0] or not any(section.body.strip() for section in sections)


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
