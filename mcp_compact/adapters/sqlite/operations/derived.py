"""What a session's row tells besides its counters, brought up to date by whatever writes the row.

So a status reads that one row: how many images the live context holds, what a client's own context holds by its
usage, and when the session was last at work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.anchor import client_tokens
from mcp_compact.adapters.sqlite.operations.clearable import media_of
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.ports.store import LiveMedia

# Media enter and leave the live context only with one of these.
_MEDIA_STATE = "SELECT live_media, epoch, marker_seq, media_count FROM session WHERE id = ?"


def save(conn: sqlite3.Connection, session: Session) -> None:
    """Write the row back, with what follows from the rows that were written before."""
    session.media_count, session.media_bytes = _media(conn, session)
    session.client_tokens = client_tokens(conn, session) if session.owner == "client" else None
    state.save(conn, session)


def touch(session: Session, times_ms: Iterable[int | None], now_ms: int) -> None:
    """Note when the session was last at work: by its new records' own times, by the clock where none has one.

    An old transcript that is imported today was not at work today. A time in the future tells nothing.
    """
    known = [at_ms for at_ms in times_ms if at_ms is not None and at_ms <= now_ms]
    session.active_ms = max([session.active_ms, *known]) if known else now_ms


def known_media(conn: sqlite3.Connection, session: Session) -> LiveMedia:
    """Images and documents of the live context, by the row where it knows them."""
    if session.media_count is not None:
        return LiveMedia(session.media_count, session.media_bytes)
    return media_of(conn, session)


def known_client_tokens(conn: sqlite3.Connection, session: Session) -> int | None:
    """What a client's own context holds, by the row unless nothing was written since it has that column."""
    if session.owner != "client":
        return None
    return session.client_tokens if session.media_count is not None else client_tokens(conn, session)


def _media(conn: sqlite3.Connection, session: Session) -> tuple[int, int]:
    if not session.live_media:
        return 0, 0
    before = conn.execute(_MEDIA_STATE, (session.id,)).fetchone()
    if session.media_count is not None and before == (
        session.live_media,
        session.epoch,
        session.marker_seq,
        session.media_count,
    ):
        return session.media_count, session.media_bytes
    found = media_of(conn, session)
    return found.count, found.bytes
