from __future__ import annotations

import pytest

from mcp_compact.compaction.attachments import Item, read_back, render
from mcp_compact.compaction.findings import found, tool_references
from mcp_compact.testing import Talk, tool_result

REFERENCES = [{"type": "tool_reference", "tool_name": name} for name in ("mcp__gh__list", "mcp__gh__get")]


def did(talk: Talk, name: str, given: dict[str, object], result: str = "ok", *, is_error: bool = False) -> None:
    """A call and its result."""
    call = f"t{len(talk.records)}"
    talk.add("assistant", [{"type": "tool_use", "id": call, "name": name, "input": given}])
    talk.add("user", [tool_result(call, result, is_error=is_error)])


def files(talk: Talk) -> dict[str, str]:
    return {item.name: item.text for item in found(talk.records).files}


# --- tools


def test_tools_that_a_search_brought_are_named() -> None:
    talk = Talk()
    parts = [
        *REFERENCES,
        {"type": "tool_reference", "name": "mcp__x"},
        {"type": "tool_reference"},
        {"type": "other", "name": "no"},
    ]
    record = talk.add("user", [tool_result("t", "") | {"content": parts}])
    assert tool_references(record) == ("mcp__gh__list", "mcp__gh__get", "mcp__x")
    assert tool_references(talk.user("none")) == ()


@pytest.mark.parametrize("name", ["tool_references", "anything"])
def test_tools_that_the_providers_own_search_brought_are_named(name: str) -> None:
    brought = {"type": "tool_search_tool_search_result", name: REFERENCES}
    block = {"type": "tool_search_tool_result", "tool_use_id": "s", "content": brought}
    record = Talk().add(
        "assistant", [{"type": "server_tool_use", "id": "s", "name": "tool_search_tool_regex", "input": {}}, block]
    )
    assert tool_references(record) == (("mcp__gh__list", "mcp__gh__get") if name == "tool_references" else ())


def test_names_in_the_text_of_a_tool_search_count_and_those_in_other_results_do_not() -> None:
    talk = Talk()
    did(talk, "ToolSearch", {"query": "gh"}, "mcp__gh__list, mcp__gh__get\nnothing else")
    did(talk, "Bash", {"command": "ls"}, "mcp__not__this")
    did(talk, "ToolSearch", {"query": "x"}, "mcp__not__found", is_error=True)
    assert found(talk.records).tools == ("mcp__gh__get", "mcp__gh__list")


# --- plan


def test_the_newest_plan_counts_wherever_it_stands() -> None:
    talk = Talk()
    did(talk, "ExitPlanMode", {"plan": "1. first"})
    did(talk, "ExitPlanMode", {"plan": "1. second\n2. then"})
    plan = found(talk.records).plan
    assert plan is not None
    assert (plan.text, plan.seq) == ("1. second\n2. then", 3)
    talk.user("Implement it", raw={"planContent": "# The plan"})
    assert (plan := found(talk.records).plan) is not None
    assert (plan.text, plan.seq) == ("# The plan", 5)


@pytest.mark.parametrize("given", [{}, {"plan": ""}, {"plan": 7}, {"plan": None}])
def test_what_is_no_plan_is_none(given: dict[str, object]) -> None:
    talk = Talk()
    did(talk, "ExitPlanMode", given)
    assert found(talk.records).plan is None


# --- to-dos


def test_the_newest_to_do_list_counts_while_something_is_open() -> None:
    talk = Talk()
    did(talk, "TodoWrite", {"todos": [{"content": "A", "status": "pending"}]})
    did(talk, "TodoWrite", {"todos": [{"content": "A", "status": "completed"}, {"content": "B", "status": "pending"}]})
    todos = found(talk.records).todos
    assert todos is not None
    assert (todos.text, todos.seq) == ("- [completed] A\n- [pending] B", 3)
    did(talk, "TodoWrite", {"todos": [{"content": "B", "status": "completed"}]})
    assert found(talk.records).todos is None


def test_a_list_that_a_client_noted_beside_a_message_counts_where_no_call_tells_it() -> None:
    talk = Talk()
    talk.user("go on", raw={"todos": [{"content": "C", "status": "in_progress"}]})
    todos = found(talk.records).todos
    assert todos is not None
    assert (todos.text, todos.seq) == ("- [in_progress] C", 0)


def test_a_change_of_one_task_goes_on_from_the_list_that_was_put_back() -> None:
    talk = Talk()
    did(talk, "TaskUpdate", {"taskId": "2", "status": "in_progress"})
    before = Item("todos", "", "- #1 [completed] A\n- #2 [pending] B")
    todos = found(talk.records, [before]).todos
    assert todos is not None
    assert (todos.text, todos.seq) == ("- #1 [completed] A\n- #2 [in_progress] B", 0)
    assert found([], [before]).todos == before


# --- skills


