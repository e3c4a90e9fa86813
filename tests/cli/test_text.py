from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.cli import text

DAY_MS = 24 * 3600 * 1000
NOW_MS = 1_767_225_600_000


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (12_345, "12.3k"),
        (999_949, "999.9k"),
        (999_950, "1.0M"),
        (1_234_567, "1.2M"),
    ],
)
def test_tokens_are_said_in_thousands(number, said):
    assert text.tokens(number) == said


@given(st.integers(0, 10**9))
def test_tokens_take_at_most_seven_columns(number):
    assert len(text.tokens(number)) <= 7


@pytest.mark.parametrize(
    ("passed_ms", "said"),
    [
        (0, "just now"),
        (59_999, "just now"),
        (60_000, "1 min ago"),
        (3_599_000, "59 min ago"),
        (3_600_000, "1 h ago"),
        (DAY_MS - 1, "23 h ago"),
        (DAY_MS, "yesterday"),
        (2 * DAY_MS, "2 days ago"),
        (30 * DAY_MS, "30 days ago"),
        (31 * DAY_MS, "2025-12-01"),
        (-5000, "in the future"),
    ],
)
def test_times_are_said_as_people_say_them(passed_ms, said):
    assert text.age(NOW_MS - passed_ms, NOW_MS) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"), [(0, 10, "0%"), (1, 1000, "<1%"), (1, 3, "33%"), (5, 0, "0%"), (7, 7, "100%")]
)
def test_a_share_never_rounds_something_to_nothing(part, whole, said):
    assert text.share(part, whole) == said


@pytest.mark.parametrize(
    ("number", "said"), [(5, "5 B"), (64_000, "64 kB"), (1_300_000, "1.3 MB"), (2_000_000_000, "2.0 GB")]
)
def test_sizes_are_said_in_units(number, said):
    assert text.size(number) == said


def test_counts_choose_the_plural():
    assert [text.count(1, "message"), text.count(1204, "message"), text.count(2, "entry", "entries")] == [
        "1 message",
        "1,204 messages",
        "2 entries",
    ]


@given(st.text())
def test_shown_text_can_do_nothing_to_a_terminal(given_text):
    assert text.shown(given_text).isprintable()
    assert text.shown_line(given_text).isprintable()


def test_escape_sequences_are_taken_apart():
    assert text.shown("a\x1b[31mred\x1b[0m\r\nb\u202ec") == "a [31mred [0m b c"


@given(st.text(), st.integers(3, 60))
def test_cut_text_fits_its_columns(given_text, columns):
    assert text.width(text.cut(text.shown(given_text), columns)) <= columns


@given(st.text(), st.integers(3, 60))
def test_fitted_text_takes_exactly_its_columns(given_text, columns):
    assert text.width(text.fit(text.shown(given_text), columns)) == columns


def test_wide_characters_take_two_columns():
    assert text.width("可以提交") == 8
    assert text.cut("可以提交", 7) == "可以..."


def test_a_table_is_aligned_and_cuts_only_the_column_that_may_be_cut():
    rows = [("id", "tokens", "title"), ("abc", "12.3k", "x" * 60)]
    first, second = text.table(rows, right=(1,), columns=40, stretch=2)
    assert first == "id   tokens  title"
    assert second == "abc   12.3k  " + "x" * 24 + "..."
    assert len(second) == 40


def test_a_table_of_nothing_is_nothing():
    assert text.table([], right=(), columns=80, stretch=0) == []
