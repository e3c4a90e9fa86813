"""`mcp-compact statusline`: one line for Claude Code's status line, from what the client says on stdin.

It runs several times a minute, so it loads next to nothing; and whatever happens, it prints a line and ends well:
a client shows nothing of one that fails.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Mapping

from mcp_compact.adapters.sqlite.hook_rows import last_compaction, open_known, rules_kept
from mcp_compact.cli.text import age, count, tokens
from mcp_compact.errors import CompactError
from mcp_compact.places import database, is_off

LOCAL = "local"
MOST_INPUT = 4_000_000
"""Bytes of stdin that are read; what a client sends is a few thousand."""

MOST_PERCENT = 1000
"""A share beyond this is none; the window may be told too small."""

YELLOW, RED = "33", "31"


class Level:
    """How full the context is, in tokens; None where the client does not say. A dataclass would double the cost."""

    __slots__ = ("used", "window")

    def __init__(self, used: int | None = None, window: int | None = None) -> None:
        self.used, self.window = used, window

    @property
    def code(self) -> str:
        """The colour: yellow where a compaction is near, red where it is due."""
        if self.used is None or not self.window:
            return ""
        due = max(self.window - 33_000, self.window // 2)
        near = max(due - 20_000, due * 4 // 5)
        return RED if self.used >= due else YELLOW if self.used >= near else ""

    def __str__(self) -> str:
        if self.used is None:
            return "context: not known yet"
        if not self.window or self.used > self.window:
            # Clients have named a window smaller than what they sent.
            return f"context {tokens(self.used)}"
        return f"context {100 * self.used // self.window}% of {tokens(self.window).replace('.0', '')}"


def run(_: object = None) -> int:
    """Print the line. Never fails."""
    from mcp_compact.cli.environment import wants_colours

    said = _said()
    level = _level(said)
    text = f"\x1b[{level.code}m{level}\x1b[0m" if level.code and wants_colours() else str(level)
    print(" | ".join([text, *_kept(said)]))
    return 0


def _said() -> Mapping[str, object]:
    """What the client says; empty where it is no JSON object."""
    if sys.stdin.isatty():
        return {}
    try:
        found = json.loads(sys.stdin.buffer.read(MOST_INPUT))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _level(said: Mapping[str, object]) -> Level:
    """The tokens of the last request, as the provider counted them: the best that a client has."""
    context = said.get("context_window")
    if not isinstance(context, dict):
        return Level()
    usage = context.get("current_usage")
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    known = [n for part in parts if (n := _number(usage.get(part))) is not None] if isinstance(usage, dict) else []
    window = _number(context.get("context_window_size"))
    return Level(sum(known) if known else _by_percentage(context, window), window)


def _by_percentage(context: Mapping[str, object], window: int | None) -> int | None:
    """The tokens that the client's own percentage means; None where it tells none. Its totals are of the session."""
    share = context.get("used_percentage")
    if not window or isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= MOST_PERCENT:
        return None
    # Rounded up: what is shown is rounded down again.
    return -int(-window * share // 100)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _kept(said: Mapping[str, object]) -> list[str]:
    """What the archive says of the session; that it says nothing is said too."""
    session, cwd = said.get("session_id"), said.get("cwd")
    try:
        path = database()
        if is_off(cwd if isinstance(cwd, str) else "", path):
            return ["mcp-compact: off here"]
        conn = open_known(path)
        if conn is None or not isinstance(session, str):
            return ["mcp-compact: nothing kept yet"]
        try:
            return _session_words(conn, session)
        finally:
            conn.close()
    except (sqlite3.Error, OSError, ValueError, CompactError):
        return ["mcp-compact: OFF, run mcp-compact doctor"]


def _session_words(conn: sqlite3.Connection, session: str) -> list[str]:
    rules = rules_kept(conn, LOCAL, session)
    times, at_ms = last_compaction(conn, LOCAL, session)
    words = [f"{count(rules, 'rule')} kept"]
    if times:
        from mcp_compact.adapters.system import SystemClock

        words.append(f"compacted {age(at_ms, SystemClock().now_ms())}" + (f" ({times} times)" if times > 1 else ""))
    return words
