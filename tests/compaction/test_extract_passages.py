from __future__ import annotations

import pytest

from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_passages import (
    ASSISTANT,
    CALL,
    CHANGED,
    COMMAND,
    EDIT,
    ERROR,
    FILE,
    FOUND,
    INJECTED,
    MEMORY,
    OUTPUT,
    PASTED,
    READ,
    TODO,
    USER,
    Passage,
    call_origin,
    call_path,
    passages,
    removed_lines,
    section_of,
    short_path,
    strings,
    with_stale,
    working_directory,
)
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import ERRORS, FILES, LEARNINGS, RESULTS, WORKLOG
from mcp_compact.messages.message import Record

CWD = "/srv/app"


def record(role: str, content: object, **more) -> Record:
    return Record(MessageUuid("r"), role, b"", {"cwd": CWD}, decode_message({"role": role, "content": content}), **more)


def made(*records: Record) -> list[tuple[str, str, list[str]]]:
    found = passages(records, Splitter(CWD), CWD)
    return [(p.origin, p.head, [line.text for line in p.lines]) for p in found]


def use(name: str, given: object, id_: str = "t") -> Record:
    return record("assistant", [{"type": "tool_use", "id": id_, "name": name, "input": given}])


def result(text: str, id_: str = "t", *, error: bool = False) -> Record:
    return record("user", [{"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": error}])


def test_words_of_the_user_and_the_model_are_passages_and_meta_text_is_never_quoted():
    records = [record("user", "port it"), record("assistant", "I do."), record("user", "a skill", is_meta=True)]
    found = passages(records, Splitter(""), "")
    assert [(p.origin, p.quotable) for p in found] == [(USER, True), (ASSISTANT, True), (INJECTED, False)]
    assert passages([record("user", "sum", is_summary=True)], Splitter(""), "") == []


def test_a_read_file_stands_under_its_path():
    assert made(use("Read", {"file_path": f"{CWD}/a.py"}), result("1→x = 1")) == [
        (READ, "a.py", ["Read /srv/app/a.py"]),
        (FILE, "a.py", ["x = 1"]),
    ]


def test_what_our_own_tools_tell_of_the_context_is_no_part_of_the_work():
    calls = [
        record("assistant", [{"type": "tool_use", "id": name, "name": f"mcp__mcp-compact__{name}", "input": {}}])
        for name in ("get_context_status", "get_session_memory", "search_messages")
    ]
    found = made(
        *calls, result('{"tokens": 1}', "get_context_status"), result("notes", "get_session_memory"),
        result("the port is 8765", "search_messages"),
    )  # fmt: skip
    assert [lines for _, _, lines in found] == [["mcp__mcp-compact__search_messages"], ["the port is 8765"]]


def test_an_edit_is_quoted_by_its_new_text():
    found = made(use("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}), result("ok"))
    assert found == [(EDIT, "a.py", ["Edit a.py"]), (EDIT, "a.py", ["x = 2"]), (CHANGED, "a.py", ["ok"])]


def test_what_a_command_answered_stands_under_the_command():
    found = made(use("Bash", {"command": "ls", "description": "List"}), result("a.py"), result("orphan", "other"))
    assert found == [
        (COMMAND, "Bash ls List", ["Bash ls List"]),
        (OUTPUT, "Bash ls List", ["a.py"]),
        (FOUND, "", ["orphan"]),
    ]


def test_a_failed_call_is_an_error_and_a_plan_may_be_quoted():
    assert made(use("Grep", {"pattern": "x"}), result("no", error=True))[-1][0] == ERROR
    plan = passages([use("ExitPlanMode", {"plan": "# Port\nfirst the parser\nthen the rest"})], Splitter(""), "")
    todo = passages([use("TodoWrite", {"todos": [{"content": "x", "status": "pending"}]})], Splitter(""), "")
    assert [(p.origin, p.quotable) for p in (*plan, *todo)] == [(TODO, True), (TODO, False)]


def test_lines_of_a_file_that_a_later_edit_took_away_are_stale():
    records = [
        use("Read", {"file_path": "a.py"}, "r"),
        result("1→x = 1\n2→y = 2", "r"),
        use(
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "x = 1\ny = 2", "new_string": "y = 2\nz = 3"}]},
            "e",
        ),
        use("Read", {"file_path": "a.py"}, "s"),
        result("1→x = 1", "s"),
    ]
    old = Passage(-1, MEMORY, FILES, "a.py", Splitter("").lines("1→x = 1\n2→y = 2\nz = 0"), from_tool=True)
    found = [
        p for p in with_stale([old, *passages(records, Splitter(""), "")], records, "") if p.origin in (MEMORY, FILE)
    ]
    assert [p.stale for p in found] == [frozenset({0}), frozenset({0}), frozenset()]


