"""Bindings of clients to sessions, for a server: the hooks' own statements, each in one transaction."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite import hook_rows
from mcp_compact.adapters.sqlite.connection import reading, writing
from mcp_compact.ports.bindings import Bound


def bound(conn: sqlite3.Connection, client: str) -> Bound | None:
    """The session that a client started last; None where no hook told of one."""
    with reading(conn):
        row = hook_rows.bound(conn, client)
        return Bound(*row) if row else None


def follow(conn: sqlite3.Connection, client: str, server: str, now_ms: int) -> None:
    """Note that this server follows the transcript for a client."""
    with writing(conn):
        hook_rows.follow(conn, client, server, now_ms)
