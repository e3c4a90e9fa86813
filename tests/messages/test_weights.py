from __future__ import annotations

from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.blocks import MediaBlock, parse_block, parse_content
from mcp_compact.messages.weights import (
    CLAUDE,
    CLAUDE_NEW,
    GEMINI,
    IMAGE_MAX_TOKENS,
    NOTHING,
    OPENAI,
    UNKNOWN,
    UNKNOWN_MEDIA_TOKENS,
    Family,
    Weight,
    countable,
    estimate_all,
    estimate_units,
    family_of,
    image_tokens,
    media_bytes,
    media_tokens,
    weigh,
)

FAMILIES = st.sampled_from([CLAUDE, CLAUDE_NEW, OPENAI, GEMINI, UNKNOWN])
WEIGHTS = st.builds(Weight, st.integers(0, 10**9), st.integers(0, 99), st.integers(0, 10**6), st.integers(0, 99))
PLAIN = Family("plain", 1000, 0)


def weight_of(content: Any) -> Weight:
    return weigh([parse_content(content)])[0]


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-4-6", CLAUDE),
        ("claude-3-5-sonnet-20241022", CLAUDE),
        ("claude-sonnet-4-20250514", CLAUDE),
        ("claude-sonnet-4@20250514", CLAUDE),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", CLAUDE),
        ("us.anthropic.claude-sonnet-4-20250514-v7:0", CLAUDE),
        ("claude-2.1", CLAUDE),
        ("claude-instant-v1", CLAUDE),
        ("claude", CLAUDE),
        ("claude-²", CLAUDE),
        ("claude-opus-4-7", CLAUDE_NEW),
        ("claude-opus-4.7", CLAUDE_NEW),
        ("claude-opus-4-7[1m]", CLAUDE_NEW),
        ("anthropic/claude-opus-4-10", CLAUDE_NEW),
        ("Claude-Sonnet-5", CLAUDE_NEW),
        ("gpt-5.1", OPENAI),
        ("o3-mini", OPENAI),
        ("openai/gpt-5", OPENAI),
        ("gemini-2.5-pro", GEMINI),
        ("models/gemini-3", GEMINI),
        ("llama-4", UNKNOWN),
        ("", UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_a_models_name_tells_its_family(model: str | None, family: Family) -> None:
    assert family_of(model) is family


@given(st.text(max_size=30).map("claude-".__add__))
def test_no_name_of_a_model_is_too_odd(model: str) -> None:
    assert family_of(model).known


def test_an_unknown_model_is_said_to_be_unknown() -> None:
    assert not family_of("something").known


@given(FAMILIES, st.integers(-5, 10**6))
def test_units_that_fit_into_tokens_never_weigh_more(family: Family, tokens: int) -> None:
    assert family.tokens(Weight(units=family.units(tokens))) <= max(0, tokens)


@given(FAMILIES, WEIGHTS, WEIGHTS)
def test_weights_add_up_and_a_part_never_weighs_more_than_the_whole(family: Family, one: Weight, two: Weight) -> None:
    assert one + two - two == one
    assert one + NOTHING == one
    assert family.tokens(one) <= family.tokens(one + two) <= family.tokens(one) + family.tokens(two)


@given(FAMILIES, WEIGHTS, WEIGHTS)
def test_what_frees_a_token_makes_any_context_smaller(family: Family, rest: Weight, part: Weight) -> None:
    freed = part - Weight(units=500, media=1)
    whole = family.tokens(rest + part)
    if family.frees(freed):
        assert family.tokens(rest + part - freed) < whole
    else:
        assert family.tokens(rest + part - freed) >= whole - 1


def test_tokens_are_rounded_up_and_calls_messages_and_media_are_added() -> None:
    assert PLAIN.tokens(Weight(units=1)) == 1
    assert CLAUDE.tokens(Weight(units=1000, results=2, media=7)) == 2 + 2 * 89 + 7
    assert OPENAI.tokens(Weight(messages=3)) == 12


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=50))
def test_an_estimate_never_raises_and_never_counts_text_as_nothing(text: str) -> None:
    assert (estimate_units(text) > 0) == bool(text)
    assert estimate_units(text + text) == 2 * estimate_units(text)
    assert estimate_all([text, ""]) == [estimate_units(text), 0]


