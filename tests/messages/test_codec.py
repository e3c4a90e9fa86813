from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.codec import (
    body_hash,
    canonical,
    clean,
    decode_message,
    decode_usage,
    format_time,
    parse_time,
    well_formed,
)
from mcp_compact.messages.message import Usage

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_canonical_json_is_read_back_whole_even_with_half_a_character(value: Any) -> None:
    assert json.loads(canonical(value)) == json.loads(json.dumps(value))


def test_canonical_json_has_no_blanks_and_escapes_only_where_it_must() -> None:
    assert canonical({"a": ["é", 1]}) == '{"a":["é",1]}'.encode()
    assert canonical({"a": "é\ud83d"}) == b'{"a":"\\u00e9\\ud83d"}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"deep": [float("-inf")]}])
def test_what_is_no_json_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical(value)


@given(ANY_TEXT)
def test_well_formed_text_can_be_written_and_is_left_alone_where_it_was_well_formed(text: str) -> None:
    mended = well_formed(text)
    assert mended.encode("utf-8").decode() == mended
    assert well_formed(mended) == mended
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert mended == text


def test_half_a_character_is_replaced_and_two_halves_make_one() -> None:
    assert well_formed("half \ud83d emoji") == "half \ufffd emoji"
    assert well_formed("\ud83d\ude00") == "😀"
    assert well_formed("\ufeffbom") == "\ufeffbom"


@given(JSON)
def test_cleaning_reaches_every_text_and_changes_nothing_else(value: Any) -> None:
    cleaned = clean(value)
    json.dumps(cleaned, ensure_ascii=False).encode()
    assert clean(cleaned) == cleaned


def test_cleaning_makes_lists_of_tuples_and_mends_keys() -> None:
    assert clean({"\ud83d": ("a\udc00", 1, None)}) == {"\ufffd": ["a\ufffd", 1, None]}


def test_a_hash_tells_bodies_apart() -> None:
    assert body_hash(b"a") == body_hash(b"a") != body_hash(b"b")
    assert len(body_hash(b"")) == 16


def test_a_message_is_decoded_with_what_it_holds() -> None:
    raw = {
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "text", "text": "x"}],
        "model": "claude-opus-4-7",
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    message = decode_message(raw)
    assert message is not None
    assert (message.id, message.role, message.model, message.stop_reason) == (
        "m1",
        "assistant",
        "claude-opus-4-7",
        "end_turn",
    )
    assert message.usage == Usage(3, 2)
    assert message.content == raw["content"]


@pytest.mark.parametrize("raw", [None, "text", ["list"], 3])
def test_what_is_no_object_is_no_message(raw: object) -> None:
    assert decode_message(raw) is None


def test_fields_of_the_wrong_type_are_left_out() -> None:
    message = decode_message({"id": 5, "role": 7, "model": ["x"], "content": "hi", "usage": "none"}, "user")
    assert message is not None
    assert (message.id, message.role, message.model, message.usage) == (None, "user", None, None)
    assert decode_message({"id": ""}) is not None


def test_usage_sums_what_was_sent_fresh_and_cached() -> None:
    raw = {
        "input_tokens": 2,
        "cache_read_input_tokens": 185_000,
        "cache_creation_input_tokens": 900,
        "output_tokens": 50,
    }
    assert decode_usage(raw) == Usage(185_902, 50)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": True},
        {"input_tokens": -5},
        {"input_tokens": "9"},
    ],
)
def test_usage_that_counted_nothing_is_none(raw: object) -> None:
    assert decode_usage(raw) is None


@given(st.integers(0, 4_102_444_800_000))
def test_a_written_time_is_read_back_to_the_millisecond(at_ms: int) -> None:
    assert parse_time(format_time(at_ms)) == at_ms


def test_times_are_read_in_the_forms_that_transcripts_use() -> None:
    at = 1_767_225_600_000
    assert parse_time("2026-01-01T00:00:00Z") == at
    assert parse_time("2026-01-01T01:00:00.000+01:00") == at
    assert parse_time("2026-01-01T00:00:00") == at
    assert parse_time(at) == at
    assert parse_time(at // 1000) == at
    assert parse_time(1_767_225_600.5) == at + 500
    assert format_time(at) == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "value", ["", "yesterday", None, True, 0, -5, 1e15, float("nan"), [1], "0001-01-01T00:00:00+14:00"]
)
def test_what_is_no_usable_time_is_none(value: object) -> None:
    assert parse_time(value) is None


@given(st.datetimes().map(lambda at: at.isoformat()) | st.floats() | st.integers())
def test_every_time_that_is_read_can_be_written(value: object) -> None:
    at_ms = parse_time(value)
    if at_ms is not None:
        assert format_time(at_ms).endswith("Z")


def test_a_deep_value_is_cleaned_too() -> None:
    value: Any = "half \ud83d"
    for _ in range(700):
        value = [value]
    cleaned = clean(value)
    for _ in range(700):
        (cleaned,) = cleaned
    assert cleaned == "half \ufffd"
