"""Blocks with fields that no provider takes are put right in the view, or quoted; the record stays as it came."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_compact.messages.blocks import parse_block
from mcp_compact.messages.shapes import fitting
from mcp_compact.messages.valid import Turn, valid_turns

CALL = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


@pytest.mark.parametrize(
    "raw",
    [
        CALL,
        RESULT,
        IMAGE,
        {**RESULT, "content": [{"type": "text", "text": "a"}, IMAGE]},
        {"type": "tool_result", "tool_use_id": "t"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "s"},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"type": "web_search_tool_result_error"}},
        {"type": "container_upload", "file_id": "f"},
    ],
)
def test_a_block_as_it_should_be_stays_itself(raw: dict[str, Any]):
    block = parse_block(raw)
    assert fitting(block) is block


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({**CALL, "id": 7}, {**CALL, "id": "7"}),
        ({**CALL, "input": None}, {**CALL, "input": {}}),
        ({**CALL, "input": "ls"}, {**CALL, "input": {"arguments": "ls"}}),
        ({**RESULT, "tool_use_id": 7}, {**RESULT, "tool_use_id": "7"}),
        ({**RESULT, "content": {"out": "a"}}, {**RESULT, "content": '{"out":"a"}'}),
        ({**RESULT, "content": ["a", None]}, {**RESULT, "content": [_text := {"type": "text", "text": "a"}, {"type": "text", "text": "null"}]}),
        ({**RESULT, "content": [_text, CALL]}, {**RESULT, "content": [_text, {"type": "text", "text": '{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"a"}}'}]}),
    ],
)  # fmt: skip
def test_what_can_be_put_right_is(raw: dict[str, Any], expected: dict[str, Any]):
    block = fitting(parse_block(raw))
    assert block is not None
    assert block.raw == expected


@pytest.mark.parametrize(
    "raw",
    [
        {**CALL, "id": {"a": 1}},
        {**CALL, "name": None},
        {**RESULT, "tool_use_id": ["t"]},
        {"type": "thinking", "thinking": 5, "signature": "s"},
        {"type": "thinking", "thinking": "hm", "signature": 5},
        {"type": "thinking", "signature": "s"},
        {"type": "redacted_thinking"},
        {"type": "image"},
        {"type": "image", "source": {"type": None}},
        {"type": "text", "text": 5},
        {"type": {"a": 1}},
    ],
)
def test_the_rest_is_quoted(raw: dict[str, Any]):
    assert fitting(parse_block(raw)) is None
    role = "user" if raw["type"] in ("tool_result", "image") else "assistant"
    turns, warnings = valid_turns([Turn(role, (parse_block(raw),))])
    assert [block.raw["type"] for block in turns[-1].blocks] == ["text"]
    assert "quoted" in warnings[0]


def test_a_call_whose_id_is_a_number_still_has_its_result():
    call, result = parse_block({**CALL, "id": 7}), parse_block({**RESULT, "tool_use_id": 7})
    turns, warnings = valid_turns(
        [Turn("user", (parse_block("go"),)), Turn("assistant", (call,)), Turn("user", (result,))]
    )
    assert [turn.blocks[0].raw.get("id", turn.blocks[0].raw.get("tool_use_id")) for turn in turns[1:]] == ["7", "7"]
    assert len(warnings) == 2


def test_what_the_other_side_says_is_quoted_or_left_out():
    """A result in an answer, a call, a server's result or thinking in a turn of the user."""
    server = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    asked = {**CALL, "type": "server_tool_use", "id": "s"}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    wrong = [parse_block(raw) for raw in (CALL, asked, server, thinking)]
    turns, warnings = valid_turns([Turn("user", tuple(wrong)), Turn("assistant", (parse_block(RESULT),))])
    assert [[block.raw["type"] for block in turn.blocks] for turn in turns] == [["text"] * 3, ["text"]]
    assert len(warnings) == 5
