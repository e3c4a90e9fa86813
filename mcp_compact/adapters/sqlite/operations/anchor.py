"""The overhead of a session: what the provider counts beside the messages (system prompt, tools).

An answer's usage tells what the whole request held; our count of what stood before the answer, taken
off it, leaves the overhead. All records of one message id repeat the same usage.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.operations.live import live_rows, live_weight
from mcp_compact.adapters.sqlite.operations.placing import Placed
from mcp_compact.adapters.sqlite.operations.rows import MESSAGE
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.weights import NOTHING, family_of


def measure(conn: sqlite3.Connection, session: Session, placed: Sequence[Placed]) -> None:
    """Take the overhead from the newest live answer of the batch; one that the caller gave stays.

    What was counted before a boundary says nothing of the context after it.
    """
    if session.overhead_source == "given":
        return
    found = _newest(session, placed)
    if found is None:
        return
    seq, context_tokens = found
    after = sum((live_weight(conn, session.id, row) for row in live_rows(conn, session, after=seq - 1)), NOTHING)
    before = family_of(session.model).tokens(session.totals.weight - after)
    session.overhead_tokens, session.overhead_source = max(0, context_tokens - before), "usage"
    session.anchor_seq, session.anchor_tokens = seq, context_tokens


def _newest(session: Session, placed: Sequence[Placed]) -> tuple[int, int] | None:
    """The first record of the newest answer with usage, and what the provider counted; None if it is older."""
    for item in reversed(placed):
        message = item.prepared.record.message
        usage = message.usage if message else None
        if message is None or usage is None or usage.context_tokens <= 0 or message.role != "assistant":
            continue
        if item.kind == MESSAGE and item.active and item.seq > session.base_seq:
            first = item.need_seq
            is_here = first >= placed[0].seq and first > session.base_seq
            return (first, min(usage.context_tokens, (1 << 62))) if is_here else None
    return None
