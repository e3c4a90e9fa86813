"""A written summary in less room."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.condense import condensed

SUMMARY = """\
The start of it all.

1. What was wanted:
   Mend the parser of dates.
   Do not touch the writer.

2. Files:
   ```python
   def parse(text):
       return [date.fromisoformat(part) for part in text.split()]
   ```
   The parser stands in one file.

3. What comes next:
   Run the tests again.
"""


def count(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def keeps_all(line: str) -> bool:
    return not line


def shortened(units: int, left_out: str = "") -> list[str]:
    return condensed(SUMMARY, units, lambda line: bool(left_out) and left_out in line, count).splitlines()


def test_a_summary_that_fits_stays_as_it_is() -> None:
    assert condensed(SUMMARY, len(SUMMARY), keeps_all, count) == SUMMARY


def test_what_comes_next_is_kept_first_then_what_was_wanted() -> None:
    assert shortened(110)[:2] == ["3. What comes next:", "   Run the tests again."]
    assert shortened(140)[0] == "The start of it all."


def test_lines_stay_in_their_order_under_their_headings_and_code_goes() -> None:
    code = ("```", "def ", "return ")
    told = [line for line in SUMMARY.splitlines() if line and not any(part in line for part in code)]
    assert shortened(len(SUMMARY) - 1)[:-1] == told


def test_it_says_how_many_lines_are_left_out() -> None:
    assert shortened(110)[-1] == "[This summary was shortened by 10 of its 12 lines.]"


def test_lines_that_need_not_stay_are_left_out_and_a_heading_without_lines_with_them() -> None:
    made = shortened(len(SUMMARY) - 1, left_out="Run the tests")
    assert "3. What comes next:" not in made
    assert "   Mend the parser of dates." in made


def test_a_summary_without_headings_is_cut_by_whole_lines() -> None:
    text = "one line of it\nanother line of it\n" * 9
    made = condensed(text, 150, keeps_all, count).splitlines()
    assert set(made[:-1]) == {"one line of it", "another line of it"}


@given(st.lists(st.text("ab:#1. -`\n", max_size=30), max_size=12), st.integers(60, 400))
def test_it_never_costs_more_than_it_may(lines: list[str], units: int) -> None:
    text = "\n".join(lines)
    assert len(condensed(text, units, keeps_all, count)) <= max(units, min(len(text), units))
