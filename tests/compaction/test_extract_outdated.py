from __future__ import annotations

import pytest

from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_memory import memory_passages
from mcp_compact.compaction.extract_outdated import without_outdated
from mcp_compact.compaction.extract_passages import passages
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import parse
from mcp_compact.messages.message import Record

CWD = "/srv/app"


def record(role: str, content: object) -> Record:
    return Record(MessageUuid("r"), role, b"", {"cwd": CWD}, decode_message({"role": role, "content": content}))


def ran(name: str, given: object, answer: str, number: int, *, error: bool = False) -> list[Record]:
    part = {"type": "tool_result", "tool_use_id": f"t{number}", "content": answer, "is_error": error}
    call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
    return [record("assistant", [call]), record("user", [part])]


def run(command: str, answer: str, number: int, *, error: bool = False) -> list[Record]:
    return ran("Bash", {"command": command, "description": f"Try {number}"}, answer, number, error=error)


def left(records: list[Record], memory: str = "") -> list[str]:
    splitter = Splitter(CWD)
    own = [*memory_passages(parse(memory), splitter), *passages(records, splitter, CWD)]
    made = without_outdated(own, records, CWD)
    return [line.text for p in made for i, line in enumerate(p.lines) if i not in p.stale]


BROKEN, WELL = "FAIL: test_sum is off by one cent here", "all 12 tests of the shop passed"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("make test", "make test"),
        ("make test 2>&1 | tail -20", "make test"),
        ("cd /srv/app && make test", "make test | tail -5"),
    ],
)
def test_the_output_of_a_command_that_failed_leaves_once_the_same_command_went_well(first: str, second: str):
    assert BROKEN not in left([*run(first, BROKEN, 1), *run(second, WELL, 2)])
    assert BROKEN not in left([*run(first, BROKEN, 1, error=True), *run(second, WELL, 2)])


def test_a_failure_stays_where_nothing_or_another_command_followed_or_it_failed_again():
    assert BROKEN in left(run("make test", BROKEN, 1))
    assert BROKEN in left([*run("make test", BROKEN, 1), *run("make lint", WELL, 2)])
    assert BROKEN in left([*run("make test", BROKEN, 1), *run("make test", "2 failed, 10 passed", 2)])
    assert BROKEN in left([*run("make test", WELL, 1), *run("make test", BROKEN, 2)])
    assert WELL in left([*run("make test", WELL, 1), *run("make test", WELL, 2)])


def test_an_output_that_says_none_failed_is_no_failure():
    said = "ran 12 tests in a while: 0 failed, 0 errors"
    assert said in left([*run("make test", said, 1), *run("make test", WELL, 2)])


def test_a_failed_edit_leaves_once_the_file_was_edited():
    refused = "File has not been read yet, read it first"
    edit = {"file_path": "/srv/app/cart.py", "old_string": "a", "new_string": "b"}
    failed, done = ran("Edit", edit, refused, 1, error=True), ran("Edit", edit, "The file was updated.", 2)
    other = ran("Edit", edit | {"file_path": "/srv/app/tax.py"}, "The file was updated.", 3)
    assert refused not in left([*failed, *done])
    assert refused in left([*failed, *other])


def test_what_a_user_said_when_they_turned_an_edit_down_stays():
    said = "Do we need that file at all, or is it made by a tool?"
    refusal = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
        "the new_string was NOT written to the file). To tell you how to proceed, the user said:\n" + said
    )
    edit = {"file_path": "/srv/app/cart.py", "old_string": "a", "new_string": "b"}
    made = left([*ran("Edit", edit, refusal, 1, error=True), *ran("Edit", edit, "The file was updated.", 2)])
    assert said in made


@pytest.mark.parametrize("command", ["rm old.py", "git rm -q /srv/app/old.py", "make clean && rm -f 'old.py' other.py"])
def test_the_lines_of_a_file_leave_once_it_was_removed_and_those_of_a_new_one_stay(command: str):
    was, now = "def total(): return sum_of_lines", "def total(): return sum_of_the_new_lines"
    read = ran("Read", {"file_path": "/srv/app/old.py"}, was, 1)
    written = ran("Write", {"file_path": "/srv/app/old.py", "content": now}, "done", 3)
    made = left([*read, *run(command, "", 2), *written])
    assert was not in made
    assert now in made
    assert was in left([*read, *run(command, "rm: no such file or directory", 2, error=True)])
    memory = f"## Files and functions\n- `old.py`\n  > {was}\n- `kept.py`\n  > def kept(): return the_other_total"
    made = left(run(command, "", 2), memory)
    assert was not in made
    assert "def kept(): return the_other_total" in made


def test_an_old_memorys_failure_leaves_once_its_command_went_well():
    memory = (
        f"## Workflow and commands\n- Bash make test Try 1\n  > {BROKEN}\n- Bash make lint Try it\n"
        f"  > ERROR the linter found an unused name\n\n## Errors and corrections\n- Bash make test Try 7\n  > {BROKEN} again"
    )
    made = left(run("make test 2>&1", WELL, 2), memory)
    assert BROKEN not in made
    assert f"{BROKEN} again" not in made
    assert "ERROR the linter found an unused name" in made
    assert BROKEN in left([], memory)
