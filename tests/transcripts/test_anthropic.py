from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.library import compact_transcript
from mcp_compact.transcripts.anthropic import AnthropicReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.parsed import Parsed
from mcp_compact.wiring import open_service
from tests.transcripts.samples import answer, call, jsonl, result, text, user

DIALOGUE: list[dict[str, Any]] = [
    {"role": "user", "content": "list the files"},
    {"role": "assistant", "content": [text("running"), call("t1")]},
    {"role": "user", "content": [result("t1", "a.py")]},
]


def read(data: bytes | str, source: str = "list") -> tuple[AnthropicReader, list[Parsed]]:
    reader = AnthropicReader(source)
    return reader, list(reader.read(read_lines([data.encode() if isinstance(data, str) else data])))


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrap", [lambda items: items, lambda items: {"messages": items}])
def test_list_and_request_are_read_however_they_are_laid_out(indent: int | None, wrap: Any):
    reader, parsed = read(json.dumps(wrap(DIALOGUE), indent=indent))
    assert [json.loads(item.record.body) for item in parsed] == DIALOGUE
    assert [item.line for item in parsed] == [1, 2, 3]
    assert [item.record.type for item in parsed] == ["user", "assistant", "user"]
    assert all(item.record.is_message and not item.record.is_root for item in parsed)
    assert reader.report.messages == 3
    assert not reader.report.warnings


def test_one_message_a_line_keeps_its_own_bytes_and_may_come_in_batches():
    data = jsonl(DIALOGUE)
    reader, whole = read(data)
    assert [item.record.body for item in whole] == data.splitlines()
    lines = list(read_lines([data]))
    before = AnthropicReader("list")
    first = list(before.read(lines[:1]))
    after = AnthropicReader(
        "list", json.loads(json.dumps(before.state())), {item.record.uuid for item in first}.__contains__
    )
    assert first + list(after.read(lines[1:])) == whole
    assert after.facts() == reader.facts()


def test_system_prompt_is_kept_as_a_system_record():
    items = [{"role": "system", "content": "in the list"}, *DIALOGUE]
    reader, parsed = read(json.dumps({"model": "claude-y", "system": [text("be brief")], "messages": items}))
    assert [(item.record.type, item.record.subtype) for item in parsed[:2]] == [
        ("system", "system_prompt"),
        ("system", ""),
    ]
    assert [item.record.text for item in parsed[:2]] == ["be brief", "in the list"]
    assert not any(item.record.is_message for item in parsed[:2])
    assert reader.facts().model == "claude-y"
    assert reader.facts().title == "list the files"


def test_uuids_are_the_items_own_or_made_from_source_place_and_content():
    items = [
        {**DIALOGUE[0], "uuid": "mine"},
        {"role": "assistant", "content": "ok", "id": "msg_1"},
        DIALOGUE[0],
        DIALOGUE[0],
    ]
    _, parsed = read(json.dumps(items))
    uuids = [item.record.uuid for item in parsed]
    assert uuids[0] == "mine"
    assert len(set(uuids)) == 4
    assert uuids == [item.record.uuid for item in read(json.dumps(items, indent=1))[1]]
    assert parsed[1].record.message
    assert parsed[1].record.message.id == "msg_1"


def test_api_answers_as_they_are_returned_are_messages():
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [text("hi")],
        "usage": {"input_tokens": 3},
    }
    _, parsed = read(json.dumps([DIALOGUE[0], whole]))
    record = parsed[1].record
    assert record.message
    assert (record.type, record.message.id, record.message.model) == ("assistant", "msg_1", "m")


def test_items_in_a_transcripts_envelope_are_accepted():
    items = [
        user("u1", "one"),
        answer("a1", "M1", text("two"), "u1"),
        user("x1", "sub", isSidechain=True, agentId="g1"),
        DIALOGUE[0],
    ]
    reader, parsed = read(json.dumps(items))
    assert [item.agent_id for item in parsed] == [None, None, "g1", None]
    assert [item.record.parent_uuid for item in parsed] == [None, "u1", None, None]
    assert (reader.agents, reader.sole_agent) == (("g1",), None)
    assert reader.facts("g1").title == "sub"


def test_item_without_content_is_imported_and_item_without_role_is_a_problem():
    items = [{"role": "user"}, {"type": "assistant"}, {"content": "who?"}, "text", {"role": "user", "content": "ok"}]
    reader, parsed = read(json.dumps(items))
    assert [item.line for item in parsed] == [1, 2, 5]
    assert reader.report.warning_counts == {"no_content": 2}
    assert [(problem.line, problem.reason) for problem in reader.report.problems] == [
        (3, "a message without role"),
        (4, "not a JSON object"),
    ]


def test_bad_line_among_messages_is_reported_and_the_others_are_read():
    reader, parsed = read(jsonl(DIALOGUE[:1]) + b"{oops\n" + jsonl(DIALOGUE[1:]))
    assert len(parsed) == 3
    assert [problem.line for problem in reader.report.problems] == [2]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ('{"a": 1', "not_json"),
        ('[{"role": "user", "content": "secret"}', "not_json"),
        ("[" * 100_000, "not_json"),
        ('[{"role": "user", "content": NaN}]', "not_json"),
        ("5", "not_a_transcript"),
        ('"secret"', "not_a_transcript"),
        ('{"messages": [{"role": "user", "content": "a"}]}\n{"messages": []}', "several_conversations"),
    ],
)
def test_what_is_no_message_list_is_refused_without_its_content(data: str, code: str):
    with pytest.raises(CallerError) as caught:
        read(data)
    assert caught.value.code == code
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_empty_list_has_no_records():
    assert read("[]")[1] == []
    assert read("")[1] == []
    assert read('{"messages": []}')[1] == []


COMPACTED = [
    {"role": "user", "content": "Port the parser. Never touch vendor/."},
    {"role": "assistant", "content": [{"type": "text", "text": "I begin with the scanner."}]},
    {"role": "user", "content": "go on"},
    {
        "role": "assistant",
        "content": [
            {"type": "compaction", "content": "The parser is half ported."},
            {"type": "text", "text": "Now the tokens."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tokens"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        ],
    },
    {"role": "user", "content": "and then?"},
]


def test_a_compaction_of_the_provider_stands_for_all_that_came_before():
    result = compact_transcript([json.dumps(COMPACTED).encode()], target_tokens=100_000)
    told = [block["text"] for m in result.messages for block in parse_all(m["content"]) if block["type"] == "text"]
    assert told == ["The parser is half ported.", "Now the tokens.", "and then?"]
    kinds = [block["type"] for message in result.messages for block in parse_all(message["content"])]
    assert kinds == ["text", "text", "server_tool_use", "web_search_tool_result", "text"]
    assert result.read.records == len(COMPACTED) + 2


async def test_the_archive_keeps_the_block_and_what_stood_before_it(tmp_path):
    async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
        first = await service.import_content(json.dumps(COMPACTED), session_id="s")
        page = await service.messages("s")
        whole = await service.export("s", "anthropic", whole=True)
        again = await service.import_content(
            json.dumps([*COMPACTED, {"role": "assistant", "content": "The rest."}]), session_id="s"
        )
    assert (first.stored, again.stored) == (len(COMPACTED) + 2, 1)
    assert page.messages[0]["content"] == "The parser is half ported."
    assert [parse_all(message["content"])[0]["text"] for message in whole.messages] == [
        "Port the parser. Never touch vendor/.", "I begin with the scanner.", "go on", "Now the tokens.", "and then?",
    ]  # fmt: skip


def parse_all(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