def test_a_skills_text_is_the_meta_record_that_names_its_call() -> None:
    talk = Talk()
    did(talk, "Skill", {"skill": "pack:pdf"}, "Launching skill: pack:pdf")
    talk.user("how to read PDF files", is_meta=True, raw={"sourceToolUseID": "t0"})
    talk.user("of another call", is_meta=True, raw={"sourceToolUseID": "t9"})
    talk.user("typed by a person", raw={"sourceToolUseID": "t0"})
    findings = found(talk.records)
    assert [(item.name, item.text) for item in findings.skills] == [("pack:pdf", "how to read PDF files")]
    assert findings.skill_seqs == {3}


def test_a_skill_that_a_command_loaded_is_named_by_its_folder_and_loading_again_makes_it_the_newest() -> None:
    talk = Talk()
    for name in ("a", "b", "a"):
        talk.user(f"Base directory for this skill: /home/me/.skills/{name}\n\n# {name}", is_meta=True)
    assert [item.name for item in found(talk.records).skills] == ["b", "a"]


# --- files


def test_a_read_gives_the_whole_content_without_what_the_client_wrote_under_it() -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "a.py"}, "1\tone\n2\ttwo\n\n<system-reminder>\nbe careful\n</system-reminder>\n")
    assert files(talk) == {"a.py": "1\tone\n2\ttwo"}


def test_a_write_gives_its_content_and_a_failed_one_changes_nothing() -> None:
    talk = Talk()
    did(talk, "Write", {"file_path": "a.py", "content": "new"})
    did(talk, "Write", {"file_path": "a.py", "content": "never written"}, "no", is_error=True)
    assert files(talk) == {"a.py": "new"}


@pytest.mark.parametrize("tool", ["Edit", "MultiEdit", "str_replace_editor", "apply_patch"])
def test_a_file_that_was_edited_after_it_was_read_is_left_out_until_it_is_read_again(tool: str) -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "a.py"}, "old")
    did(talk, tool, {"path": "a.py", "old_str": "o", "new_str": "n"}, "refused", is_error=True)
    assert files(talk) == {"a.py": "old"}
    did(talk, tool, {"path": "a.py", "old_str": "o", "new_str": "n"})
    assert files(talk) == {}
    did(talk, "Read", {"file_path": "a.py"}, "new")
    assert files(talk) == {"a.py": "new"}


def test_a_file_that_an_open_call_is_about_to_change_is_left_out() -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "a.py"}, "old")
    talk.add("assistant", [{"type": "tool_use", "id": "open", "name": "Edit", "input": {"file_path": "a.py"}}])
    assert files(talk) == {}


def test_a_part_that_was_read_again_does_not_replace_the_whole_but_makes_it_the_newest() -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "a.py"}, "all of a")
    did(talk, "Read", {"file_path": "b.py"}, "all of b")
    did(talk, "Read", {"file_path": "a.py", "offset": 5, "limit": 10}, "a part")
    assert list(files(talk).items()) == [("b.py", "all of b"), ("a.py", "all of a")]


def test_a_part_alone_is_told_to_be_one() -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "a.py", "offset": 5, "limit": 10}, "a part")
    (item,) = found(talk.records).files
    assert "not the whole file" in item.note


def test_an_answer_that_the_file_is_unchanged_keeps_what_was_read() -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "a.py"}, "all of a")
    did(talk, "Read", {"file_path": "b.py"}, "all of b")
    did(talk, "Read", {"file_path": "a.py"}, "File unchanged since last read. The content is still current.")
    assert list(files(talk)) == ["b.py", "a.py"]
    assert files(talk)["a.py"] == "all of a"


@pytest.mark.parametrize("path", ["", "a\nb.py", "x" * 5000, None, 7])
def test_a_path_that_could_not_stand_in_a_line_is_no_file(path: object) -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": path}, "text")
    did(talk, "Write", {"file_path": path, "content": "text"})
    assert files(talk) == {}


# --- what was put back is known again


@pytest.mark.parametrize(
    "item",
    [
        Item("pins", "", "Standing instructions of the user, word for word:\n- Never push."),
        Item("plan", "", "1. a\n~~~\nin a frame\n~~~\n2. b"),
        Item("todos", "", "- [pending] A"),
        Item("tools", "", "mcp__a, mcp__b"),
        Item("skill", "pack:pdf", "text\n\n"),
        Item("file", "src/[a]:b.py", "~~~~\n[Kept through compaction: plan]\n~~~~", note="Cut."),
        Item("file", "empty.py", ""),
    ],
    ids=lambda item: item.label,
)
def test_what_is_put_back_can_be_read_back(item: Item) -> None:
    assert read_back(render(item)) == item


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[Kept through compaction: plan]",
        "[Kept through compaction: plan]\nThe plan of this work:\nno frame",
        "[Kept through compaction: plan]\nThe plan of this work:\n~~~\nnever closed",
        "[Kept through compaction: plan:named]\nThe plan of this work:\n~~~\nx\n~~~",
        "[Kept through compaction: skill]\nA skill",
        "[Kept through compaction: nonsense]\nx",
        "I said: [Kept through compaction: pins]\nx",
    ],
)
def test_any_other_text_is_nothing_that_was_put_back(text: str) -> None:
    assert read_back(text) is None
