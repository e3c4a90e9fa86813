"""The events that need archive and algorithms: everything is loaded and opened here, and nowhere earlier."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from mcp_compact.adapters.sqlite import operations
from mcp_compact.config import Settings, load_settings
from mcp_compact.hooking import catching_up, noting, snapshots
from mcp_compact.hooking.given import CODEX, GEMINI_CLI, Given

BUSY_MS = 5_000
"""How long a hook that works waits for another process: its client waits for it."""


def make() -> None:
    """Make the archive, or bring its schema up to date. Raises ServerError where that cannot be."""
    with _opened(load_settings()):
        pass


def run(given: Given, now_ms: int) -> str:
    """Handle the event; what is to be said on stdout. Raises CompactError, or HeldBack."""
    settings = load_settings()
    with _opened(settings) as conn:
        if given.event == "Stop":
            catching_up.catch_up(conn, given, settings, now_ms)
            if given.client == GEMINI_CLI:
                snapshots.look_through(conn, given, noting.NAMESPACE)
            return ""
        return _around_compaction(conn, given, settings, now_ms)


def _around_compaction(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> str:
    from mcp_compact.hooking import compacting  # noqa: PLC0415 - the end of a turn, which is often, does without it

    match given.event:
        case "PreCompact":
            lines = compacting.announced(conn, given, settings, now_ms)
            # Nothing that a hook says reaches Codex's summary.
            return "" if given.client == CODEX else lines
        case "SessionStart":
            return noting.answer(given.own_event, "", compacting.started_anew(conn, given, settings, now_ms))
        case "UserPromptSubmit":
            return noting.answer(given.own_event, "", compacting.found_done(conn, given, settings, now_ms))
        case "PostCompact":
            compacting.done(conn, given, settings, now_ms)
        case "SessionEnd":
            compacting.ended(conn, given, settings, now_ms)
    return ""


@contextmanager
def _opened(settings: Settings) -> Iterator[sqlite3.Connection]:
    conn = operations.connect(settings.db, full_sync=settings.synchronous == "full")
    try:
        operations.set_patience_ms(conn, BUSY_MS)
        yield conn
    finally:
        conn.close()
