"""What the input of a tool call says of a file: which one, and which of its lines. It is foreign JSON of any shape."""

from __future__ import annotations

from typing import TypeAlias

from mcp_compact.messages.blocks import OBJECT

Lines: TypeAlias = tuple[int, int]
"""First line, and the line after the last; lines count from 1."""
PATH_KEYS = ("file_path", "notebook_path", "path", "filePath", "absolute_path", "target_file")
_OF_READS = frozenset((*PATH_KEYS, "offset", "limit"))
DEFAULT_LINES = 2_000
"""What a read gives that names no limit."""
MAX_PATH_CHARS = 4096
MOST_LINES = 10**12


def path_of(value: object) -> str:
    """The file or folder that an input names, empty where it names none."""
    if not isinstance(value, OBJECT):
        return ""
    for key in PATH_KEYS:
        path = value.get(key)
        if isinstance(path, str) and path:
            return path if len(path) <= MAX_PATH_CHARS else ""
    return ""


def lines_of(value: object) -> Lines | None:
    """The lines that a read asks for; None where the input asks for anything else (pages, a pattern)."""
    if not isinstance(value, OBJECT) or not _OF_READS.issuperset(value) or not path_of(value):
        return None
    first, limit = _number(value.get("offset"), 1), _number(value.get("limit"), DEFAULT_LINES)
    if first is None or limit is None:
        return None
    return max(first, 1), max(first, 1) + limit


def covers(later: Lines, earlier: Lines) -> bool:
    """Does one read give every line of another?"""
    return later[0] <= earlier[0] and later[1] >= earlier[1]


def _number(value: object, default: int) -> int | None:
    """A count of lines, the default for none; None for what is no count."""
    if value is None:
        return default
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_LINES
    return value if is_count and isinstance(value, int) else None
