"""What the rows of a record's blocks say (calls, results, media, instructions), made again from its bytes."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.operations.placing import placed_of
from mcp_compact.adapters.sqlite.operations.rows import MESSAGE, WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.writing_rows import write_parts
from mcp_compact.service.prepare import prepare

PARTS = ("call", "result", "media", "ledger")
AT_ONCE = 500
_MESSAGES = (
    f"SELECT {WHOLE} FROM record r JOIN body b ON b.id = r.body_id "  # noqa: S608 - our own columns
    "WHERE r.session = ? AND r.kind = ? AND r.seq > ? ORDER BY r.seq LIMIT ?"
)


def make_parts(conn: sqlite3.Connection, session: int) -> None:
    """Add what is missing of a session's messages; what is there stays, with the clearings that it knows."""
    reached = 0
    while rows := conn.execute(_MESSAGES, (session, MESSAGE, reached, AT_ONCE)).fetchall():
        records = [record_of_row(row) for row in rows]
        reached = records[-1].seq
        # What a damaged row calls no message has none.
        messages = [record for record in records if record.is_message]
        placed = [placed_of(item) for item in prepare(messages, None, with_content_hash=False)]
        for item, record in zip(placed, messages, strict=True):
            item.seq = record.seq
        write_parts(conn, session, placed)
