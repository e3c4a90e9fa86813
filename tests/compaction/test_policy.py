from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.policy import (
    MemoryPolicy,
    MicroPolicy,
    Policy,
    SessionMemoryCompactConfig,
    levels,
    tail_limits,
)
from mcp_compact.errors import CallerError


def test_the_defaults_are_the_documented_figures() -> None:
    assert SessionMemoryCompactConfig() == SessionMemoryCompactConfig(10_000, 5, 40_000)
    micro = MicroPolicy()
    assert micro.tools == ("Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write")
    assert (micro.older_than_minutes, micro.keep_recent, micro.media_tokens) == (60, 5, 2_000)
    assert MemoryPolicy() == MemoryPolicy(12_000, 2_000, 10_000, 5_000, 3)
    assert (Policy().min_gain_percent, Policy().session_memory, Policy().sm_compact) == (5, True, True)


@pytest.mark.parametrize(
    ("window", "warning", "compact", "hard"),
    [
        (200_000, 147_000, 167_000, 197_000),
        (1_000_000, 947_000, 967_000, 997_000),
        (128_000, 76_000, 95_000, 125_000),
        (64_000, 25_600, 32_000, 61_000),
        (8_000, 3_200, 4_000, 6_000),
    ],
)
def test_the_ladder_of_known_windows(window: int, warning: int, compact: int, hard: int) -> None:
    ladder = levels(window)
    assert (ladder.warning, ladder.compact, ladder.hard) == (warning, compact, hard)
    assert ladder.known


@pytest.mark.parametrize("window", [None, 0, -5])
def test_an_unknown_window_is_assumed_and_said_to_be_unknown(window: int | None) -> None:
    ladder = levels(window)
    assert ladder.window == 200_000
    assert not ladder.known


def test_a_level_begins_at_its_threshold() -> None:
    ladder = levels(200_000)
    expected = [(0, "ok"), (146_999, "ok"), (147_000, "warning"), (166_999, "warning"), (167_000, "compact")]
    expected += [(196_999, "compact"), (197_000, "hard"), (900_000, "hard")]
    assert [(tokens, ladder.level(tokens)) for tokens, _ in expected] == expected


@pytest.mark.parametrize(
    ("asked", "compact"),
    [
        ("60%", 120_000),
        ("180000", 180_000),
        (" 0.5% ", 1_000),
        ("", 167_000),
        ("window-20000", 180_000),
        ("Window - 20000", 180_000),
        ("window-150000", 100_000),
    ],
)
def test_compaction_may_be_asked_for_at_a_share_or_a_number(asked: str, compact: int) -> None:
    assert levels(200_000, asked).compact == compact


def test_a_threshold_beyond_the_window_is_drawn_into_it() -> None:
    ladder = levels(100_000, "180000")
    assert ladder.compact == 99_999
    assert ladder.compact < ladder.hard <= 100_000


@pytest.mark.parametrize(
    "bad",
    ["soon", "window-", "window-0", "window-10%", "window+5", "nan%", "%", "inf", "0.5", "-3", "0", "-5%", "200%"],
)
def test_a_bad_place_for_compaction_is_refused_loudly(bad: str) -> None:
    with pytest.raises(CallerError, match="60%"):
        levels(200_000, bad)


WINDOWS = st.one_of(st.integers(2, 3_000_000), st.integers(1_000, 40_000))
SHARES = st.floats(0.1, 99.99).map("{:.2f}%".format)


@given(
    WINDOWS,
    st.one_of(st.just(""), *(st.integers(1, 4_000_000).map(form.format) for form in ("{}", "window-{}")), SHARES),
)
def test_every_threshold_lies_above_zero_and_below_the_window(window: int, asked: str) -> None:
    ladder = levels(window, asked)
    assert 0 < ladder.warning <= ladder.compact < ladder.hard <= window


def test_the_tails_limits_are_a_quarter_and_a_half_of_a_small_target() -> None:
    config = SessionMemoryCompactConfig()
    small = tail_limits(config, 8_000, capped=True)
    assert (small.min_tokens, small.min_text_block_messages, small.max_tokens, small.capped) == (2_000, 5, 4_000, True)
    large = tail_limits(config, 200_000, capped=False)
    assert (large.min_tokens, large.max_tokens, large.capped) == (10_000, 40_000, False)


@given(st.integers(-100, 10**6), st.integers(1, 10**5), st.integers(1, 10**5))
def test_the_tails_limits_never_exceed_the_settings(target: int, low: int, high: int) -> None:
    limits = tail_limits(SessionMemoryCompactConfig(low, 5, high), target, capped=False)
    assert limits.min_tokens <= low
    assert limits.max_tokens <= high
    assert limits.max_tokens <= max(0, target)
