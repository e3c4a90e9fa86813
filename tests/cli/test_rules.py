from __future__ import annotations

import json

from mcp_compact.messages.memory_document import REQUESTS, MemoryDocument, Section
from mcp_compact.service.rules import without_rule

RULE = "Never touch the folder vendor/."


def numbers(ended):
    return {item["text"]: item for item in ended.json["rules"]}


def test_the_rules_of_a_transcript_are_listed_with_their_turn(command, transcript, archive):
    ended = command("rules", str(transcript))
    assert ended.code == 0
    assert "turn 1" in ended.out
    assert RULE in ended.out
    assert not archive.exists()


def test_a_dropped_rule_leaves_the_list_of_those_in_force_and_the_memory(command, transcript):
    assert command("import", str(transcript)).code == 0
    session = json.loads(command("sessions", "--all", "--json").out)["sessions"][0]["session_id"]
    assert command("rules", str(transcript), "--drop", "1").code == 0
    assert numbers(command("rules", str(transcript), "--json"))[RULE]["dropped"] is True
    assert RULE not in command("memory", session).out
    assert command("rules", str(transcript), "--drop", "1").code == 2


def test_a_dropped_rule_can_be_taken_up_again(command, transcript):
    command("rules", str(transcript), "--drop", "1")
    ended = command("rules", str(transcript), "--pin", "1", "--json")
    assert ended.json["changed"] == RULE
    found = numbers(ended)[RULE]
    assert found["pinned"] is True
    assert found["dropped"] is False
    command("rules", str(transcript), "--drop", "1")
    assert numbers(command("rules", str(transcript), "--json"))[RULE]["dropped"] is True


def test_a_number_that_no_rule_has_is_an_error(command, transcript):
    ended = command("rules", str(transcript), "--drop", "7")
    assert ended.code == 2
    assert "There is no rule 7." in ended.err
    assert command("rules", str(transcript), "--drop", "0").code == 2
    assert command("rules", str(transcript), "--drop", "1", "--pin", "1").code == 2


def test_a_session_without_rules_says_so(command, tmp_path):
    path = tmp_path / "s.jsonl"
    record = {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": "fix the parser"}}
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert "none:" in command("rules", str(path)).out


def test_only_the_words_of_the_rule_leave_a_memory():
    document = MemoryDocument(
        "m", (Section(REQUESTS, f"- Fix it. {RULE}\n- {RULE}\n- Go on."), Section("Worklog", RULE))
    )
    made = without_rule(document, RULE)
    assert made.body(REQUESTS) == "- Fix it.\n- Go on."
    assert made.body("Worklog") == RULE
