"""What sort of tool a call is of, by its name: harnesses give the same few tools names of their own."""

from __future__ import annotations

READ, EDIT, RUN, SEARCH, FETCH = "read", "edit", "run", "search", "fetch"
USUAL = {READ: "Read", EDIT: "Edit", RUN: "Bash", SEARCH: "Grep", FETCH: "WebFetch"}
"""The name that settings and defaults use for a tool of each kind."""
EDITORS = frozenset(("editor", "str_replace_editor", "str_replace_based_edit_tool"))
"""Tools that show a file or change it, as their input says."""

_NAMES = {
    READ: (
        "read", "read_file", "read_files", "read_many_files", "readfile", "view", "view_file", "cat", "open",
        "open_file", "fs_read", "notebookread",
    ),
    EDIT: (
        "edit", "edit_file", "multiedit", "notebookedit", "write", "write_file", "write_to_file", "fs_write", "create",
        "create_file", "insert", "replace", "replace_in_file", "search_replace", "str_replace", "apply_patch",
        "apply_diff", "patch", "insert_edit_into_file", *EDITORS,
    ),
    RUN: (
        "bash", "bashoutput", "read_bash", "write_bash", "shell", "shell_command", "local_shell", "exec_command",
        "write_stdin", "unified_exec", "run", "run_command", "run_commands", "run_shell_command", "run_in_terminal",
        "run_ipython", "execute_command", "execute_bash", "execute_ipython_cell", "terminal", "powershell",
    ),
    SEARCH: (
        "grep", "grep_search", "glob", "ls", "list", "list_dir", "list_directory", "list_files", "rg", "find",
        "find_file", "find_files", "file_search", "search", "search_dir", "search_file", "search_files",
        "search_file_content", "search_codebase", "codebase_search", "list_code_definition_names",
    ),
    FETCH: (
        "webfetch", "web_fetch", "fetch", "fetch_url", "fetch_web_content", "url_fetch", "websearch", "web_search",
        "google_web_search",
    ),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}


def tool_kind(name: str) -> str:
    """`read`, `edit`, `run`, `search` or `fetch`; empty for any other tool (those of MCP servers above all)."""
    return _KINDS.get(name.lower(), "")


def usual_name(name: str) -> str:
    """The name that settings use for a tool of this kind; the tool's own where its kind is not known."""
    return USUAL.get(tool_kind(name), name)
