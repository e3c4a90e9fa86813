"""New sessions: an empty one, or one that begins with the live context of another."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.connection import writing
from mcp_compact.adapters.sqlite.operations import derived, state
from mcp_compact.adapters.sqlite.operations import facts as stated
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.adapters.sqlite.operations.fork_rows import Fork, copy_everything
from mcp_compact.adapters.sqlite.operations.live import live_rows, recount, service_rows
from mcp_compact.adapters.sqlite.operations.sessions import existing
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.ports.store import SessionFacts, SessionKey


def create_session(conn: sqlite3.Connection, key: SessionKey, facts: SessionFacts, now_ms: int) -> bool:
    """A new, empty session; False where it is there already (nothing of it is changed)."""
    with writing(conn):
        if state.load(conn, key) is not None:
            return False
        session = state.create(conn, key, now_ms)
        stated.take(session, facts, is_import=False)
        derived.save(conn, session)
        return True


def fork_session(
    conn: sqlite3.Connection, key: SessionKey, new_key: SessionKey, up_to: MessageUuid | None, now_ms: int
) -> int:
    """A new session that begins with this one's live context, up to and with a message; how many records that is.

    Memory, pins, standing instructions and discovered tools come along as far as they belong to it. The fork's
    owner is `loop`, for no client knows of it. Raises CallerError (`no_such_session`, `session_exists`,
    `unknown_message`).
    """
    if safe_id(key.namespace) != safe_id(new_key.namespace):
        raise ValueError("a fork stays in the namespace of its parent")
    with writing(conn):
        old = existing(conn, key)
        if state.load(conn, new_key) is not None:
            raise CallerError(
                "session_exists", f"There is a session {new_key.session_id!r} already.", "Choose another id."
            )
        fork = _begin(conn, old, state.create(conn, new_key, now_ms), up_to)
        copy_everything(conn, fork)
        _describe(conn, fork)
        derived.save(conn, fork.new)
        return len(fork.rows)


def _begin(conn: sqlite3.Connection, old: Session, new: Session, up_to: MessageUuid | None) -> Fork:
    """What the fork takes of the live context. Raises CallerError (`unknown_message`)."""
    service = service_rows(conn, old)
    known = {row.seq for row in service}
    rows = (*service, *(row for row in live_rows(conn, old) if row.seq not in known))
    end = len(rows)
    if up_to is not None:
        asked = safe_id(up_to)
        end = next((at for at, row in enumerate(rows, start=1) if row.uuid == asked), 0)
        if not end:
            raise CallerError(
                "unknown_message",
                f"{up_to!r} is not in the live context of {old.session_id!r}.",
                "get_messages_after_boundary lists the messages that are.",
            )
    left_out = rows[max(end, len(service)) :]
    return Fork(old, new, rows[:end], min(end, len(service)), left_out[0].seq - 1 if left_out else old.last_seq)


def _describe(conn: sqlite3.Connection, fork: Fork) -> None:
    """Fill in the row of the new session."""
    old, new, rows = fork.old, fork.new, fork.rows
    new.parent_session_id, new.forked_at = old.session_id, rows[-1].seq if rows else 0
    new.title, new.model, new.context_window, new.cwd, new.owner = (
        old.title,
        old.model,
        old.context_window,
        old.cwd,
        "loop",
    )
    new.overhead_tokens, new.overhead_source = old.overhead_tokens, old.overhead_source
    new.last_seq = new.message_count = new.head_seq = len(rows)
    new.head_uuid = rows[-1].uuid if rows else ""
    new.body_bytes = conn.execute(
        "SELECT coalesce(sum(length(b.data)), 0) FROM record r JOIN body b ON b.id = r.body_id WHERE r.session = ?",
        (new.id,),
    ).fetchone()[0]
    new.totals = recount(conn, new)
