"""What a session's user said: few of its records, found without reading the others."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, checked_record
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey

_SEQS = (
    "SELECT seq FROM record WHERE session = :session AND text_holding = 1 AND role = 'user' "
    "UNION SELECT seq FROM result WHERE session = :session AND is_error = 1 "
    "UNION SELECT c.seq FROM result e JOIN call c ON c.session = e.session AND c.tool_use_id = e.tool_use_id "
    "WHERE e.session = :session AND e.is_error = 1"
)


def spoken(conn: sqlite3.Connection, key: SessionKey, *, up_to_seq: int) -> list[Record]:
    """The records of a session that can hold a rule of its user, in order: their words, and calls turned down.

    `rules_of` finds the same in them as in all of the session's records. Raises DamagedBodyError.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return []
        rows = conn.execute(
            f"SELECT {WHOLE} FROM record r LEFT JOIN body b ON b.id = r.body_id "  # noqa: S608 - our own columns
            f"WHERE r.session = :session AND r.seq IN ({_SEQS}) AND r.seq <= :up_to ORDER BY r.seq",
            {"session": session.id, "up_to": up_to_seq},
        )
        return [checked_record(row) for row in rows]
