from __future__ import annotations

import json

from mcp_compact.cli.demo_checks import forgotten_words, left_result, result_in_file
from mcp_compact.messages.blocks import CLEARED_RESULT

CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}}


def result(text, call="t1"):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}


BEFORE = [
    {"role": "user", "content": "Look into parse_header, please."},
    {"role": "assistant", "content": [CALL]},
    result("def other_name(): pass\nValueError in decode_frame: bad data\ndeadbeef12345678_00"),
]


def test_words_that_left_are_found_telling_lines_first():
    after = [{"role": "user", "content": "Look into parse_header, please."}]
    words = forgotten_words(BEFORE, after, 10)
    assert words[0] == "decode_frame"
    assert "other_name" in words
    assert "parse_header" not in words
    assert not any("deadbeef" in word for word in words)


def test_nothing_is_forgotten_where_everything_stayed():
    assert forgotten_words(BEFORE, BEFORE, 10) == []
    assert left_result(BEFORE, BEFORE) == ""


def test_a_result_that_left_or_was_cleared_is_found():
    assert left_result(BEFORE, BEFORE[:1]) == "t1"
    assert left_result(BEFORE, [*BEFORE[:2], result(f"{CLEARED_RESULT}\nhint")]) == "t1"


def test_the_largest_result_is_taken_but_none_beyond_the_limit():
    messages = [result("small", "a"), result("larger text", "b"), result("x" * 300_000, "c")]
    assert left_result(messages, []) == "b"


def test_the_transcripts_own_text_is_found_in_lines_and_in_documents(tmp_path):
    parts = [{"type": "text", "text": "one"}, {"type": "image", "source": {}}, {"type": "text", "text": "two"}]
    lines, document = tmp_path / "a.jsonl", tmp_path / "b.json"
    lines.write_text("\n".join(json.dumps({"message": item}) for item in [BEFORE[1], result(parts)]))
    document.write_text(json.dumps({"messages": [BEFORE[1], result("whole")]}, indent=2))
    assert result_in_file(lines, "t1") == "one\ntwo"
    assert result_in_file(document, "t1") == "whole"
    assert result_in_file(lines, "t2") is None
