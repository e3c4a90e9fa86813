"""What arrives is what was sent: text that looks like JSON, nulls, surrogates, numbers that JSON cannot carry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client

from mcp_compact.errors import CallerError
from mcp_compact.server.context_tools import time_of
from mcp_compact.server.errors import MAX_DEPTH, checked, unwritable
from tests.server.talk import call, refused, user

LOOKS_LIKE_JSON = ('{"task": "x"}', "[1, 2]", "null", "true", "12", '"quoted"', "", " \n", "1e3", "{broken")


@pytest.mark.parametrize("text", LOOKS_LIKE_JSON)
async def test_a_memory_that_looks_like_json_stays_text_character_for_character(client: Client, text: str):
    await call(client, "append_messages", session_id="s", messages=[user("hi")])
    await call(client, "update_session_memory", session_id="s", content=text)
    assert (await call(client, "get_session_memory", session_id="s"))["content"] == text


@pytest.mark.parametrize("text", ["null", "true", "12", "[1]", '{"a": 1}', '"q"'])
async def test_ids_and_queries_that_look_like_json_stay_text(client: Client, text: str):
    stored = await call(client, "append_messages", session_id=text, messages=[user(f"find {text} here")])
    assert stored["session_id"] == text
    assert (await call(client, "search_messages", session_id=text, query=text))["hits"]


async def test_json_null_counts_as_left_out(client: Client):
    await call(
        client,
        "append_messages",
        session_id="s",
        messages=[user("hi")],
        model=None,
        context_window=None,
        overhead_tokens=None,
    )
    status = await call(client, "get_context_status", session_id=None)
    assert (status["session_id"], status["window_known"], status["overhead_tokens"]) == ("s", False, 0)
    await call(client, "compact_session", session_id=None, trigger=None, target_tokens=None, force=None, now=None)
    await call(client, "microcompact_tool_results", keep=None, older_than_minutes=None, media=None)
    await call(client, "search_messages", query="hi", limit=None, cursor=None)


async def test_values_of_the_wrong_kind_are_named(client: Client):
    assert "limit" in await refused(client, "search_messages", query="x", limit="many")
    assert "query" in await refused(client, "search_messages", query=["x"])
    assert "content" in await refused(client, "update_session_memory")


async def test_a_misspelt_parameter_is_named_and_a_foreign_one_is_ignored(client: Client):
    await call(client, "append_messages", session_id="s", messages=[user("hi")], wait_for_previous=True)
    text = await refused(client, "compact_session", session_id="s", target=5_000)
    assert "unknown_parameter: compact_session has no parameter 'target'. Did you mean target_tokens?" in text
    assert "Did you mean session_id?" in await refused(client, "get_context_status", sessionId="s")


async def test_lone_surrogates_are_replaced_wherever_they_stand(client: Client):
    messages = [user("half \ud83d emoji"), {"role": "assistant", "content": [{"type": "text", "text": "tail \udc00"}]}]
    await call(client, "append_messages", session_id="s\ud83d", messages=messages)
    page = await call(client, "get_messages_after_boundary", session_id="s\ufffd")
    assert "half \ufffd emoji" in json.dumps(page, ensure_ascii=False)
    await call(client, "search_messages", session_id="s\ufffd", query="half \ud83d")
    await call(client, "update_session_memory", session_id="s\ufffd", content="memory \ud83d")
    memory = await call(client, "get_session_memory", session_id="s\ufffd")
    assert memory["content"] == "memory \ufffd"
    assert "unknown_session" in await refused(client, "get_context_status", session_id="\ud83d")
    assert "not_found" in await refused(client, "get_original", session_id="s\ufffd", id="\ud83d")


async def test_nul_and_control_characters_come_back_and_hide_nothing(client: Client):
    text = "before\0after needle \x1b[31m\x07"
    await call(client, "append_messages", session_id="s", messages=[user(text)])
    page = await call(client, "get_messages_after_boundary", session_id="s")
    assert json.dumps(text) in json.dumps(page["messages"])
    assert (await call(client, "search_messages", session_id="s", query="needle"))["hits"]


@pytest.mark.parametrize("text", ["[NaN]", "[Infinity]", '{"content": -Infinity}', "[" + "9" * 400 + "]"])
async def test_numbers_that_json_cannot_carry_are_refused(client: Client, text: str):
    answer = await refused(client, "append_messages", session_id="s", messages=text)
    assert "bad_arguments: " in answer


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("compact_session", {"target_tokens": "secret words"}, "target_tokens"),
        ("get_original", {"session_id": "s"}, "id"),
        ("search_messages", {"query": ["secret words"]}, "query"),
        ("submit_summary", {"compaction_id": {"a": "secret words"}}, "summary"),
        ("get_context_status", {"session_id": 5}, "session_id"),
    ],
)
async def test_arguments_of_a_wrong_kind_are_named_and_their_values_are_not_repeated(
    client: Client, tool: str, arguments: dict[str, Any], named: str
):
    answer = await refused(client, tool, **arguments)
    assert answer.startswith("bad_arguments: ")
    assert f"{named}: " in answer
    assert "secret words" not in answer
    assert "pydantic" not in answer
    assert "Error executing" not in answer


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


async def test_json_that_is_nested_too_deeply_is_refused_and_what_is_not_comes_back(client: Client):
    for levels in (MAX_DEPTH, 300, 900):
        call_ = {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "X", "input": {"v": nested(levels)}}],
        }
        text = await refused(client, "append_messages", session_id="s", messages=json.dumps([call_]))
        assert "nested deeper" in text or "bad_messages" in text
    fine = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "X", "input": {"v": nested(100)}}]}
    await call(client, "append_messages", session_id="s", messages=[user("go"), fine])
    page = await call(client, "get_messages_after_boundary", session_id="s")
    assert json.dumps(nested(100)) in json.dumps(page)


def test_a_value_that_everybody_can_read_has_no_fault():
    assert unwritable({"a": [1, 2.5, "x", None, True], "b": {"c": 2**1000}}) == ""
    assert unwritable(nested(MAX_DEPTH - 1)) == ""
    assert "deeper" in unwritable(nested(MAX_DEPTH))


def test_the_depth_of_the_arguments_is_told_before_anything_is_walked_into():
    with pytest.raises(CallerError, match="nested deeper"):
        checked({"messages": nested(100_000)})


def test_times_are_taken_as_iso_or_as_milliseconds():
    assert time_of("") is None
    assert time_of("2026-01-01T00:00:00Z") == time_of("1767225600000") == time_of(" 1767225600 ") == 1_767_225_600_000
    for wrong in ("soon", "null", "9" * 40, "²", "-5"):
        with pytest.raises(CallerError, match="no time"):
            time_of(wrong)
