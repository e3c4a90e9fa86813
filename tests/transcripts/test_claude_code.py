from __future__ import annotations

import json

from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines
from tests.transcripts.samples import SESSION, answer, call, jsonl, read, read_objects, result, stored, text, user


def test_every_type_is_kept_with_its_own_bytes():
    lines = [
        b'{"type":"summary","summary":"old","leafUuid":"elsewhere"}',
        b'{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}',
        b'{"type":"never-heard-of","uuid":"n1","parentUuid":null,"x":1.0}',
        b'{"type":"attachment","uuid":"t1","parentUuid":"n1","attachment":{"type":"task_reminder"}}',
        b'{"no":"type"}',
        b'{"type":"summary","summary":"of nothing"}',
    ]
    reader, parsed = read(b"\n".join(lines))
    assert [item.record.body for item in parsed] == lines
    assert [item.line for item in parsed] == [1, 2, 3, 4, 5, 6]
    assert not any(item.record.is_message for item in parsed)
    assert reader.report.unknown_types == {"never-heard-of": 1, "unknown": 1}


def test_message_records_carry_their_message():
    _, parsed = read_objects(
        user("u1", "hello", timestamp="2026-01-02T03:04:05.678Z"), answer("a1", "M1", call("t1"), "u1")
    )
    first, second = (item.record for item in parsed)
    assert (first.type, first.text, first.at_ms, first.is_root) == ("user", "hello", 1767323045678, True)
    assert (second.parent_uuid, second.is_root, second.at_ms) == ("u1", False, None)
    assert second.message
    assert second.message.id == "M1"
    assert [block.id for block in second.calls] == ["t1"]


def test_record_without_uuid_gets_the_same_one_each_time():
    data = jsonl([{"type": "mode", "mode": "normal"}, {"type": "mode", "mode": "normal"}])
    first = [item.record.uuid for item in read(data)[1]]
    assert first == [item.record.uuid for item in read(data)[1]]
    assert len(set(first)) == 2
    assert set(first).isdisjoint(item.record.uuid for item in read(data, "another file")[1])
    assert all([len(part) for part in uuid.split("-")] == [8, 4, 4, 4, 12] for uuid in first)


def test_unusable_uuids_and_parents_count_as_none():
    odd = {"type": "user", "message": {"role": "user", "content": "x"}}
    _, parsed = read_objects(
        {**odd, "uuid": ""}, {**odd, "uuid": 5, "parentUuid": 7}, {**odd, "uuid": "x" * 201, "parentUuid": ["u"]}
    )
    assert all(len(item.record.uuid) == 36 for item in parsed)
    assert all(item.record.parent_uuid is None and not item.record.is_root for item in parsed)


def test_absent_parent_goes_on_and_null_parent_is_a_root():
    _, parsed = read_objects(
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "x"}}, user("u2", "y")
    )
    assert [(item.record.parent_uuid, item.record.is_root) for item in parsed] == [(None, False), (None, True)]


def test_missing_parent_is_reported_with_uuid_and_line():
    reader, parsed = read_objects(user("u1", "a"), user("u2", "b", "PHANTOM"))
    assert len(parsed) == 2
    (finding,) = reader.report.warnings
    assert (finding.code, finding.line, finding.uuid, finding.detail) == ("missing_parent", 2, "u2", "PHANTOM")


def test_boundary_follows_its_logical_parent_or_the_record_before():
    boundary = {"type": "system", "subtype": "compact_boundary", "parentUuid": None}
    reader, parsed = read_objects(
        user("u1", "a"),
        {**boundary, "uuid": "b1", "logicalParentUuid": "u1"},
        {**boundary, "uuid": "b2", "logicalParentUuid": "GONE"},
        {**boundary, "uuid": "b3"},
    )
    places = [(item.record.parent_uuid, item.record.is_root) for item in parsed[1:]]
    assert places == [("u1", False), ("GONE", False), (None, False)]
    assert active_positions([link_of(record) for record in stored(parsed)]) == {0, 1, 2, 3}
    assert [finding.uuid for finding in reader.report.warnings] == ["b2"]


