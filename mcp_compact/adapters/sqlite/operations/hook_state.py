"""What is kept of a session between the hooks of its client: texts that are given once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from mcp_compact.adapters.sqlite.connection import reading, writing
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.sessions import existing
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.store import SessionKey


@dataclass(frozen=True, slots=True)
class HookState:
    """The row as it is; empty where there is none."""

    injection: str = ""
    """Ready for the start after the compaction that was announced last."""
    given: str = ""
    """What that start was given."""
    refinement: str = ""
    """Ready for the next prompt, once."""
    rules: int = 0
    """Rules in force when the last compaction was announced."""
    rules_told: int = 0
    """Of them, those that the client's summary holds."""
    held: int = 0
    """Compactions asked for by hand that were held back."""


_NAMES = tuple(HookState.__dataclass_fields__)
_LOAD = f"SELECT {', '.join(_NAMES)} FROM hook_state WHERE session = ?"  # noqa: S608 - our own columns
_SAVE = (
    f"INSERT OR REPLACE INTO hook_state (session, {', '.join(_NAMES)}) "  # noqa: S608 - our own columns
    f"VALUES (?{', ?' * len(_NAMES)})"
)


def hook_state(conn: sqlite3.Connection, key: SessionKey) -> HookState:
    """What is kept for a session; an empty state where nothing is, or where there is no session."""
    with reading(conn):
        session = state.load(conn, key)
        row = conn.execute(_LOAD, (session.id,)).fetchone() if session else None
        return HookState(*row) if row else HookState()


def put_hook_state(conn: sqlite3.Connection, key: SessionKey, **changes: str | int) -> None:
    """Change what is kept; what is not named stays. Raises CallerError (`no_such_session`)."""
    with writing(conn):
        session = existing(conn, key)
        row = conn.execute(_LOAD, (session.id,)).fetchone()
        values = dict(zip(_NAMES, row, strict=True)) if row else {name: getattr(HookState(), name) for name in _NAMES}
        values |= {name: well_formed(value) if isinstance(value, str) else value for name, value in changes.items()}
        conn.execute(_SAVE, (session.id, *(values[name] for name in _NAMES)))
