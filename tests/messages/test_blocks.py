from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.blocks import (
    CLEARED_RESULT,
    MediaBlock,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    parse_block,
    parse_content,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = {
    "type": st.sampled_from(
        ["text", "thinking", "redacted_thinking", "image", "document", "tool_use", "tool_result", ""]
    )
    | JSON,
    "text": JSON,
    "id": JSON,
    "tool_use_id": JSON,
    "content": JSON,
    "source": JSON,
    "input": JSON,
    "data": JSON,
}
BLOCKS = st.fixed_dictionaries({}, optional=FIELDS)


def result(content: Any, **more: Any) -> ToolResultBlock:
    block = parse_block({"type": "tool_result", "tool_use_id": "t", "content": content, **more})
    assert isinstance(block, ToolResultBlock)
    return block


def test_text_content_is_one_text_block() -> None:
    (block,) = parse_content("hello")
    assert isinstance(block, TextBlock)
    assert block.text == "hello"


def test_no_content_is_no_block_and_one_object_is_one_block() -> None:
    assert parse_content(None) == ()
    assert parse_content({"type": "text", "text": "x"})[0].raw == {"type": "text", "text": "x"}


def test_a_bare_string_in_a_list_is_text() -> None:
    (block,) = parse_content(["hello"])
    assert isinstance(block, TextBlock)


def test_hidden_thinking_has_no_text_and_keeps_its_data() -> None:
    block = parse_block({"type": "redacted_thinking", "data": "QUJD"})
    assert isinstance(block, ThinkingBlock)
    assert (block.text, block.signature) == ("", "QUJD")


@pytest.mark.parametrize(("kind", "server"), [("tool_use", False), ("server_tool_use", True), ("mcp_tool_use", True)])
def test_calls_of_the_provider_itself_are_server_calls(kind: str, server: bool) -> None:
    block = parse_block({"type": kind, "id": "t", "name": "n", "input": {}})
    assert isinstance(block, ToolUseBlock)
    assert block.server is server


@pytest.mark.parametrize(
    ("kind", "server"), [("tool_result", False), ("web_search_tool_result", True), ("mcp_tool_result", True)]
)
def test_results_of_the_provider_itself_are_server_results(kind: str, server: bool) -> None:
    block = parse_block({"type": kind, "tool_use_id": "t", "content": []})
    assert isinstance(block, ToolResultBlock)
    assert block.server is server


def test_a_call_without_id_and_a_result_without_call_are_kept_as_they_are() -> None:
    for raw in ({"type": "tool_use", "name": "Read"}, {"type": "tool_result", "content": "x"}, {"type": "text"}, {}, 7):
        assert isinstance(parse_block(raw), OtherBlock)


def test_media_from_an_address_hold_no_data() -> None:
    block = parse_block({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}})
    assert isinstance(block, MediaBlock)
    assert block.data == ""
    assert isinstance(parse_block({"type": "image", "source": "broken"}), MediaBlock)


def test_a_results_text_is_its_text_parts() -> None:
    block = result([{"type": "text", "text": "a"}, {"type": "image", "source": {}}, {"type": "text", "text": "b"}])
    assert block.text == "a\nb"


def test_a_result_that_starts_with_the_mark_counts_as_cleared() -> None:
    assert result(CLEARED_RESULT).cleared
    assert result(f"{CLEARED_RESULT}\nmore").cleared
    assert result(f"exit code 1\n{CLEARED_RESULT}", is_error=True).cleared


def test_a_result_that_only_quotes_the_mark_is_not_cleared() -> None:
    assert not result(f"grep found:\n{CLEARED_RESULT}").cleared
    assert not result(f"say {CLEARED_RESULT}").cleared
    assert not result(f"one\ntwo\n{CLEARED_RESULT}", is_error=True).cleared


@given(BLOCKS)
def test_what_is_as_it_should_be_reads_as_anything_else_does(raw: dict[str, Any]) -> None:
    """A plain object is looked at in a shorter way first; any other mapping is not."""
    assert parse_block(raw) == parse_block(MappingProxyType(raw))


@given(BLOCKS)
def test_no_block_is_refused_and_each_keeps_its_json(raw: dict[str, Any]) -> None:
    assert parse_block(raw).raw == raw