def test_meta_and_summary_records_are_marked():
    _, parsed = read_objects(
        user("u1", "reminder", isMeta=True),
        user("u2", "This session is being continued", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    )
    assert [(item.record.is_meta, item.record.is_summary) for item in parsed] == [(True, False), (False, True)]
    assert all(item.record.is_message for item in parsed)


def test_what_the_client_never_sends_is_kept_out_of_the_dialogue():
    failed = answer("a1", "E1", text("API Error: overloaded"), isApiErrorMessage=True)
    failed["message"]["model"] = "<synthetic>"
    spoken = answer("a2", "E2", text("No response requested."), isApiErrorMessage=False)
    spoken["message"]["model"] = "<synthetic>"
    reader, parsed = read_objects(user("u1", "shown only", isVisibleInTranscriptOnly=True), failed, spoken)
    assert [item.record.is_message for item in parsed] == [False, False, True]
    assert [item.record.subtype for item in parsed] == ["transcript_only", "api_error_message", ""]
    assert [item.record.text for item in parsed[:2]] == ["shown only", "API Error: overloaded"]
    assert reader.report.types == {"user": 1, "assistant": 2}


def test_inline_sidechains_go_to_their_agent():
    reader, parsed = read_objects(
        user("u1", "main"),
        user("x1", "task", isSidechain=True, agentId="g1"),
        answer("y1", "N1", text("done"), "x1", isSidechain=True, agentId="g1"),
        answer("a1", "M1", text("main answer"), "u1"),
    )
    assert [item.agent_id for item in parsed] == [None, "g1", "g1", None]
    assert [record.uuid for record in stored(parsed)] == ["u1", "a1"]
    assert reader.agents == ("g1",)
    assert reader.sole_agent is None
    assert reader.facts("g1").parent_session_id == SESSION
    assert reader.facts("g1").title == "task"
    assert reader.report.sub_agents == {"g1": 2}
    assert not reader.report.warnings


def test_sidechains_without_agent_id_are_grouped_by_their_root():
    _, parsed = read_objects(
        user("u1", "main"),
        user("x1", "first task", isSidechain=True),
        user("z1", "second task", isSidechain=True),
        answer("x2", "N1", text("first"), "x1", isSidechain=True),
        answer("z2", "N2", text("second"), "z1", isSidechain=True),
        answer("x3", "N3", text("lost its parent"), "NOWHERE", isSidechain=True),
        user("w1", "hangs off the main line", "u1", isSidechain=True),
    )
    assert [item.agent_id for item in parsed] == [None, "x1", "z1", "x1", "z1", "z1", "w1"]


def test_file_of_one_agent_is_that_agent():
    reader, parsed = read_objects(
        user("x1", "task", isSidechain=True, agentId="g1"),
        {"type": "file-history-snapshot", "messageId": "x1"},
        answer("y1", "N1", text("done"), "x1", isSidechain=True, agentId="g1"),
    )
    assert reader.sole_agent == "g1"
    assert {item.agent_id for item in parsed} == {"g1"}
    facts = reader.facts("g1")
    assert (facts.session_id, facts.parent_session_id, facts.model) == ("g1", SESSION, "claude-x")


def progress(uuid: str, embedded: object, parent: str | None = None) -> dict:
    data = {"type": "agent_progress", "agentId": "g7", "message": embedded, "normalizedMessages": [], "prompt": "p"}
    return {"type": "progress", "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "data": data}


def test_record_inside_a_progress_record_becomes_the_agents():
    inner = {"type": "user", "message": {"role": "user", "content": [text("task")]}, "uuid": "e1"}
    nameless = {"type": "assistant", "message": {"role": "assistant", "content": [call("t1")]}}
    reader, parsed = read_objects(user("u1", "main"), progress("p1", inner, "u1"), progress("p2", nameless, "p1"))
    assert [(item.record.type, item.agent_id) for item in parsed] == [
        ("user", None),
        ("progress", None),
        ("user", "g7"),
        ("progress", None),
        ("assistant", "g7"),
    ]
    assert [record.uuid for record in stored(parsed)] == ["u1", "p1", "p2"]
    child = stored(parsed, "g7")
    assert child[0].uuid == "e1"
    assert len(child[1].uuid) == 36
    assert json.loads(child[1].body) == nameless
    assert reader.facts("g7").parent_session_id == SESSION


def test_progress_that_carries_no_record_stays_alone():
    _, parsed = read_objects(progress("p1", "text"), progress("p2", {"no": "type"}), progress("p3", None))
    assert [item.record.uuid for item in parsed] == ["p1", "p2", "p3"]


def test_copied_records_of_a_resumed_session_belong_to_it_and_are_counted():
    old = "0ld00000-0000-4000-8000-000000000000"
    reader, parsed = read_objects(
        user("u1", "a", sessionId=old), user("u2", "b", "u1", sessionId=old), user("u3", "c", "u2")
    )
    assert [item.agent_id for item in parsed] == [None, None, None]
    assert reader.facts().session_id == SESSION
    assert reader.report.copied == 2


def test_facts_are_gathered_from_the_records():
    first = user(
        "u1", "  Fix the\nparser  ", cwd="/project", gitBranch="main", version="2.1.0", timestamp="2026-01-01T00:00:00Z"
    )
    second = answer("a1", "M1", text("ok"), "u1", cwd="/project/sub", gitBranch="fix", version="2.1.1")
    second["message"] |= {"usage": {"input_tokens": 10, "cache_read_input_tokens": 50_000, "output_tokens": 1}}
    synthetic = answer("a2", "M2", text("No response requested."), "a1", timestamp="2026-01-01T00:00:02Z")
    synthetic["message"]["model"] = "<synthetic>"
    facts = read_objects(first, second, synthetic)[0].facts()
    assert (facts.cwd, facts.git_branch, facts.version) == ("/project", "fix", "2.1.1")
    assert (facts.title, facts.model, facts.max_context_tokens) == ("Fix the parser", "claude-x", 50_010)
    assert (facts.first_ms, facts.last_ms) == (1767225600000, 1767225602000)


def test_given_title_wins_over_generated_ones_and_those_over_the_first_words():
    words = user("u1", "first words")
    foreign = {"type": "summary", "summary": "another session", "leafUuid": "not here"}
    own = {"type": "summary", "summary": "own summary", "leafUuid": "u1"}
    given = {"type": "custom-title", "customTitle": "my title", "sessionId": SESSION}
    made = {"type": "ai-title", "aiTitle": "made title", "sessionId": SESSION}
    titles = [
        read_objects(*objects)[0].facts().title
        for objects in (
            [foreign, words],
            [own, words],
            [words, own],
            [words, made],
            [*[foreign | {"leafUuid": f"l{n}"} for n in range(30)], words, own],
            [given, words, own],
        )
    ]
    assert titles == ["first words", "own summary", "own summary", "made title", "own summary", "my title"]


def test_title_is_what_a_person_typed():
    command = "<command-name>/clear</command-name>\n<command-args></command-args>"
    skill = "<command-message>debug</command-message>\n<command-name>/debug</command-name>\n<command-args>the login</command-args>"
    assert read_objects(user("u1", command), user("u2", "x" * 300))[0].facts().title == "x" * 79 + "\u2026"
    assert read_objects(user("u1", command), user("u2", skill))[0].facts().title == "/debug the login"
    assert read_objects(user("u1", "hidden", isMeta=True))[0].facts().title is None


def test_message_of_a_system_record_is_kept_out_of_the_dialogue():
    message = {"role": "system", "content": "be brief"}
    _, (item,) = read_objects({"type": "system", "uuid": "y1", "message": message})
    assert (item.record.text, item.record.is_message) == ("be brief", False)


def test_records_of_an_sdk_stream_belong_to_the_call_that_started_the_agent():
    line = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "task"}, "session_id": SESSION}
    reader, parsed = read_objects(
        {**line, "parent_tool_use_id": "t1"}, {**line, "uuid": "u2", "parent_tool_use_id": None}
    )
    assert [item.agent_id for item in parsed] == ["t1", None]
    assert reader.facts().session_id == reader.facts("t1").parent_session_id == SESSION


