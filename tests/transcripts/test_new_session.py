from __future__ import annotations

import json
from dataclasses import replace

from mcp_compact.compaction.in_memory import service_record
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.claude_code_out import NewSession, session_entries
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.native import native_boundary, summary_of
from mcp_compact.transcripts.project_folder import project_slug

FACTS = SessionFacts(cwd="/home/me/app", version="2.1.0", git_branch="main", title="Tides")
NEW = NewSession("new-id", MessageUuid("boundary"), FACTS, 50_000, 9_000, 20_000, MessageUuid("last"))


def read(*bodies):
    reader = ClaudeCodeReader("test")
    return [parsed.record for parsed in reader.read(read_lines([b"".join(bodies)]))]


def records():
    """A prompt and an answer without an id of its own."""
    lines = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-01-01T10:00:00.000Z", "slug": "s",
         "message": {"role": "user", "content": "go on"}},
        {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "timestamp": "2026-01-01T10:00:05.000Z",
         "message": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "yes"}],
                     "usage": {"input_tokens": 190_000, "output_tokens": 7}}},
    ]  # fmt: skip
    return read(*(json.dumps(line).encode() + b"\n" for line in lines))


def entries(*, with_summary=True, new=NEW):
    own = records()
    if with_summary:
        own.insert(0, service_record("The notes.", "summary", is_summary=True))
    turns = [Turn(r.message.role, r.blocks, r.uuid, r.message.id) for r in own if r.message]
    return list(session_entries(turns, new, {record.uuid: record for record in own}))


def test_a_compacted_session_begins_with_a_boundary_and_is_one_chain():
    lines = entries()
    assert [line["type"] for line in lines] == ["system", "user", "user", "assistant", "custom-title"]
    chain = lines[:-1]
    assert [line["parentUuid"] for line in chain] == [None, *(line["uuid"] for line in chain[:-1])]
    assert lines[0]["subtype"] == "compact_boundary"
    assert lines[0]["logicalParentUuid"] == "last"
    assert lines[0]["compactMetadata"] == {"trigger": "manual", "preTokens": 50_000, "postTokens": 9_000}
    assert {line["sessionId"] for line in lines} == {"new-id"}


def test_without_a_summary_there_is_no_boundary():
    assert [line["type"] for line in entries(with_summary=False)] == ["user", "assistant", "custom-title"]


def test_the_usage_of_an_answer_says_what_the_new_context_holds():
    answer = entries()[3]["message"]
    assert answer["usage"]["input_tokens"] == 29_000
    assert answer["usage"]["output_tokens"] == 0


def test_an_answer_without_an_id_gets_one_so_that_neighbours_stay_apart():
    assert entries()[3]["message"]["id"] == "msg_a1"


def test_service_records_take_the_time_of_what_follows_them():
    times = [line["timestamp"] for line in entries()[:-1]]
    assert times == sorted(times)
    assert times[0] == "2026-01-01T10:00:00.000Z"


def test_every_line_can_be_written_as_utf_8():
    lines = entries(new=replace(NEW, facts=replace(FACTS, cwd="/home/me/\udcff", title="\ud800")))
    json.dumps(lines, ensure_ascii=False).encode()


def test_without_a_title_none_is_written():
    assert entries(new=replace(NEW, facts=replace(FACTS, title=None)))[-1]["type"] == "assistant"


def test_our_own_reader_takes_the_summary_for_that_of_the_boundary():
    found = read(*(json.dumps(line).encode() + b"\n" for line in entries()))
    summary = summary_of(found[0], found[1:])
    assert summary is not None
    boundary = native_boundary(found[0], summary)
    assert boundary is not None
    assert boundary.service == "summary"


def test_the_folder_of_a_project_is_named_as_the_client_does():
    assert project_slug("/home/me/my.app_1") == "-home-me-my-app-1"
