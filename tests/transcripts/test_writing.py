from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.markers import Marker
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn, valid_turns
from mcp_compact.transcripts.anthropic_out import to_messages
from mcp_compact.transcripts.claude_code_out import to_lines
from mcp_compact.transcripts.facts import SessionFacts, facts_of
from mcp_compact.transcripts.native import boundary_marker, expand_preserved, native_boundary, summary_of
from mcp_compact.transcripts.outs import written as written_as
from tests.problems import problems
from tests.transcripts.samples import SESSION, answer, call, read, read_objects, result, stored, text, user

NEW = "00000000-0000-4000-8000-00000000000f"
DIALOGUE = (
    user(
        "s1",
        "This session is being continued",
        isCompactSummary=True,
        isVisibleInTranscriptOnly=True,
        slug="quiet-otter",
    ),
    answer("a1", "M1", {"type": "thinking", "thinking": "hm", "signature": "sig"}, "s1", requestId="req_1"),
    answer("a2", "M1", call("t1"), "a1", requestId="req_1", timestamp="2026-01-02T03:04:05.678Z"),
    user("u1", [result("t1", "a.py")], "a2", toolUseResult={"stdout": "a.py"}),
    user("u2", [text("and now?")], "u1", isMeta=True),
    answer("a3", "M2", text("done"), "u2"),
)


def live_of(*objects: dict[str, Any]) -> LiveContext:
    return live_context(stored(read_objects(*objects)[1]), [])


def turns_of(live: LiveContext) -> list[Turn]:
    turns = [
        Turn(record.message.role, record.blocks, record.uuid, record.message.id)
        for record in live.all
        if record.message
    ]
    return valid_turns(turns, close_open_calls=True)[0]


def by_uuid(live: LiveContext) -> dict[Any, Record]:
    return {record.uuid: record for record in live.all}


def written(*objects: dict[str, Any], facts: SessionFacts | None = None) -> list[dict[str, Any]]:
    live = live_of(*objects)
    lines = to_lines(turns_of(live), facts or facts_of(live.all), NEW, by_uuid(live))
    return [json.loads(line) for line in lines]


def test_written_session_is_one_chain_with_its_own_uuids():
    lines = written(*DIALOGUE)
    assert [line["uuid"] for line in lines] == ["s1", "a1", "a2", "u1", "u2", "a3"]
    assert [line["parentUuid"] for line in lines] == [None, "s1", "a1", "a2", "u1", "u2"]
    assert {line["sessionId"] for line in lines} == {NEW}
    assert all(line["isSidechain"] is False and line["timestamp"].endswith("Z") for line in lines)


def test_written_lines_keep_envelope_and_message_of_their_record():
    lines = written(*DIALOGUE, facts=SessionFacts(cwd="/project", version="2.1.0", git_branch="main"))
    assert {(line["cwd"], line["version"], line["gitBranch"]) for line in lines} == {("/project", "2.1.0", "main")}
    assert [line.get("isCompactSummary") for line in lines] == [True, None, None, None, None, None]
    assert (lines[0]["message"]["content"], lines[0]["slug"]) == ("This session is being continued", "quiet-otter")
    assert (lines[1]["message"], lines[1]["requestId"]) == (DIALOGUE[1]["message"], "req_1")
    assert lines[2]["timestamp"] == lines[3]["timestamp"] == "2026-01-02T03:04:05.678Z"
    assert lines[3]["toolUseResult"] == {"stdout": "a.py"}
    assert lines[4]["isMeta"] is True


def test_written_session_reads_back_as_the_same_live_context():
    live = live_of(*DIALOGUE)
    data = b"".join(to_lines(turns_of(live), facts_of(live.all), NEW, by_uuid(live)))
    reader, parsed = read(data)
    again = live_context(stored(parsed), [])
    assert [(record.uuid, record.blocks) for record in again.all] == [(r.uuid, r.blocks) for r in live.all]
    assert not reader.report.warnings
    assert reader.facts().session_id == NEW


def test_what_a_repair_added_gets_a_uuid_of_its_own():
    lines = written(user("u1", "go"), answer("a1", "M1", call("t1"), "u1"), user("u2", "stop", "a1"))
    assert [line["type"] for line in lines] == ["user", "assistant", "user", "user"]
    assert lines[2]["message"]["content"][0]["is_error"] is True
    assert len({line["uuid"] for line in lines}) == 4
    assert lines == written(user("u1", "go"), answer("a1", "M1", call("t1"), "u1"), user("u2", "stop", "a1"))


