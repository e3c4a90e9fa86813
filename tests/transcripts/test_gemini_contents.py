from __future__ import annotations

from typing import Any

from mcp_compact.messages.blocks import MediaBlock
from tests.transcripts.foreign import document, jsonl, pairs, read, records, spoken

# As google.genai.types.Content.model_dump writes them (mode="json", without what is None).
CONTENTS = [
    {"parts": [{"text": "hi"}, {"inline_data": {"data": "QUI_", "mime_type": "image/png"}}], "role": "user"},
    {
        "parts": [
            {"function_call": {"args": {"a": 1}, "name": "f"}},
            {"function_call": {"args": {"a": 2}, "name": "f"}, "thought_signature": "eA=="},
        ],
        "role": "model",
    },
    {
        "parts": [
            {"function_response": {"name": "f", "response": {"output": "1"}}},
            {"function_response": {"name": "f", "response": {"error": "2"}}},
        ],
        "role": "user",
    },
]


def test_calls_without_ids_are_paired_by_name_and_order():
    found = records("gemini", document(CONTENTS))
    assert pairs(found) == [("f", {"a": 1}, "1", False), ("f", {"a": 2}, "2", True)]
    assert len({call.id for record in found for call in record.calls}) == 2


def test_ids_pair_in_any_order_where_they_are_given():
    asked: list[Any] = [{"functionCall": {"id": number, "name": "f", "args": {}}} for number in ("x", "y")]
    given = [{"functionResponse": {"id": number, "name": "f", "response": {"output": number}}} for number in ("y", "x")]
    found = records("gemini", document([{"role": "model", "parts": asked}, {"role": "user", "parts": given}]))
    assert [text for _, _, text, _ in pairs(found)] == ["x", "y"]


def test_media_are_written_as_other_providers_take_them():
    media = [
        block
        for record in records("gemini", document(CONTENTS))
        for block in record.blocks
        if isinstance(block, MediaBlock)
    ]
    assert [(block.media_type, block.data) for block in media] == [("image/png", "QUI/")]


def test_empty_fields_are_no_parts():
    part = {"text": "hi", "thought": None, "functionCall": None, "inlineData": None}
    reader, parsed = read("gemini", document([{"role": "user", "parts": [part, {"text": None}]}]))
    assert spoken([item.record for item in parsed]) == [("user", "hi")]
    assert not reader.report.unknown_types


def test_a_request_with_its_response_keeps_model_instruction_and_usage():
    response = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "thinking", "thought": True}, {"text": "ho"}]}}
        ],
        "modelVersion": "gemini-3",
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2},
    }
    request = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
    }
    reader, parsed = read("gemini", document({"request": request, "response": response}))
    assert spoken([item.record for item in parsed]) == [("user", "hi"), ("assistant", "ho")]
    assert parsed[0].record.text == "Be brief."
    assert (reader.facts().model, reader.facts().max_context_tokens) == ("gemini-3", 9)


def test_code_that_the_provider_ran_is_told_as_text():
    parts = [{"executableCode": {"language": "PYTHON", "code": "1+1"}}, {"codeExecutionResult": {"output": "2"}}]
    assert spoken(records("gemini", jsonl([{"role": "model", "parts": parts}]))) == [
        ("assistant", "```python\n1+1\n```\n```\n2\n```")
    ]


def test_unknown_roles_and_parts_are_counted():
    reader, _ = read(
        "gemini", document([{"role": "user", "parts": [{"novel": {}}, 5]}, {"role": "narrator", "parts": []}])
    )
    assert reader.report.unknown_types == {"part novel": 1, "part (none)": 1, "narrator": 1}
