from __future__ import annotations

import pytest

from mcp_compact.compaction.extract_passages import COMMAND, EDIT, READ, call_origin
from mcp_compact.compaction.micro import is_compactable
from mcp_compact.compaction.policy import COMPACTABLE_TOOLS, MicroPolicy
from mcp_compact.messages.tool_kinds import tool_kind, usual_name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", "read"),
        ("read_file", "read"),
        ("read_many_files", "read"),
        ("Edit", "edit"),
        ("replace", "edit"),
        ("apply_patch", "edit"),
        ("write_to_file", "edit"),
        ("Bash", "run"),
        ("run_shell_command", "run"),
        ("exec_command", "run"),
        ("write_stdin", "run"),
        ("execute_bash", "run"),
        ("Grep", "search"),
        ("search_file_content", "search"),
        ("list_directory", "search"),
        ("webfetch", "fetch"),
        ("google_web_search", "fetch"),
        ("mcp__files__read_file", ""),
        ("Task", ""),
        ("", ""),
    ],
)
def test_tools_of_other_harnesses_are_told_by_their_names(name: str, kind: str):
    assert tool_kind(name) == kind


def test_every_tool_that_may_be_cleared_has_a_kind_and_each_kind_one_usual_name():
    assert all(tool_kind(name) for name in COMPACTABLE_TOOLS)
    assert {usual_name(name) for name in COMPACTABLE_TOOLS} <= set(COMPACTABLE_TOOLS)
    assert usual_name("mcp__x__y") == "mcp__x__y"


@pytest.mark.parametrize(
    "name", ["read", "read_file", "shell", "run_shell_command", "grep_search", "str_replace_editor"]
)
def test_their_results_may_be_cleared_as_those_of_the_usual_tools(name: str):
    assert is_compactable(name, MicroPolicy())
    assert not is_compactable(name, MicroPolicy(exclude_tools=(name,)))


def test_what_is_excluded_by_its_usual_name_is_excluded_under_every_name():
    assert not is_compactable("run_shell_command", MicroPolicy(exclude_tools=("Bash",)))
    assert is_compactable("read_file", MicroPolicy(exclude_tools=("Bash",)))


@pytest.mark.parametrize(
    ("name", "origin"), [("write_stdin", COMMAND), ("execute_bash", COMMAND), ("replace", EDIT), ("cat", READ)]
)
def test_the_extractor_knows_them(name: str, origin: str):
    assert call_origin(name) == origin
