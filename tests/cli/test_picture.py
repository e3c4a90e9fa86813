from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.cli import picture
from mcp_compact.cli.terminal import Terminal
from mcp_compact.cli.text import width
from mcp_compact.compaction.wording import summary_message
from mcp_compact.service.results import Slice

PLAIN = Terminal()
ASCII = Terminal(blocks=False)
COLOURS = Terminal(colours=True)
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": summary_message("# Session memory", tail=True)},
    {"role": "user", "content": "Fix the parser, please."},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm " * 50, "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}},
            {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "x = 1\n" * 400},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "a.py"}]},
            {"type": "text", "text": "<system-reminder>be careful</system-reminder>"},
        ],
    },
]
SLICES = st.lists(
    st.builds(
        Slice,
        st.sampled_from(["memory", "your words", "assistant", "Read results", "Bash results", "x results"]),
        st.integers(0, 10**6),
        st.just(1),
    ),
    max_size=8,
    unique_by=lambda item: item.kind,
)


def test_messages_are_told_apart_by_kind():
    found = {item.kind: item for item in picture.slices_of_messages(MESSAGES)}
    assert set(found) == {
        "memory", "your words", "thinking", "assistant", "tool calls", "Read results", "Bash results", "reminders",
    }  # fmt: skip
    assert found["Read results"].tokens > found["Bash results"].tokens > 0
    assert found["tool calls"].messages == 1


def test_who_wrote_a_text_under_the_users_name_is_told_apart():
    def kind(text):
        return [item.kind for item in picture.slices_of_messages([{"role": "user", "content": text}])]

    assert kind("Please go on.") == ["your words"]
    assert kind("<system-reminder>hm</system-reminder>") == ["reminders"]
    assert kind("def f():\n    pass\n" * 1000) == ["pasted text"]
    assert kind("This session is being continued from a previous conversation that ran out.") == ["memory"]


def test_a_result_whose_call_is_not_there_still_has_a_kind():
    alone = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}]}]
    assert [item.kind for item in picture.slices_of_messages(alone)] == ["unknown tool results"]


@given(SLICES, st.integers(0, 10**7))
def test_scaled_slices_add_up_to_the_total(slices, total):
    if sum(item.tokens for item in slices):
        assert sum(item.tokens for item in picture.scaled(slices, total)) == total


@given(SLICES, SLICES)
def test_every_line_fits_eighty_columns_and_no_token_is_lost(before, after):
    for screen in (PLAIN, ASCII):
        assert all(width(line) <= 80 for line in picture.comparison(before, after, screen))
    kinds = picture.ordered_kinds(before, after)
    assert sum(picture.merged(before, kinds).values()) == sum(item.tokens for item in before)


@given(SLICES, SLICES)
def test_without_blocks_only_ascii_is_drawn(before, after):
    assert "".join(picture.comparison(before, after, ASCII)).isascii()


def test_the_smaller_context_has_the_shorter_bar_on_the_same_scale():
    before = [Slice("Read results", 80_000, 9), Slice("assistant", 20_000, 9)]
    after = [Slice("memory", 10_000, 1), Slice("assistant", 10_000, 3)]
    first, second = picture.comparison(before, after, PLAIN)[:2]
    assert first.count("░") == 50
    assert second.count("█") == 6
    assert "80% less" in picture.comparison(before, after, PLAIN)[-1]


def test_many_tools_are_summed_up_in_one_row():
    slices = [Slice(f"Tool{n} results", 1000 - n, 1) for n in range(12)]
    kinds = picture.ordered_kinds(slices, ())
    assert kinds[-1] == "other results"
    assert len(kinds) == 6
    assert sum(picture.merged(slices, kinds).values()) == sum(item.tokens for item in slices)


def test_colours_mark_the_kinds_only_where_there_are_colours():
    slices = [Slice("Read results", 80, 9), Slice("Bash results", 20, 9)]
    assert "\x1b[" not in "".join(picture.single(slices, PLAIN))
    drawn = "".join(picture.single(slices, COLOURS))
    assert "\x1b[36m" in drawn
    assert "\x1b[34m" in drawn


def test_the_gauge_shows_the_level_and_both_thresholds():
    drawn = picture.gauge(50_000, 134_000, 167_000, 200_000, PLAIN)
    assert len(drawn) == 76
    assert drawn.count("█") == 19
    assert drawn.index(":") < drawn.index("|")
    assert picture.gauge(900_000, 134_000, 167_000, 200_000, ASCII).count("#") == 74


def test_an_empty_context_can_be_drawn():
    assert picture.comparison([], [], PLAIN)
    assert picture.single([], PLAIN)
