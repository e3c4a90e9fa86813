"""Cuts that change no token, and text that the encoder can take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.tokenizers import guard, ranks

FRAGMENTS = (
    *("\n", "\r\n", "\r", "\t", " ", "  ", "\u00a0", "\u3000", "\x1c", "\x85", "\u2028", "/", "//", "'", "'s", "'LL"),
    *(
        "don't",
        "word",
        "Word",
        "WORD",
        "wordWord",
        "1",
        "1234",
        "½",
        "٣",
        "e\u0301",
        "\u0301",
        "ſ",
        "ǅ",
        "ﬁ",
        "_",
        "__",
    ),
    *(
        "中文",
        "안녕",
        "ไทย",
        "हिन्दी",
        "👩\u200d👧",
        "\u200b",
        "\ufeff",
        "\x00",
        "!",
        "...",
        "()",
        '{"a": [1',
        "]}",
        "|",
        "~",
    ),
)
texts = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=40).map("".join).map(guard.clean)
strings_with_surrogates = st.text(st.characters(exclude_categories=()), max_size=60)


@given(texts, st.data())
def test_a_safe_cut_changes_no_token(text, data):
    lowest = data.draw(st.integers(0, len(text)))
    cut = guard.safe_cut(text, lowest, data.draw(st.integers(lowest, len(text))))
    if cut is not None:
        encode = ranks.load_encoding().encode_ordinary
        assert encode(text[:cut]) + encode(text[cut:]) == encode(text)


@given(texts)
def test_every_place_after_which_a_cut_is_called_safe_is_safe(text):
    encode = ranks.load_encoding().encode_ordinary
    whole = encode(text)
    for at in range(1, len(text)):
        if guard.safe_cut(text, at - 1, at) == at:
            assert encode(text[:at]) + encode(text[at:]) == whole, text[:at]


@given(texts, st.integers(1, 30))
def test_pieces_are_the_text_and_none_is_too_long_and_none_too_short(text, limit):
    found = list(guard.pieces(text, limit))
    assert "".join(found) == text
    assert all(len(piece) <= limit for piece in found)
    assert all(len(piece) > limit // 2 for piece in found[:-1])


@given(st.lists(st.from_regex(r"[ a-zA-Z0-9,.;:(){}\"=+-]{1,30}", fullmatch=True), min_size=1, max_size=30))
def test_text_of_lines_has_the_same_tokens_in_pieces_as_whole(lines):
    # No line begins with white space, so that every line break is a safe place.
    text = "\n".join(f"x{line}" for line in lines)
    encode = ranks.load_encoding().encode_ordinary
    in_pieces = [token for piece in guard.pieces(text, 64) for token in encode(piece)]
    assert in_pieces == encode(text)


def test_a_line_is_preferred_to_a_word_and_a_word_to_the_limit():
    assert list(guard.pieces("aaa\nbbb ccc ddd", 10)) == ["aaa\nbbb", " ccc ddd"]
    assert list(guard.pieces("aaaaaa\nb cc ddd", 10)) == ["aaaaaa\n", "b cc ddd"]
    assert list(guard.pieces("a" * 25, 10)) == ["a" * 10, "a" * 10, "a" * 5]


def test_a_break_before_white_space_or_a_slash_is_no_place_to_cut():
    for after in (" x", "\tx", "\n", "/x", "\u3000x", "\u2028"):
        assert guard.safe_cut(f"!\n{after}", 0, 2) is None


def test_a_word_is_not_cut_from_what_is_joined_to_it():
    for text in (" don't", " DON'T", "e\u0301", "ab", "\u3044\u3099"):
        assert [at for at in range(1, len(text)) if guard.safe_cut(text, at - 1, at)] == []


def test_a_cut_may_lie_right_at_the_highest_place_but_not_at_the_lowest():
    assert guard.safe_cut("aaaa bbbb", 3, 4) == 4
    assert guard.safe_cut("aaaa bbbb", 4, 8) is None
    assert guard.safe_cut("aaa\nbbbb", 3, 4) == 4


def test_short_text_is_one_piece_and_a_limit_below_one_is_refused():
    assert list(guard.pieces("short")) == ["short"]
    assert list(guard.pieces("")) == [""]
    with pytest.raises(ValueError, match="at least 1 character, not 0"):
        list(guard.pieces("abc", 0))


@given(strings_with_surrogates)
def test_clean_text_can_be_encoded_and_has_a_mark_for_each_lone_surrogate(text):
    cleaned = guard.clean(text)
    cleaned.encode("utf-8")
    lone = len(re.findall("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]", text))
    assert cleaned.count("\ufffd") == text.count("\ufffd") + lone
    assert guard.clean(cleaned) == cleaned


@given(strings_with_surrogates)
def test_cleaning_changes_no_token(text):
    encode = ranks.load_encoding().encode_ordinary
    assert encode(guard.clean(text)) == encode(text)


@given(st.text(max_size=50))
def test_text_without_surrogates_is_left_as_it_is(text):
    assert guard.clean(text) is text


def test_a_sample_runs_from_the_head_to_the_tail():
    text = "".join(f"{number:07d}\n" for number in range(300_000))
    windows = guard.sample(text)
    assert len(windows) == guard.SAMPLE_WINDOWS
    assert text.startswith(windows[0])
    assert text.endswith(windows[-1])
    assert {len(window) for window in windows} == {guard.PIECE_CHARS}


def test_a_sample_of_a_short_text_is_the_text():
    assert "".join(guard.sample("line of text\n" * 10_000)) == "line of text\n" * 10_000
