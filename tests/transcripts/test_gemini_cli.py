from __future__ import annotations

import sqlite3

import anyio

from mcp_compact.adapters.sqlite import operations
from mcp_compact.config import load_settings
from mcp_compact.library import compact_transcript
from mcp_compact.messages.blocks import MediaBlock
from mcp_compact.service.keys import session_key
from mcp_compact.wiring import open_service
from tests.transcripts.foreign import AT, document, jsonl, message_of, pairs, read, records, sent, spoken

HEAD = {"sessionId": "s", "projectHash": "p", "startTime": AT, "lastUpdated": AT}
ANSWER = {
    "id": "m2",
    "type": "gemini",
    "timestamp": AT,
    "content": "I look.",
    "model": "gemini-2.5-flash",
    "thoughts": [{"subject": "Looking", "description": "..."}],
    "tokens": {"input": 100, "output": 5, "cached": 80, "thoughts": 2, "tool": 0, "total": 107},
}
CALL = {"id": "c1", "name": "read_file", "args": {"file_path": "a"}, "status": "success"}
RESULT = {"result": [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "x"}}}]}


def chat(*messages, **more):
    return document({**HEAD, **more, "messages": [{"id": "m1", "type": "user", "content": "Look."}, *messages]})


def test_thoughts_stay_in_the_archive_and_usage_is_kept():
    found = records("gemini-cli", chat(ANSWER))
    answer = next(record for record in found if record.type == "assistant")
    assert (len(answer.blocks), answer.text) == (1, "I look.")
    assert b"Looking" in answer.body
    assert sent(answer) == 100
    assert message_of(answer).model == "gemini-2.5-flash"


def test_an_answer_whose_calls_come_in_later_is_the_same_answer(tmp_path):
    path = tmp_path / "session.json"

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            path.write_bytes(chat(ANSWER))
            await service.import_file(path)
            path.write_bytes(
                chat({**ANSWER, "toolCalls": [{**CALL, **RESULT}]}, lastUpdated="2026-01-01T11:00:00.000Z")
            )
            grown = await service.import_file(path)
            page = await service.messages("s")
            return grown, page

    grown, page = anyio.run(work)
    assert grown.conflicts == 0
    assert [message["role"] for message in page.messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in page.messages[1]["content"]] == ["text", "tool_use"]


def test_a_call_without_result_is_open_and_a_cancelled_one_failed():
    cancelled = {**CALL, "id": "c2", "status": "cancelled", "resultDisplay": "Cancelled by the user."}
    found = records("gemini-cli", chat({**ANSWER, "toolCalls": [{**CALL, "status": "executing"}, cancelled]}))
    assert [call.id for record in found for call in record.calls] == ["c1", "c2"]
    assert pairs(found) == [("read_file", {"file_path": "a"}, "Cancelled by the user.", True)]


def test_the_newer_form_has_one_entry_a_line():
    lines = [
        HEAD,
        {"id": "m1", "type": "user", "content": [{"text": "Look."}]},
        {"$set": {"summary": "A title"}},
        ANSWER,
    ]
    reader, parsed = read("gemini-cli", jsonl(lines))
    assert spoken([item.record for item in parsed]) == [("user", "Look."), ("assistant", "I look.")]
    assert (reader.facts().session_id, reader.facts().title) == ("s", "A title")
    assert not reader.report.unknown_types


def said(number, kind="user", **more):
    return {"id": f"m{number}", "type": kind, "timestamp": AT, "content": f"said {number}", **more}


def shown(*lines):
    """The live context: texts as they are, of other blocks their kinds."""
    found = []
    for message in compact_transcript([jsonl([HEAD, *lines])], output="anthropic").messages:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        found += [block.get("text") or block["type"] for block in blocks]
    return found


def test_a_compression_is_a_boundary_that_keeps_the_messages_that_are_left():
    answer = said(3, "gemini", toolCalls=[{**CALL, **RESULT}])
    given = {"id": "x", "type": "user", "content": [{"functionResponse": {"id": "c1", "name": "read_file"}}]}
    left = [said(9, content="<state_snapshot>"), said(8, "gemini", content="Got it."), said(2), answer, given]
    lines = [said(0), said(1, "gemini"), said(2), answer, {"$set": {"messages": left}}, said(5)]
    assert shown(*lines) == ["<state_snapshot>", "said 2", "said 3", "tool_use", "tool_result", "said 5"]


def test_a_list_of_all_messages_is_no_compression():
    lines = [
        said(0),
        said(1, "gemini"),
        {"$set": {"messages": [said(0, content="masked"), said(1, "gemini")]}},
        said(2),
    ]
    assert shown(*lines) == ["said 0", "said 1", "said 2"]


def test_messages_that_were_taken_back_leave_the_context():
    assert shown(said(0), said(1, "gemini"), said(2), {"$rewindTo": "m2"}, said(3)) == ["said 0", "said 1", "said 3"]
    assert shown(said(0), said(1, "gemini"), {"$rewindTo": "unknown"}, said(3)) == ["said 3"]


def test_lines_about_messages_of_any_shape_are_kept():
    odd = [{"$rewindTo": []}, {"$rewindTo": {}}, {"$set": {"messages": [{"id": [], "type": "user"}, 3]}}, {"$set": 1}]
    found = records("gemini-cli", jsonl([HEAD, said(0), said(1, "gemini"), *odd]))
    assert len(found) == 7
    assert shown(said(0), said(1, "gemini"), *odd) == ["said 0", "said 1"]


def test_tokens_that_are_written_again_with_the_answer_reach_it(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_bytes(
        jsonl(
            [
                HEAD,
                said(0),
                said(1, "gemini"),
                {"$set": {"lastUpdated": AT}},
                {**said(1, "gemini"), "tokens": {"input": 70_000, "output": 5}},
            ]
        )
    )

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            result = await service.import_file(path)
            return result, await service.status("s")

    result, status = anyio.run(work)
    assert (result.conflicts, status.tokens >= 70_000) == (0, True)


def test_model_and_usage_of_an_answer_that_is_plain_text_are_stored(tmp_path):
    path = tmp_path / "chat.json"
    path.write_bytes(chat(ANSWER))

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            await service.import_file(path)

    anyio.run(work)
    with sqlite3.connect(tmp_path / "a.db") as conn:
        stored = operations.records(conn, session_key("local", "s"), after_seq=0, up_to_seq=99, live_only=True)
    answer = stored[-1]
    assert (message_of(answer).model, sent(answer)) == ("gemini-2.5-flash", 100)


def test_media_and_what_is_not_known():
    parts = [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, {"novel": 1}]
    reader, parsed = read(
        "gemini-cli", chat({"id": "m3", "type": "user", "content": parts}, {"id": "m4", "type": "later"})
    )
    media = [b for item in parsed for b in item.record.blocks if isinstance(b, MediaBlock)]
    assert [(block.media_type, block.data) for block in media] == [("image/png", "QUJD")]
    assert reader.report.unknown_types == {"part (none)": 1, "later": 1}


def test_a_chat_that_grew_adds_only_what_is_new(shared, tmp_path):
    files = sorted((shared / "transcripts" / "gemini-cli").iterdir())
    short, long = (next(file for file in files if file.name.startswith(start)) for start in ("cli__9c", "cli__ab"))

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            return [await service.import_file(file) for file in (short, long, long)]

    first, second, third = anyio.run(work)
    assert first.session_id == second.session_id
    assert (first.conflicts, second.conflicts, third.stored) == (0, 0, 0)
    assert second.known >= first.stored - 2