def test_halves_of_surrogate_pairs_stay_in_the_bytes_only():
    line = rb'{"type":"user","uuid":"u\ud83d","message":{"role":"user","content":"half \udc00 \u00e9"}}'
    _, (item,) = read(line)
    assert item.record.body == line
    assert item.record.uuid == "u\ufffd"
    assert item.record.text == "half \ufffd \u00e9"
    json.dumps(item.record.raw, ensure_ascii=False).encode()


def test_messages_without_content_or_role_are_imported_with_a_warning():
    reader, parsed = read_objects(
        {"type": "user", "uuid": "u1"},
        {"type": "assistant", "uuid": "a1", "message": {"role": "assistant", "content": None}},
        {"type": "user", "uuid": "u2", "message": {"content": "who speaks?"}},
    )
    assert [item.record.uuid for item in parsed] == ["u1", "a1", "u2"]
    assert [(finding.code, finding.uuid) for finding in reader.report.warnings] == [
        ("no_content", "u1"),
        ("no_content", "a1"),
        ("no_role", "u2"),
    ]
    assert parsed[2].record.message
    assert parsed[2].record.message.role == "user"


def test_results_without_calls_and_unknown_blocks_are_reported():
    odd = {"type": "hologram", "data": "?"}
    reader, _ = read_objects(
        answer("a1", "M1", call("t1")), user("u1", [result("t1"), result("t9"), odd], "a1"), user("u1", "again", "u1")
    )
    assert reader.report.warning_counts == {"result_without_call": 1, "repeated_uuid": 1}
    assert reader.report.unknown_blocks == {"hologram": 1}


