"""Looking for any of many patterns finds what one alternation of them finds."""

from __future__ import annotations

import re
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages import rule_grammar, rule_languages
from mcp_compact.messages.rule_search import any_of, parts_of

OPENING = r"(?:^|(?<=,) ?|\b(?:and|but) )"
PATTERNS = (
    r"^(?:no|never) \w+|\bnot (?!a|b)[a-z|]+\b",
    rf"{OPENING}(?:stop|do not)\b",
    rf"{OPENING}use [(|)\]]|a\|b|[^|(]x$",
)
FURTHER = (r"不要|(?:別|别).{1,3}|\bñ\w", r"^не \w+")
BEYOND_ASCII = {
    "Russian": rule_languages._RUSSIAN,
    "Chinese": rule_languages._CHINESE,
    "Japanese": rule_languages._JAPANESE,
    "Korean": rule_languages._KOREAN,
    "revoked": rule_languages._REVOKED_IN_CHARACTERS,
    "permitted": rule_languages._PERMITTED_IN_CHARACTERS,
}
ALL_RULES = (
    *rule_grammar._RULES,
    *(rule_languages._GERMAN + rule_languages._FRENCH + rule_languages._SPANISH + rule_languages._PORTUGUESE),
    *(rule_languages._ITALIAN + rule_languages._MORE + rule_languages._REVOKED + rule_languages._PERMITTED),
    *(own for patterns in BEYOND_ASCII.values() for own in patterns),
)

texts = st.lists(
    st.sampled_from(
        (
            "no ",
            "never ",
            "and ",
            "but ",
            ", ",
            "stop",
            "do not ",
            "use ",
            "not ",
            "(",
            "|",
            "]",
            "a|b",
            "x",
            "a",
            "不要",
            "别",
            "ñ",
            "не ",
            "\n",
        )
    ),
    max_size=8,
).map("".join)


@given(texts)
def test_it_finds_what_one_alternation_finds(text: str) -> None:
    whole = re.compile("|".join(f"(?:{own})" for own in (*PATTERNS, *FURTHER)))

    found = any_of(PATTERNS, beyond_ascii=FURTHER, opening=OPENING)(text)

    assert found == (whole.search(text) is not None)


def test_no_pattern_is_found_where_there_is_none() -> None:
    assert any_of(())("anything") is False


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a|b", ["a", "b"]),
        ("a", ["a"]),
        (r"(?:a|b)c|d", ["(?:a|b)c", "d"]),
        (r"a\|b|[|(]c|[^]|]d", [r"a\|b", "[|(]c", "[^]|]d"]),
        (r"[\]|]|\)", [r"[\]|]", r"\)"]),
        ("a|", ["a", ""]),
    ],
)
def test_a_pattern_is_parted_at_its_outermost_bars(pattern: str, parts: list[str]) -> None:
    assert parts_of(pattern) == parts


@pytest.mark.parametrize("pattern", ALL_RULES)
def test_the_parts_of_every_rule_are_patterns_of_their_own(pattern: str) -> None:
    parts = parts_of(pattern)

    assert "|".join(parts) == pattern
    assert all(re.compile(part) for part in parts)


@pytest.mark.parametrize("group", BEYOND_ASCII)
def test_rules_that_are_left_out_for_ascii_need_another_letter(group: str) -> None:
    for pattern in BEYOND_ASCII[group]:
        assert _needs_more(parser.parse(pattern)), pattern


def _needs_more(pattern: Any) -> bool:
    """Does every match of a parsed pattern hold a letter beyond ASCII?"""
    return any(_item_needs_more(code, value) for code, value in pattern)


def _item_needs_more(code: Any, value: Any) -> bool:
    if code is op.LITERAL:
        return bool(value > 127)
    if code is op.IN:
        return all((kind is op.LITERAL and own > 127) or (kind is op.RANGE and own[0] > 127) for kind, own in value)
    if code is op.BRANCH:
        return all(_needs_more(own) for own in value[1])
    if code is op.SUBPATTERN:
        return _needs_more(value[-1])
    if code in (op.MAX_REPEAT, op.MIN_REPEAT):
        return value[0] > 0 and _needs_more(value[2])
    return False
