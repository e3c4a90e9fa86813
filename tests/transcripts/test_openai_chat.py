from __future__ import annotations

import contextlib
import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact import compact
from mcp_compact.library import compact_transcript
from mcp_compact.messages.blocks import MediaBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.live import LiveContext
from mcp_compact.service.offline import encode
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.openai_chat import OpenAiChatReader
from mcp_compact.transcripts.openai_chat_messages import is_chat
from mcp_compact.transcripts.registry import sniff

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "é"}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}}


def records_of(messages):
    reader = OpenAiChatReader("test")
    return [parsed.record for parsed in reader.read(read_lines([json.dumps(messages).encode()]))]


def there_and_back(messages):
    records = [record for record in records_of(messages) if record.is_message]
    out, _ = encode(LiveContext((), tuple(records), {}), "openai")
    return out


def test_calls_and_results_are_paired_by_id():
    asked, answered = records_of(
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "a pier"},
        ]
    )
    (call,) = asked.blocks
    (result,) = answered.blocks
    assert isinstance(call, ToolUseBlock)
    assert (call.id, call.name, call.input) == ("c1", "look", {"at": "é"})
    assert isinstance(result, ToolResultBlock)
    assert (answered.type, result.tool_use_id, result.text) == ("user", "c1", "a pier")


def test_images_and_files_become_media():
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    (record,) = records_of([{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE, file, linked]}])
    media = [block for block in record.blocks if isinstance(block, MediaBlock)]
    assert [(block.kind, block.media_type, block.data) for block in media] == [
        ("image", "image/png", "QUJD"), ("document", "application/pdf", "QUJD"), ("image", "", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_are_archived_but_are_no_part_of_the_dialogue(role):
    record, _ = records_of([{"role": role, "content": "Be kind."}, {"role": "user", "content": "hi", "tool_calls": []}])
    assert not record.is_message
    assert record.text == "Be kind."


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ('{"a": 1', {"arguments": '{"a": 1'}),
        ("[1]", {"arguments": "[1]"}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_they_are(arguments, value):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    (record,) = records_of([{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert record.calls[0].input == value


def test_custom_tools_calls_without_an_id_and_unknown_calls_are_kept():
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    nameless = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    odd = {"id": "c3", "type": "made_up", "made_up": 1}
    (record,) = records_of(
        [
            {
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "No."}],
                "tool_calls": [custom, nameless, odd],
            }
        ]
    )
    assert [(call.name, call.input) for call in record.calls] == [("patch", {"input": "*** Begin"})]
    assert record.text == "No.\n[Call of look: {}]"
    assert record.blocks[-1].raw == odd


@pytest.mark.parametrize(
    "part",
    [3, {"type": "image_url"}, {"type": "image_url", "image_url": {}}, {"type": "file", "file": {"file_id": "f1"}}],
)
def test_parts_that_are_not_understood_stay_as_they_are(part):
    messages = [{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE, part]}]
    (record,) = records_of(messages)
    assert record.message is not None
    assert record.message.content[2] == part


def test_blocks_of_another_api_that_have_no_form_here_are_told_as_text():
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ]
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}
    stored = {"type": "document", "source": {"type": "file", "file_id": "f1"}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}], "id": "m1"}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [document, stored, linked]},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": "go on"},
        thought,
    ]
    out, _ = compact(messages, format="openai")
    assert [part["type"] for part in out[0]["content"]] == ["file", "text", "image_url"]
    assert out[0]["content"][0]["file"]["file_data"] == "data:application/pdf;base64,QUJD"
    assert out[0]["content"][2]["image_url"] == {"url": "https://example.org/a.png"}
    assert "web_search_tool_result" in out[1]["content"]
    assert [message["role"] for message in out] == ["user", "assistant", "user"]
    assert compact([], format="openai")[0] == []


def test_a_log_without_an_answer_is_the_request_alone():
    log = {"messages": [{"role": "user", "content": "hi"}], "response": {"choices": []}}
    assert [message["content"] for message in compact_transcript([json.dumps(log).encode()]).messages] == ["hi"]


def test_a_refusal_and_the_first_form_of_calls_are_text():
    refused, called, result = records_of(
        [
            {"role": "assistant", "content": None, "refusal": "I will not."},
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "a pier"},
        ]
    )
    assert refused.text == "I will not."
    assert called.text == "[Call of look: {}]"
    assert result.text == "[Result of look]\na pier"


def test_what_is_not_known_survives_on_the_way_out():
    messages = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "see", "x_mark": 1}, IMAGE],
            "name": "ada",
            "x_own": {"a": [1]},
        },
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL], "reasoning_content": "hm", "annotations": []},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a pier"}], "name": "look"},
        {"role": "assistant", "content": "A pier.", "audio": {"id": "a1"}},
    ]
    assert there_and_back(messages) == messages


def test_a_log_of_a_request_goes_on_with_its_answer():
    log = {
        "messages": [{"role": "user", "content": "hi"}],
        "response": {"choices": [{"message": {"role": "assistant", "content": "ho"}}]},
    }
    data = json.dumps(log).encode()
    assert sniff(data) == "openai"
    result = compact_transcript([data])
    assert [message["content"] for message in result.messages] == ["hi", "ho"]