def test_changed_turn_loses_the_copies_of_its_content():
    objects = (
        user("u1", "go"),
        user("u2", [result("t9"), text("and")], "u1", toolUseResult={"stdout": "big"}, slug="s"),
    )
    last = written(*objects)[-1]
    assert "toolUseResult" not in last
    assert (last["uuid"], last["slug"]) == ("u2", "s")
    assert last["message"]["content"][0]["type"] == "text"


def test_two_turns_of_one_record_get_two_uuids():
    turn = Turn("user", (live_of(user("u1", "x")).all[0].blocks[0],), stored(read_objects(user("u1", "x"))[1])[0].uuid)
    uuids = [json.loads(line)["uuid"] for line in to_lines([turn, turn], SessionFacts(), NEW)]
    assert uuids[0] == "u1"
    assert len(uuids[1]) == 36


def test_answer_without_a_record_has_what_a_client_expects():
    live = live_of(user("u1", "x"), answer("a1", "M1", text("y"), "u1"))
    (_, line) = (json.loads(line) for line in to_lines(turns_of(live), SessionFacts(model="claude-z"), NEW))
    assert line["message"] == {
        "type": "message",
        "model": "claude-z",
        "id": "M1",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "role": "assistant",
        "content": [text("y")],
    }


def test_written_text_is_well_formed():
    live = live_of(user("u1", [text("half \ud83d")]))
    (line,) = to_lines(turns_of(live), SessionFacts(cwd="/\udc00"), NEW)
    assert b"\\u" not in line
    assert json.loads(line)["cwd"] == "/\ufffd"


def test_records_of_one_answer_become_one_message():
    live = live_of(*DIALOGUE)
    messages = to_messages(turns_of(live), by_uuid(live))
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user", "assistant"]
    assert messages[0] == {"role": "user", "content": "This session is being continued"}
    assert [block["type"] for block in messages[1]["content"]] == ["thinking", "tool_use"]
    assert messages[3]["content"] == [text("and now?")]
    assert problems(messages) == []


def test_neighbours_of_one_role_are_merged_on_request():
    live = live_of(
        user("u1", "one"),
        user("u2", "two", "u1"),
        answer("a1", "M1", text("x"), "u2"),
        answer("a2", "M2", text("y"), "a1"),
    )
    messages = to_messages(turns_of(live), by_uuid(live), merge_neighbours=True)
    assert messages == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("x"), text("y")]},
    ]
    assert live.all[0].message
    assert live.all[0].message.content == "one"


def test_content_is_a_list_of_blocks_where_the_record_is_not_at_hand():
    assert to_messages(turns_of(live_of(user("u1", "one")))) == [{"role": "user", "content": [text("one")]}]


@pytest.mark.parametrize("name", ["anthropic", "claude-code"])
def test_output_formats_take_turns_and_their_live_context(name: str):
    live = live_of(*DIALOGUE)
    items = written_as(name, turns_of(live), live)
    messages = [item.get("message", item) for item in items]
    assert messages[0]["content"] == "This session is being continued"
    if name == "claude-code":
        assert {item["sessionId"] for item in items} == {SESSION}


def test_live_context_of_real_sessions_is_valid_in_both_formats(claude_code_files: tuple[Path, ...]):
    compacted = 0
    for file in claude_code_files:
        records = stored(read(file.read_bytes())[1])
        markers: list[Marker] = []
        for at, record in enumerate(records):
            found = native_boundary(record, summary_of(record, records[at + 1 :]))
            if found:
                kept = expand_preserved(found, records[:at])
                markers.append(boundary_marker(found, record.seq, markers[-1].seq if markers else None, kept))
        live = live_context(records, markers)
        compacted += bool(live.service)
        turns = turns_of(live)
        assert problems(to_messages(turns, by_uuid(live))) == []
        data = b"".join(to_lines(turns, facts_of(live.all), NEW, by_uuid(live)))
        reader, parsed = read(data)
        assert not reader.report.warnings
        assert not reader.report.problems
        assert len(parsed) == len(turns)
        again = live_context(stored(parsed), [])
        assert problems(to_messages(turns_of(again), by_uuid(again))) == []
    assert compacted > 0