def test_text_without_spaces_between_words_costs_more_a_character_than_english() -> None:
    assert PLAIN.tokens(Weight(units=estimate_units("请把这个函数改成异步的。" * 100))) in range(600, 1500)
    assert PLAIN.tokens(Weight(units=estimate_units("word " * 1000))) in range(1000, 2000)


def test_inputs_thinking_and_signatures_of_hidden_thinking_count() -> None:
    call = weight_of([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x" * 4000}}])
    shown = weight_of([{"type": "thinking", "thinking": "x" * 4000, "signature": "S"}])
    hidden = weight_of([{"type": "thinking", "thinking": "", "signature": "S" * 4000}])
    redacted = weight_of([{"type": "redacted_thinking", "data": "S" * 4000}])
    assert min(call.units, shown.units) >= 4000 * 293
    assert hidden.units == redacted.units == 4000 * 230


def test_a_result_counts_its_parts_and_the_call() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org"}}
    weight = weight_of(
        [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "abc"}, image]}]
    )
    assert weight == Weight(units=3 * 293, results=1, media=UNKNOWN_MEDIA_TOKENS, messages=1)


def test_what_is_not_known_counts_by_its_json() -> None:
    texts, rest = countable(parse_content([{"type": "novelty", "value": "é"}]))
    assert texts == ['{"type":"novelty","value":"é"}']
    assert rest == NOTHING


def test_base64_is_never_counted_as_text() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" * 100_000}
    assert weight_of([{"type": "document", "source": source}]) == Weight(media=UNKNOWN_MEDIA_TOKENS, messages=1)


def test_a_document_that_is_text_counts_by_its_text() -> None:
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x" * 100_000}}
    blocks = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x" * 100_000}]}}
    assert weight_of([plain]).media == weight_of([blocks]).media == ceil(100_000 * 293 / 1000)
    short = {"type": "document", "source": {"type": "text", "data": "hi"}}
    assert weight_of([short]).media == 1


def test_an_image_costs_by_its_size_and_never_more_than_the_limit() -> None:
    assert image_tokens(28, 28) == 1
    assert image_tokens(29, 28) == 2
    assert image_tokens(1, 1) == 1
    assert image_tokens(100_000, 100_000) == IMAGE_MAX_TOKENS


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_every_image_costs_something_below_the_limit(width: int, height: int) -> None:
    assert 1 <= image_tokens(width, height) <= IMAGE_MAX_TOKENS


def test_an_image_that_cannot_be_measured_costs_the_fixed_number() -> None:
    broken = parse_block(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 9}}
    )
    assert isinstance(broken, MediaBlock)
    assert media_tokens(broken) == UNKNOWN_MEDIA_TOKENS


def test_the_counter_is_asked_once_for_all_messages() -> None:
    asked: list[list[str]] = []

    def count(texts: Any) -> list[int]:
        asked.append(list(texts))
        return [10] * len(texts)

    weights = weigh([parse_content("a"), (), parse_content(["b", "c"])], count)
    assert asked == [["a", "b", "c"]]
    assert [weight.units for weight in weights] == [10, 0, 20]


@pytest.mark.parametrize(
    ("block", "size"),
    [
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 9}}, 72),
        ({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}, 0),
        ({"type": "image", "source": {"type": "file", "file_id": "f1"}}, 0),
        ({"type": "image"}, 0),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}}, 4),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ab\u00e9\ud83d"}}, 7),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "abc"}]}}, 3),
    ],
)
def test_media_take_their_base64_or_their_text_in_a_request(block: dict[str, Any], size: int) -> None:
    parsed = parse_block(block)
    assert isinstance(parsed, MediaBlock)
    assert media_bytes(parsed) == size
