from __future__ import annotations

from mcp_compact.library import compact_transcript
from tests.transcripts.foreign import AT, jsonl, pairs, read, spoken

START = {
    "sessionId": "s",
    "copilotVersion": "1.0.68",
    "selectedModel": "gpt-5",
    "context": {"cwd": "/app", "branch": "main"},
}


def log(*events):
    lines = [("session.start", START), *events]
    return jsonl({"type": kind, "data": data, "id": f"e{n}", "timestamp": AT} for n, (kind, data) in enumerate(lines))


def main_line(data):
    reader, parsed = read("copilot-cli", data)
    return reader, [item.record for item in parsed if item.agent_id is None]


def test_facts_are_the_session_s():
    shutdown = ("session.shutdown", {"currentTokens": 15_896})
    reader, _ = main_line(log(("user.message", {"content": "Look."}), shutdown))
    facts = reader.facts()
    assert (facts.session_id, facts.cwd, facts.git_branch, facts.model, facts.version) == (
        "s", "/app", "main", "gpt-5", "1.0.68",
    )  # fmt: skip
    assert (facts.title, facts.max_context_tokens) == ("Look.", 15_896)


def test_what_was_typed_counts_and_what_the_client_put_around_it_is_kept():
    _, found = main_line(log(("user.message", {"content": "Look.", "transformedContent": "<now>1</now> Look."})))
    assert spoken(found) == [("user", "Look.")]
    assert any(b"<now>" in record.body for record in found)


def test_a_call_that_no_answer_asked_for_is_a_call():
    _, found = main_line(
        log(
            ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "ls"}}),
            ("tool.execution_complete", {"toolCallId": "c1", "success": True, "result": {"content": "a"}}),
        )
    )
    assert pairs(found) == [("bash", {"command": "ls"}, "a", False)]


def test_a_sub_agent_s_messages_are_a_session_of_its_own():
    reader, found = main_line(
        log(
            ("user.message", {"content": "Look."}),
            (
                "assistant.message",
                {"messageId": "a1", "content": "", "toolRequests": [{"toolCallId": "t1", "name": "task"}]},
            ),
            ("assistant.message", {"messageId": "a2", "content": "Inside.", "parentToolCallId": "t1"}),
            ("tool.execution_complete", {"toolCallId": "t1", "success": True, "result": {"content": "Found."}}),
        )
    )
    assert spoken(found) == [("user", "Look.")]
    assert reader.agents == ("t1",)
    assert reader.facts("t1").parent_session_id == "s"
    assert reader.report.sub_agents == {"t1": 1}


def test_its_own_compaction_is_a_boundary():
    done = {"summaryContent": "They looked.", "preCompactionTokens": 120_000, "postCompactionTokens": 9_000}
    data = log(
        ("user.message", {"content": "Look."}),
        ("session.compaction_start", {}),
        ("session.compaction_complete", done),
        ("user.message", {"content": "Go on."}),
    )
    _, found = main_line(data)
    boundary = next(record for record in found if record.subtype == "compact_boundary")
    assert boundary.raw["compactMetadata"] == {"preTokens": 120_000, "postTokens": 9_000}
    result = compact_transcript([data], output="anthropic")
    assert [message["content"] for message in result.messages] == ["They looked.", "Go on."]


def test_a_compaction_that_failed_leaves_everything():
    data = log(("user.message", {"content": "Look."}), ("session.compaction_complete", {"success": False}))
    assert [m["content"] for m in compact_transcript([data], output="anthropic").messages] == ["Look."]


def test_unknown_groups_of_events_are_counted():
    reader, _ = main_line(log(("user.message", {"content": "x"}), ("novel.thing", {})))
    assert reader.report.unknown_types == {"novel.thing": 1}
