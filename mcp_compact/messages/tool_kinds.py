"""What sort of tool a call is of, by its name: harnesses give the same few tools names of their own."""

from __future__ import annotations

READ, EDIT, RUN, SEARCH, FETCH = "read", "edit", "run", "search", "fetch"
USUAL = {READ: "Read", EDIT: "Edit", RUN: "Bash", SEARCH: "Grep", FETCH: "WebFetch"}
"""The name that settings and defaults use for a tool of each kind."""
EDITORS = frozenset(
    ("editor", "str_replace_editor", "str_replace_based_edit_tool", "file_editor", "planning_file_editor",
     "text_editor", "developer__text_editor")
)  # fmt: skip
"""Tools that show a file or change it, as their input says."""

_NAMES = {
    READ: (
        "read", "read_file", "read_files", "read_many_files", "readfile", "view", "view_file", "view_image",
        "view_line_range", "show_file", "cat", "open", "open_file", "goto", "scroll_down", "scroll_up", "fs_read",
        "notebookread",
    ),
    EDIT: (
        "edit", "edit_file", "multiedit", "notebookedit", "write", "write_file", "write_to_file", "fs_write", "create",
        "create_file", "delete_file", "insert", "insert_content", "insert_edit_into_file", "replace",
        "replace_in_file", "replace_file_content", "replace_string_in_file", "multi_replace_string_in_file",
        "search_and_replace", "search_replace", "str_replace", "apply_patch", "apply_diff", "patch", *EDITORS,
    ),
    RUN: (
        "bash", "bashoutput", "bash_command", "read_bash", "write_bash", "stop_bash", "list_bash",
        "shell", "shell_command", "local_shell", "container.exec", "developer__shell", "exec", "exec_command",
        "write_stdin", "unified_exec", "execute", "execute_command", "execute_bash", "execute_ipython_cell",
        "run", "run_command", "run_commands", "run_shell_command", "run_in_terminal", "run_terminal_cmd",
        "run_terminal_command", "run_ipython", "get_terminal_output", "terminal",
        "powershell", "read_powershell", "write_powershell", "stop_powershell", "list_powershell",
    ),
    SEARCH: (
        "grep", "grep_files", "grep_search", "glob", "ls", "list", "list_dir", "list_directory", "list_files", "rg",
        "find", "find_by_name", "find_file", "find_files", "find_path", "file_search", "search", "search_dir",
        "search_file", "search_files", "search_file_content", "search_codebase", "codebase_search", "semantic_search",
        "list_code_definition_names",
    ),
    FETCH: (
        "webfetch", "web_fetch", "web_read", "fetch", "fetch_url", "fetch_web_content", "fetch_webpage", "url_fetch",
        "read_url_content", "read_web_page", "browse", "websearch", "web_search", "search_web", "google_web_search",
        "codesearch",
    ),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}


def tool_kind(name: str) -> str:
    """`read`, `edit`, `run`, `search` or `fetch`; empty for any other tool (those of MCP servers above all)."""
    return _KINDS.get(name.lower(), "")


def usual_name(name: str) -> str:
    """The name that settings use for a tool of this kind; the tool's own where its kind is not known."""
    return USUAL.get(tool_kind(name), name)
