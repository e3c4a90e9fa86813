from __future__ import annotations

from mcp_compact.messages.blocks import MediaBlock
from tests.transcripts.foreign import document, jsonl, pairs, read, records, spoken

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}


def test_a_request_with_its_response_is_one_conversation():
    response = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5.1",
        "output": [ANSWER],
        "usage": {"input_tokens": 9},
    }
    data = document(
        {"request": {"model": "gpt-5", "instructions": "Be brief.", "input": "Look."}, "response": response}
    )
    reader, parsed = read("responses", data)
    assert spoken([item.record for item in parsed]) == [("user", "Look."), ("assistant", "Done.")]
    assert (reader.facts().model, reader.facts().max_context_tokens) == ("gpt-5.1", 9)
    assert parsed[0].record.text == "Be brief."


def test_a_list_and_lines_of_items_say_the_same():
    items = [USER, ANSWER]
    assert spoken(records("responses", document(items))) == spoken(records("responses", jsonl(items)))


def test_results_may_come_in_any_order_and_as_parts():
    items = [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin"},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "1"}]},
    ]
    assert pairs(records("responses", document(items))) == [
        ("f", {}, "1", False), ("apply_patch", {"input": "*** Begin"}, "ok", False),
    ]  # fmt: skip


def test_calls_that_the_provider_answered_are_calls_with_results():
    items = [
        {
            "type": "mcp_call",
            "id": "m1",
            "server_label": "docs",
            "name": "ask",
            "arguments": '{"q": 1}',
            "output": "42",
        },
        {"type": "mcp_call", "id": "m2", "server_label": "docs", "name": "ask", "arguments": "{}", "error": "down"},
        {"type": "code_interpreter_call", "id": "i1", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "file_search_call", "id": "f1", "queries": ["x"], "results": None},
    ]
    found = records("responses", document(items))
    assert pairs(found) == [
        ("mcp__docs__ask", {"q": 1}, "42", False),
        ("mcp__docs__ask", {}, "down", True),
        ("code_interpreter", {"code": "1+1"}, '[{"type": "logs", "logs": "2"}]', False),
    ]
    assert len([call for record in found for call in record.calls]) == 4


def test_calls_of_the_provider_s_own_tools_find_their_outputs():
    items = [
        {"type": "local_shell_call", "id": "x", "call_id": "c1", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "c1", "output": "a"},
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "b", "stderr": ""}]},
        {"type": "computer_call", "call_id": "c3", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "c3", "output": {"image_url": "data:image/png;base64,QUJD"}},
    ]
    found = records("responses", document(items))
    assert [(name, text) for name, _, text, _ in pairs(found)] == [
        ("local_shell", "a"),
        ("shell", "b"),
        ("computer", ""),
    ]
    assert isinstance(found[-1].results[0].parts[0], MediaBlock)


def test_what_only_the_provider_can_read_is_kept_and_what_is_not_known_counted():
    items = [USER, {"type": "compaction", "id": "k", "encrypted_content": "x"}, {"type": "novel_call", "id": "n"}]
    reader, parsed = read("responses", document(items))
    assert [item.record.type for item in parsed] == ["user", "compaction", "novel_call"]
    assert reader.report.unknown_types == {"novel_call": 1}
