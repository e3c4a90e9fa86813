from __future__ import annotations

import json

import pytest

from mcp_compact.compaction.extract_tasks import is_task, task_lines, tasks, tells_of
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import parse
from mcp_compact.messages.message import Record


def call(name: str, given: object, id_: str = "t1") -> Record:
    content = [{"type": "tool_use", "id": id_, "name": name, "input": given}]
    return Record(MessageUuid("a"), "assistant", b"", {}, decode_message({"role": "assistant", "content": content}))


def answer(text: str, id_: str = "t1", *, error: bool = False) -> Record:
    content = [{"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": error}]
    return Record(MessageUuid("u"), "user", b"", {}, decode_message({"role": "user", "content": content}))


def lines(*records: Record, previous: str = "") -> list[str]:
    return task_lines(tasks(records, parse(previous) if previous else None))


def test_the_newest_list_stands_for_all_earlier_ones():
    old = call("TodoWrite", {"todos": [{"content": "a", "status": "pending"}]})
    new = call(
        "TodoWrite", {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]}
    )
    assert lines(old, new) == ["[completed] a", "[in_progress] b"]


def test_plans_of_other_harnesses_are_lists_too():
    plan = call("update_plan", {"explanation": "x", "plan": [{"step": "port it", "status": "pending"}]})
    assert lines(plan) == ["[pending] port it"]


def test_single_tasks_are_made_numbered_and_updated():
    records = [
        call("TaskCreate", {"subject": "Fix the parser"}, "c1"),
        answer("Task #7 created successfully: Fix the parser", "c1"),
        call("TaskCreate", {"subject": "Write docs"}, "c2"),
        answer("Task #8 created successfully: Write docs", "c2"),
        call("TaskUpdate", {"taskId": "7", "status": "in_progress"}, "c3"),
        call("TaskUpdate", {"taskId": "8", "status": "deleted"}, "c4"),
    ]
    assert lines(*records) == ["#7 [in_progress] Fix the parser"]


def test_a_task_that_failed_to_be_made_is_none_and_one_without_a_number_is_known_by_its_text():
    failed = [call("TaskCreate", {"subject": "x"}, "c1"), answer("no", "c1", error=True)]
    plain = [call("TaskCreate", {"subject": "y"}, "c2"), answer("made", "c2")]
    assert lines(*failed, *plain) == ["[pending] y"]


def test_where_nothing_is_open_there_is_nothing_to_say():
    assert lines(call("TodoWrite", {"todos": [{"content": "a", "status": "done"}]})) == []
    assert (
        lines(call("TodoWrite", {"todos": []}), call("TodoWrite", {"todos": "x"}), call("TaskCreate", {}), call("x", 1))
        == []
    )


def test_only_the_last_finished_tasks_stay_beside_the_open_ones():
    todos = [{"content": f"t{n}", "status": "completed"} for n in range(9)] + [{"content": "z", "status": "pending"}]
    assert lines(call("TodoWrite", {"todos": todos})) == [*(f"[completed] t{n}" for n in (6, 7, 8)), "[pending] z"]


def test_tasks_of_the_old_memory_go_on_and_take_updates():
    previous = "## Task\n- #3 [pending] Port refunds\n- [pending] talk to Ann\nplain words\n"
    update = call("TaskUpdate", {"taskId": "#3", "status": "completed"})
    assert lines(update, previous=previous) == ["#3 [completed] Port refunds", "[pending] talk to Ann"]


def test_a_line_is_told_from_other_text():
    assert is_task("#3 [in_progress] x")
    assert not is_task("[link](x) y")
    assert not is_task("plain")


STEPS = ("Inspect the references", "Delete the package", "Run the checks")


def steps(*states: str, key: str = "content") -> list[dict[str, str]]:
    return [{key: step, "status": state} for step, state in zip(STEPS, states, strict=True)]


LISTS = {
    "TodoWrite": lambda *states: {"todos": steps(*states)},
    "todowrite": lambda *states: {"todos": steps(*states)},
    "update_plan": lambda *states: {"explanation": "so far", "plan": steps(*states, key="step")},
    "task_tracker": lambda *states: {"command": "plan", "task_list": steps(*states, key="title")},
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_whose_newest_state_is_all_done_leaves_nothing_open_with_or_without_a_result(name):
    begun = call(name, LISTS[name]("in_progress", "pending", "pending"), "c1")
    done = call(name, LISTS[name]("completed", "completed", "completed"), "c2")
    previous = f"## Task\n- [in_progress] {STEPS[0]}\n- [pending] {STEPS[1]}\n"

    assert lines(begun, answer("ok", "c1"), done, answer("ok", "c2")) == []
    assert lines(begun, done) == lines(done, previous=previous) == []
    assert len(lines(done, begun)) == len(STEPS)


@pytest.mark.parametrize(
    "told",
    [
        json.dumps(steps("completed", "completed", "pending")),
        json.dumps({"oldTodos": steps("pending", "pending", "pending"), "todos": steps("done", "done", "pending")}),
        f"#1 [completed] {STEPS[0]}\n#2 [completed] {STEPS[1]}\n\n#3 [pending] {STEPS[2]}",
        f"- [done] {STEPS[0]}\n- [done] {STEPS[1]}\n- [pending] {STEPS[2]}\n",
    ],
)
@pytest.mark.parametrize("name", ["todoread", "TaskList", "update_plan"])
def test_a_list_that_a_tool_answers_with_is_the_newest_state(name, told):
    begun = call("TodoWrite", {"todos": steps("in_progress", "pending", "pending")}, "c1")
    asked = [call(name, {}, "c2"), answer(told, "c2")]

    assert [line.split("] ")[0][-4:] for line in lines(begun, *asked)] in (
        ["eted", "eted", "ding"],
        ["done", "done", "ding"],
    )
    assert lines(begun, call(name, {}, "c2"), answer(told, "c2", error=True)) == lines(begun)
    assert lines(begun, call("Read", {}, "c2"), answer(told, "c2")) == lines(begun)
    assert lines(begun, call(name, {}, "c2"), answer("[1, {", "c2")) == lines(begun)


def test_a_task_whose_result_is_missing_or_cleared_is_known_and_takes_updates():
    made = call("TaskCreate", {"subject": "Write docs"}, "c1")
    content = [{"type": "tool_result", "tool_use_id": "c1", "content": "[Old tool result content cleared]"}]
    raw = {"toolUseResult": {"task": {"id": "8", "subject": "Write docs"}}}
    cleared = Record(MessageUuid("u"), "user", b"", raw, decode_message({"role": "user", "content": content}))

    assert lines(made) == ["[pending] Write docs"]
    assert lines(made, cleared) == ["#8 [pending] Write docs"]
    assert lines(made, cleared, call("TaskUpdate", {"taskId": "8", "status": "completed"}, "c2")) == []


def test_a_text_that_says_tasks_and_little_else_is_told_from_one_that_says_more():
    known = [*STEPS, "test"]

    assert tells_of(f"{STEPS[0]} in_progress {STEPS[1]} pending", known)
    assert not tells_of(f"{STEPS[1]}, but first ask Ann whether the shop still needs what it exports today", known)
    assert not tells_of("test", known)
    assert not tells_of("", known)