def test_glued_lines_are_counted_and_problems_listed_up_to_a_limit():
    one = json.dumps(user("u1", "a")).encode()
    two = json.dumps(user("u2", "b", "u1")).encode()
    reader, parsed = read(one + two + b"\n" + b"broken\n" * 120)
    assert [(item.record.uuid, item.line) for item in parsed] == [("u1", 1), ("u2", 1)]
    assert reader.report.glued == 1
    assert (reader.report.problem_count, len(reader.report.problems)) == (120, 50)
    lost, _ = read_objects(*[user(f"u{n}", "x", "GONE") for n in range(60)])
    assert (len(lost.report.warnings), lost.report.warning_counts) == (50, {"missing_parent": 60})
    assert "broken" not in json.dumps(reader.report.as_json())


def test_record_of_two_megabytes_is_read():
    big = user("u1", [result("t1", "x" * 2_000_000)])
    _, (item,) = read_objects(big)
    assert len(item.record.body) > 2_000_000
    assert len(item.record.results[0].text) == 2_000_000


def test_reading_goes_on_from_a_saved_state_as_if_it_had_not_stopped():
    inner = {"type": "user", "message": {"role": "user", "content": "t"}}
    objects = [
        {"type": "mode", "mode": "normal"},
        user("u1", "main", cwd="/project", timestamp="2026-01-01T00:00:00Z"),
        user("x1", "task", isSidechain=True),
        {"type": "mode", "mode": "plan"},
        answer("x2", "N1", text("sub"), "x1", isSidechain=True),
        progress("p1", inner, "u1"),
        {"type": "summary", "summary": "own", "leafUuid": "u1"},
    ]
    whole_reader, whole = read_objects(*objects)
    data = jsonl(objects)
    for split in range(1, len(objects)):
        lines = list(read_lines([data]))
        before = ClaudeCodeReader("a file")
        first = list(before.read(lines[:split]))
        known = {item.record.uuid for item in first}
        state = json.loads(json.dumps(before.state()))
        after = ClaudeCodeReader("a file", state, known.__contains__)
        assert first + list(after.read(lines[split:])) == whole
        assert after.facts() == whole_reader.facts()
        assert after.facts("x1") == whole_reader.facts("x1")
        assert not after.report.warnings
