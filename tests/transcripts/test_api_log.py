from __future__ import annotations

import json
from typing import Any

from mcp_compact.library import compact_transcript
from mcp_compact.transcripts.api_log import streamed
from tests.transcripts.foreign import jsonl, read, records, spoken

USER = {"role": "user", "content": "Look."}
ANSWER = {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "id": "msg_1", "model": "claude-x"}


def pair(messages, answer, **more):
    return {"request": {"model": "claude-x", "messages": messages, **more}, "response": answer}


def test_what_a_request_repeats_is_taken_once():
    again = {"role": "assistant", "content": [{"type": "text", "text": "Done.", "citations": None}]}
    more = {"role": "user", "content": [{"type": "text", "text": "More."}]}
    lines = [pair([USER], ANSWER, system="Be brief."), pair([USER, again, more], {**ANSWER, "id": "msg_2"})]
    found = records("api-log", jsonl(lines))
    assert spoken(found) == [("user", "Look."), ("assistant", "Done."), ("user", "More."), ("assistant", "Done.")]
    assert found[0].text == "Be brief."


def test_a_request_that_says_something_else_begins_a_branch():
    lines = [pair([USER], ANSWER), pair([{"role": "user", "content": "Another."}], {**ANSWER, "id": "msg_2"})]
    data = jsonl(lines)
    assert len([record for record in records("api-log", data) if record.is_message]) == 4
    shown = [m["content"] for m in compact_transcript([data], output="anthropic").messages]
    assert shown == ["Another.", ANSWER["content"]]


def test_the_provider_s_compaction_is_a_boundary():
    content = [{"type": "compaction", "content": "They looked."}, {"type": "text", "text": "Done."}]
    shown = json.dumps(
        compact_transcript([jsonl([pair([USER], {**ANSWER, "content": content})])], output="anthropic").messages
    )
    assert "They looked." in shown
    assert "Look." not in shown


def test_a_stream_is_put_together():
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"role": "assistant", "id": "m", "content": [], "usage": {"input_tokens": 9}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Do"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ne."}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    assert streamed(text) == {
        "role": "assistant", "id": "m", "stop_reason": "tool_use", "usage": {"input_tokens": 9, "output_tokens": 4},
        "content": [{"type": "text", "text": "Done."}, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}],
    }  # fmt: skip
    found = records("api-log", jsonl([pair([USER], text)]))
    assert found[-1].calls[0].input == {"a": 1}
    assert streamed("data: {\n\nevent: ping\n") is None


def test_answers_that_are_no_messages_are_kept():
    reader, parsed = read("api-log", jsonl([pair([USER], {"input_tokens": 571})]))
    assert json.loads(parsed[-1].record.body) == {"response": {"input_tokens": 571}}
    assert not reader.report.unknown_types
