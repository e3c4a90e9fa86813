from __future__ import annotations

import pytest

from mcp_compact.library import compact_transcript
from mcp_compact.messages.words import users_words
from tests.transcripts.foreign import document, message_of, read, records, sent


def session(*messages):
    return document({"version": "1", "sessionId": "s", "messages": messages, "system_prompt": "You are Cline."})


def said(role, *blocks, **more):
    return {"role": role, "content": list(blocks), "ts": 1_783_463_091_542, **more}


def text(words):
    return {"type": "text", "text": words}


def test_usage_model_and_time_are_kept():
    used = {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 90}
    found = records(
        "cline", session(said("user", text("a")), said("assistant", text("b"), metrics=used, modelInfo={"id": "m"}))
    )
    answer = found[-1]
    assert (sent(answer), message_of(answer).model, answer.at_ms) == (100, "m", 1_783_463_091_542)


def test_an_attached_file_is_text_that_nobody_typed_as_words_of_a_rule():
    part = {"type": "file", "path": "/app/a.ts", "content": "let x = 1"}
    found = records("cline", session(said("user", text("Look."), part)))
    assert found[-1].text == "Look.\n[Attached: /app/a.ts]\nlet x = 1"
    assert "Look." in users_words(found[-1])


def test_results_that_are_no_blocks_become_text_and_keep_their_ids():
    call = {"type": "tool_use", "id": "c", "name": "read_files", "input": {"files": []}}
    given = {
        "type": "tool_result",
        "tool_use_id": "c",
        "name": "read_files",
        "content": [{"query": "a", "result": "x"}],
    }
    found = records("cline", session(said("user", text("a")), said("assistant", call), said("user", given)))
    assert found[-1].results[0].text == '[{"query": "a", "result": "x"}]'
    assert set(message_of(found[-1]).content[0]) == {"type", "tool_use_id", "content"}


def test_a_summary_stands_for_all_before_it():
    told = {"kind": "compaction_summary", "summary": "S", "tokensBefore": 90_000}
    data = session(
        said("user", text("old")), said("user", text("Summary: S"), metadata=told), said("user", text("new"))
    )
    result = compact_transcript([data], output="anthropic")
    assert [m["content"][0]["text"] for m in result.messages] == ["Summary: S", "new"]
    boundary = next(record for record in records("cline", data) if record.subtype == "compact_boundary")
    assert boundary.raw["compactMetadata"]["preTokens"] == 90_000


def test_a_notice_that_messages_left_keeps_those_before_it():
    told = {"kind": "compaction", "reason": "truncated", "messagesRemoved": 12, "usageBefore": 80_000}
    data = session(
        said("user", text("first"), id="m1"),
        said("user", text("[12 left]"), metadata=told, id="m2"),
        said("user", text("new")),
    )
    shown = [block["text"] for m in compact_transcript([data], output="anthropic").messages for block in m["content"]]
    assert sorted(shown) == ["[12 left]", "first", "new"]


def test_parts_that_are_not_known_are_counted():
    reader, _ = read("cline", session(said("user", text("a"), {"type": "novel"}), {"role": "narrator", "content": "x"}))
    assert reader.report.unknown_types == {"part novel": 1, "narrator": 1}


@pytest.mark.parametrize("start", ["agentic", "session"])
def test_real_sessions_are_read_to_the_last_block(shared, start):
    file = next(file for file in (shared / "transcripts" / "cline").iterdir() if f"session_{start}." in file.name)
    reader, parsed = read("cline", file.read_bytes())
    calls = {call.id for item in parsed for call in item.record.calls}
    assert calls == {result.tool_use_id for item in parsed for result in item.record.results}
    assert not reader.report.unknown_types
    assert reader.facts().session_id == "1784094124598_rruoq"
