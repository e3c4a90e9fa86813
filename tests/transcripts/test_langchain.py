from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_compact.library import compact_transcript
from mcp_compact.messages.blocks import MediaBlock
from tests.transcripts.foreign import document, jsonl, pairs, read, records, spoken

# As langchain_core writes the same five messages: messages_to_dict, dumpd, and model_dump.
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
CALL = {"name": "ls", "args": {"p": 1}, "id": "c1", "type": "tool_call"}
FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("SystemMessage", {"content": "sys", "additional_kwargs": {}, "type": "system", "name": None, "id": None}),
    ("HumanMessage", {"content": [{"type": "text", "text": "hi"}, IMAGE], "type": "human", "id": "h1"}),
    (
        "AIMessage",
        {
            "content": [
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"p": 1}},
            ],
            "response_metadata": {"model_name": "gpt-5"},
            "type": "ai",
            "id": "run-1",
            "tool_calls": [CALL],
            "invalid_tool_calls": [],
            "usage_metadata": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
        },
    ),
    ("ToolMessage", {"content": "out", "type": "tool", "tool_call_id": "c1", "artifact": None, "status": "error"}),
]
FORMS = {
    "dict": [{"type": own["type"], "data": own} for _, own in FIELDS],
    "lc": [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": own}
        for name, own in FIELDS
    ],
    "plain": [own for _, own in FIELDS],
    "state": {"messages": [own for _, own in FIELDS], "thread_id": "t"},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form):
    reader, parsed = read("langchain", document(FORMS[form]))
    found = [item.record for item in parsed]
    assert spoken(found) == [("user", "hi"), ("assistant", "look")]
    assert pairs(found) == [("ls", {"p": 1}, "out", True)]
    assert [block.data for record in found for block in record.blocks if isinstance(block, MediaBlock)] == ["QUJD"]
    assert (reader.facts().model, reader.facts().max_context_tokens) == ("gpt-5", 10)
    assert not reader.report.unknown_types


def test_older_answers_keep_their_calls_where_the_provider_had_them():
    asked = {"tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": '{"p": 1}'}, "type": "function"}]}
    old = [
        {"type": "ai", "content": "", "additional_kwargs": asked},
        {"type": "tool", "content": "x", "tool_call_id": "c1"},
    ]
    assert pairs(records("langchain", document(old))) == [("ls", {"p": 1}, "x", False)]


def test_the_middleware_s_summary_is_a_boundary():
    summary = {
        "type": "human",
        "content": "Summary: S",
        "additional_kwargs": {"lc_source": "summarization"},
        "id": "h2",
    }
    lines = [{"type": "human", "content": "old", "id": "h1"}, summary, {"type": "human", "content": "new", "id": "h3"}]
    shown = json.dumps(compact_transcript([jsonl(lines)], output="anthropic").messages)
    assert "Summary: S" in shown
    assert "new" in shown
    assert "old" not in shown


def test_messages_of_chat_and_function_types():
    lines = [
        {"type": "human", "content": "a"},
        {"type": "chat", "role": "assistant", "content": "b"},
        {"type": "function", "name": "f", "content": "c"},
        {"type": "remove", "id": "h1", "content": ""},
        {"type": "novel", "content": "d"},
    ]
    reader, parsed = read("langchain", document(lines))
    assert spoken([item.record for item in parsed]) == [("user", "a"), ("assistant", "b"), ("user", "[Result of f]\nc")]
    assert reader.report.unknown_types == {"novel": 1}