def test_real_conversations_go_out_as_they_came_in(shared):
    (file,) = (shared / "transcripts" / "openai-chat").iterdir()
    conversations = [json.loads(line)["messages"] for line in file.read_text(encoding="utf-8").splitlines()]
    for messages in conversations[:4]:
        out, _ = compact(messages, format="openai")
        assert out == messages
    assert problems(compact(conversations[4], format="openai")[0]) == []


def test_messages_of_another_api_are_written_in_this_one():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I do."},
                                          {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a pier"}, image]},
                                     {"type": "text", "text": "and?"}]},
    ]  # fmt: skip
    out, _ = compact(messages, format="openai")
    assert out == [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "I do.", "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "a pier\n[image]"},
        {"role": "user", "content": [{"type": "text", "text": "[From the result of call t1]"},
                                     {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}, {"type": "text", "text": "and?"}]},
    ]  # fmt: skip


def test_an_interrupted_call_is_answered_so_that_the_list_is_valid():
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "user", "content": "never mind"},
    ]
    out, report = compact(messages, format="openai")
    assert problems(out) == []
    assert [message["role"] for message in out] == ["user", "assistant", "tool", "user"]
    assert any("never answered" in warning for warning in report.warnings)


def test_a_compacted_list_keeps_its_instructions_its_pairs_and_the_user_s_rules():
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "Port it all. Never touch vendor/."},
    ]
    for at in range(60):
        call = {
            "id": f"c{at}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": f"src/part_{at}.py"})},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"value_{at} = compute({at})\n" * 60})
    before = json.dumps(messages)
    out, report = compact(messages, target_tokens=6_000, format="openai")
    assert report.status == "compacted"
    assert out[0] == messages[0]
    assert problems(out[1:]) == []
    assert "Never touch vendor/." in json.dumps(out)
    assert json.dumps(messages) == before
    again, report = compact([*out, {"role": "user", "content": "Go on."}], target_tokens=4_000, format="openai")
    assert problems(again[1:]) == []
    assert "Never touch vendor/." in json.dumps(again)


def test_a_loop_that_sends_this_form_is_stored_and_given_back(tmp_path):
    """Through the store: bodies stay what was sent, and a list that is sent again adds nothing."""
    from mcp_compact.config import load_settings
    from mcp_compact.wiring import open_service

    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a pier"},
        {"role": "assistant", "content": "A pier.", "x_own": 1},
    ]

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            first = await service.append_messages(messages[:3], "s")
            again = await service.append_messages(messages, "s")
            page = await service.messages("s", format_name="openai")
            original = await service.original("s", "c1")
            return first, again, page, original

    first, again, page, original = anyio.run(work)
    assert first.warnings == ()
    assert (first.stored, again.stored) == (3, 1)
    assert list(page.messages) == messages
    assert original.text == "a pier"


@st.composite
def conversations(draw):
    """Valid lists: prompts, answers with some calls, their results in any order."""
    words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(str.strip)
    messages, number = [{"role": "user", "content": draw(words)}], 0
    for _ in range(draw(st.integers(0, 5))):
        count = draw(st.integers(0, 3))
        ids = [f"c{number + at}" for at in range(count)]
        number += count
        answer: dict[str, Any] = {"role": "assistant", "content": draw(words) if not ids else draw(st.none() | words)}
        if ids:
            made = [
                {
                    "id": id_,
                    "type": "function",
                    "function": {"name": "f", "arguments": draw(st.sampled_from(["{}", '{"a":1}', "{"]))},
                }
                for id_ in ids
            ]
            answer["tool_calls"] = made
        messages.append(answer)
        messages += [{"role": "tool", "tool_call_id": id_, "content": draw(words)} for id_ in ids]
        if draw(st.booleans()):
            messages.append({"role": "user", "content": draw(words)})
    return messages


@given(conversations())
def test_any_valid_list_comes_back_as_it_was(messages):
    assert there_and_back(messages) == messages


@given(conversations())
def test_any_valid_list_can_be_written_for_another_api_and_back(messages):
    records = [record for record in records_of(messages) if record.is_message]
    reader = ClaudeCodeReader("other")
    live = LiveContext((), tuple(records), {})
    out, _ = encode(live, "anthropic")
    other = [reader.feed(item, json.dumps(item).encode(), at)[0].record for at, item in enumerate(out, 1)]
    back, _ = encode(LiveContext((), tuple(other), {}), "openai")
    assert problems(back) == []
    assert _said(back) == _said(messages)


def _said(messages):
    """What was said, called and answered, in order; whatever the form."""
    told: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            told.append(("result", message["tool_call_id"], message["content"]))
            continue
        if message["content"]:
            told.append((message["role"], message["content"]))
        for call in message.get("tool_calls", ()):
            arguments = call["function"]["arguments"]
            with contextlib.suppress(ValueError):
                arguments = json.dumps(json.loads(arguments))
            told.append(("call", call["id"], arguments))
    return told


def problems(messages):
    """What this API would refuse: calls without results right behind them, results without calls, empty messages."""
    found: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"orphan {message['tool_call_id']}")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        found += [f"unanswered {id_}" for id_ in waiting]
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if not message.get("content") and not waiting:
            found.append(f"empty {message}")
    return found


@pytest.mark.parametrize("kind", [[], {}, ["text"], 7, None])
def test_a_part_whose_type_is_no_text_is_nobodys_own(kind: object) -> None:
    assert is_chat({"role": "user", "content": [{"type": kind, "text": "x"}]}) is False
