from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import parse_content
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.codex_out import session_items
from mcp_compact.transcripts.facts import SessionFacts

NOW_MS = 1_767_225_600_000


def response_items(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    lines = session_items(turns, SessionFacts(), "id-1", NOW_MS)
    return [line["payload"] for line in lines if line["type"] == "response_item"]


def turns():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "é.py"}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "no such file"}, image],
        "is_error": True,
    }
    return [
        Turn("user", parse_content([{"type": "text", "text": "read it"}, image])),
        Turn("assistant", parse_content([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I do"}, call])),
        Turn("user", parse_content([result, {"type": "text", "text": "and now?"}])),
    ]  # fmt: skip


def test_text_calls_and_results_become_items_in_their_order():
    items = response_items(turns())
    assert [(item["type"], item.get("role", "")) for item in items] == [
        ("message", "user"), ("message", "assistant"), ("function_call", ""), ("function_call_output", ""), ("message", "user"),
    ]  # fmt: skip
    assert [part["type"] for part in items[0]["content"]] == ["input_text", "input_image"]
    assert items[1]["content"] == [{"type": "output_text", "text": "I do"}]
    assert json.loads(items[2]["arguments"]) == {"file_path": "é.py"}
    assert (items[2]["call_id"], items[3]["call_id"]) == ("t1", "t1")
    assert items[3]["output"] == "[error]\nno such file\n[image]"


def test_a_session_begins_with_its_head_and_shows_what_was_said():
    facts = SessionFacts(cwd="/home/me/app")
    lines = list(session_items(turns(), facts, "id-1", NOW_MS, "mine"))
    head = lines[0]
    assert head["type"] == "session_meta"
    assert {key: head["payload"][key] for key in ("id", "cwd", "model_provider")} == {
        "id": "id-1", "cwd": "/home/me/app", "model_provider": "mine",
    }  # fmt: skip
    events = [line["payload"]["message"] for line in lines if line["type"] == "event_msg"]
    assert events == ["read it", "I do", "and now?"]
    assert {line["type"] for line in lines[1:]} == {"event_msg", "response_item"}


def test_images_go_by_their_address_and_thinking_alone_is_nothing():
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    stored = {"type": "image", "source": {"type": "file", "file_id": "f1"}}
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    items = response_items([Turn("user", parse_content([linked, stored])), Turn("assistant", parse_content(thought))])
    assert [item["content"] for item in items] == [
        [{"type": "input_image", "image_url": "https://example.org/a.png"}, {"type": "input_text", "text": "[image]"}]
    ]


def test_what_codex_has_no_item_for_is_quoted():
    odd = {"type": "mystery", "value": [1, 2]}
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}
    (item,) = response_items([Turn("user", parse_content([odd, document]))])
    assert [part["text"] for part in item["content"]] == [json.dumps(odd), "[document]"]
