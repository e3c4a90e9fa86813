"""Recognising a list that a loop sends again: by position and content."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.ports.store import SessionKey

_OWN = (
    "SELECT content_hash FROM record WHERE session = ? AND kind = 1 AND active > 0 AND content_hash IS NOT NULL "
    "ORDER BY seq"
)


def match_prefix(conn: sqlite3.Connection, key: SessionKey, hashes: Sequence[bytes]) -> int:
    """How many messages of a list are sent again: all that were appended so far, if it begins with them, else 0.

    A list that shares only some of them is none that is sent again: equal text is not the same message.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return 0
        number = 0
        for (stored,) in conn.execute(_OWN, (session.id,)):
            if number == len(hashes) or hashes[number] != stored:
                return 0
            number += 1
        return number
