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


OF_HARNESSES: dict[str, dict[str, tuple[str, ...]]] = {
    "codex": {
        "read": ("read_file", "view_image"),
        "edit": ("apply_patch",),
        "run": ("shell", "shell_command", "local_shell", "container.exec", "exec_command", "write_stdin"),
        "search": ("grep_files", "list_dir"),
        "fetch": ("web_search",),
        "": ("update_plan", "spawn_agent"),
    },
    "gemini-cli": {
        "read": ("read_file", "read_many_files"),
        "edit": ("replace", "write_file"),
        "run": ("run_shell_command",),
        "search": ("grep_search", "search_file_content", "glob", "list_directory"),
        "fetch": ("web_fetch", "google_web_search"),
        "": ("write_todos", "save_memory", "activate_skill", "ask_user", "get_internal_docs", "update_topic"),
    },
    "opencode": {
        "read": ("read",),
        "edit": ("edit", "write", "multiedit", "patch", "apply_patch"),
        "run": ("bash",),
        "search": ("grep", "glob", "list"),
        "fetch": ("webfetch", "websearch", "codesearch"),
        "": ("todowrite", "todoread", "task", "skill"),
    },
    "pi": {"read": ("read",), "edit": ("edit", "write"), "run": ("bash",), "search": ("grep", "find", "ls")},
    "copilot-cli": {
        "read": ("view", "show_file"),
        "edit": ("create", "edit", "apply_patch", "str_replace_editor"),
        "run": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash", "powershell", "write_powershell"),
        "search": ("grep", "rg", "glob"),
        "fetch": ("web_fetch", "web_search"),
        "": ("report_intent", "update_todo", "task", "read_agent"),
    },
    "cline": {
        "read": ("read_file", "read_files"),
        "edit": ("write_to_file", "replace_in_file", "editor", "apply_patch"),
        "run": ("execute_command", "run_commands"),
        "search": ("search_files", "list_files", "list_code_definition_names", "search_codebase"),
        "fetch": ("web_fetch", "web_search", "fetch_web_content"),
        "": ("attempt_completion", "ask_followup_question", "use_mcp_tool"),
    },
    "openhands": {
        "edit": ("str_replace_editor", "edit_file", "file_editor", "planning_file_editor", "edit", "write"),
        "read": ("read",),
        "run": ("execute_bash", "execute_ipython_cell", "run", "run_ipython", "terminal"),
        "search": ("glob", "grep"),
        "fetch": ("browse", "web_read"),
        "": ("think", "finish", "task_tracker"),
    },
    "swe-agent": {
        "read": ("open", "goto", "scroll_down", "scroll_up"),
        "edit": ("edit", "create", "insert", "str_replace_editor"),
        "run": ("bash",),
        "search": ("find_file", "search_dir", "search_file"),
        "": ("submit",),
    },
    "terminus": {"run": ("bash_command",), "": ("mark_task_complete",)},
}
"""The tools of each harness, as their sources and their documentation name them."""


@pytest.mark.parametrize("harness", OF_HARNESSES)
def test_the_tools_of_every_harness_have_their_kinds(harness: str):
    asked = {name: kind for kind, names in OF_HARNESSES[harness].items() for name in names}
    assert {name: tool_kind(name) for name in asked} == asked


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