def test_what_was_removed_is_the_old_text_without_the_new():
    assert removed_lines({"old_string": "a\nb\n", "new_string": "b"}) == {"a"}
    assert removed_lines({"edits": [{"old_str": "a", "new_str": "c"}]}) == {"a"}
    assert removed_lines({"content": "a"}) == set()
    assert removed_lines("a") == set()


@pytest.mark.parametrize(
    ("name", "origin"),
    [("Bash", COMMAND), ("mcp__x__run_shell_command", COMMAND), ("apply_patch", EDIT), ("str_replace_editor", EDIT), ("Write", EDIT),
     ("read_file", READ), ("view", READ), ("TodoWrite", TODO), ("update_plan", TODO), ("Grep", CALL), ("WebSearch", CALL), ("", CALL)],
)  # fmt: skip
def test_tools_of_many_harnesses_are_told_by_words_in_their_names(name, origin):
    assert call_origin(name) == origin


def test_the_path_of_a_call_is_found_under_any_known_key():
    assert call_path({"notebook_path": "a.ipynb"}) == "a.ipynb"
    assert call_path({"path": "x\ny"}) == ""
    assert call_path("a.py") == ""
    assert short_path("/srv/app/a.py", "/srv/app/") == "a.py"
    assert short_path("/srv/app/a.py", "") == "/srv/app/a.py"


def test_all_text_of_an_input_is_read_in_order():
    assert strings({"a": "x", "b": ["y", {"c": 3, "d": True, "e": None}]}) == ["x", "y", "3"]


def test_the_working_directory_is_the_first_that_a_record_names():
    assert working_directory([record("user", "x")]) == CWD
    assert working_directory([]) == ""


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("15 tests pass now", RESULTS),
        ("The build is broken", ERRORS),
        ("It turns out that x is y", LEARNINGS),
        ("I read on", WORKLOG),
    ],
)
def test_what_the_model_said_is_told_apart_by_its_words(text, section):
    (passage,) = passages([record("assistant", text)], Splitter(""), "")
    assert section_of(passage, text) == section


def test_a_document_that_a_user_pasted_is_quoted_as_data_and_what_they_typed_beside_it_is_not_said_twice():
    plan = "\n".join(f"- Step {number} changes the function step_{number} of the shop." for number in range(200))
    found = passages([record("user", f"Please do this plan.\n\n# The plan\n{plan}")], Splitter(""), "")
    assert [(p.origin, p.from_tool, p.quotable) for p in found] == [(USER, False, True), (PASTED, True, True)]
    said, pasted = ([line.text for line in p.lines] for p in found)
    assert said == ["Please do this plan."]
    assert "- Step 7 changes the function step_7 of the shop." in pasted
    assert "Please do this plan." not in pasted


def test_a_report_of_an_agent_in_the_background_is_quoted_as_data_and_other_injected_text_is_not():
    report = "<task-notification>\n<summary>The cart rounds down.</summary>\n</task-notification>\nFull transcript available at: x"
    found = passages([record("user", report)], Splitter(""), "")
    quoted = [(p.origin, p.from_tool) for p in found if p.quotable]
    assert quoted == [(FOUND, True)]
    skill = "Base directory for this skill: /srv\n" + "Always do as this text says, it is long. " * 300
    for own in (record("user", skill), record("user", skill, is_meta=True), record("user", report, is_meta=True)):
        assert [p.origin for p in passages([own], Splitter(""), "") if p.quotable] == []


def test_a_list_of_steps_is_no_text_to_quote_whatever_its_tool_is_called():
    given = {"explanation": "Remove it.", "plan": [{"step": "Inspect\nthe references", "status": "pending"}]}
    found = passages([use("update_plan", given)], Splitter(""), "")

    assert [(p.origin, p.quotable) for p in found] == [(TODO, False)]


def test_what_a_harness_writes_around_an_output_is_no_line():
    output = (
        "Chunk ID: 143744\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\nthe total is rounded twice"
    )
    found = passages([use("exec_command", {"cmd": "make"}), result(output)], Splitter(""), "")

    assert [line.text for line in found[-1].lines] == ["the total is rounded twice"]
