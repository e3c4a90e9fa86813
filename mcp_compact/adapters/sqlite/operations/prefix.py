"""Recognising a list that a loop sends again: by position and content."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.ports.store import SessionKey

_OWN = "SELECT content_hash FROM record WHERE session = ? AND kind = 1 AND active > 0 AND content_hash IS NOT NULL ORDER BY seq"
# What the loop was given after a boundary: service records, preserved ones, and what came since.
_LIVE = (
    "SELECT r.content_hash FROM record r LEFT JOIN member m ON m.session = r.session AND m.marker = ? AND m.seq = r.seq "
    "AND m.role IN ('service', 'preserved') WHERE r.session = ? AND r.snipped_by = 0 AND r.content_hash IS NOT NULL "
    "AND (m.role IS NOT NULL OR (r.seq > ? AND r.kind = 1 AND r.active > 0)) "
    "ORDER BY m.role IS NOT 'service', r.seq"
)


def match_prefix(conn: sqlite3.Connection, key: SessionKey, hashes: Sequence[bytes]) -> int:
    """How many of the hashes, from the first on, are those of the messages that the loop holds.

    A loop holds all that it ever sent, or what it was given after the last boundary and what it sent since.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is None or not hashes:
            return 0
        own = _common(hashes, conn.execute(_OWN, (session.id,)))
        return max(own, _common(hashes, _live(conn, session))) if session.boundary_seq else own


def _live(conn: sqlite3.Connection, session: Session) -> Iterable[tuple[bytes]]:
    return conn.execute(_LIVE, (session.boundary_seq, session.id, session.base_seq))


def _common(hashes: Sequence[bytes], rows: Iterable[tuple[bytes]]) -> int:
    number = 0
    for known, (stored,) in zip(hashes, rows, strict=False):
        if known != stored:
            break
        number += 1
    return number
