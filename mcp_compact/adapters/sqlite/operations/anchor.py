"""What the provider counted: the overhead of a session, and how full a client's own context is.

An answer's usage tells what its whole request held. Our count of what stood before the answer, taken
off it, leaves the overhead (system prompt, tools). All records of one message id repeat the same usage.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.operations.encoding import json_list
from mcp_compact.adapters.sqlite.operations.live import live_rows, live_weight
from mcp_compact.adapters.sqlite.operations.placing import Placed
from mcp_compact.adapters.sqlite.operations.rows import MESSAGE
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.markers import MarkerKind
from mcp_compact.messages.weights import NOTHING, Weight, family_of


def measure(conn: sqlite3.Connection, session: Session, placed: Sequence[Placed]) -> None:
    """Take the overhead from the newest live answer of the batch; one that the caller gave stays.

    What was counted before a boundary says nothing of the context after it, and what a client counted for
    its own history says nothing of our shorter view of it.
    """
    found = _newest(session, placed)
    if found is None:
        return
    _take(conn, session, *found)


def tell(conn: sqlite3.Connection, session: Session, counted: Sequence[Placed]) -> None:
    """Give stored answers (their numbers are in `seq`) the usage that came behind them; the first figure stays."""
    tokens = {item.seq: item.context_tokens or 0 for item in reversed(counted)}
    # Not RETURNING: the table that SQLite makes for it costs ten times as much as the change itself.
    untold = conn.execute(
        "SELECT seq, need_seq, active FROM record WHERE session = ? AND kind = ? AND context_tokens IS NULL "
        "AND seq IN (SELECT value FROM json_each(?))",
        (session.id, MESSAGE, json_list(tokens)),
    ).fetchall()
    conn.executemany(
        "UPDATE record SET context_tokens = ? WHERE session = ? AND seq = ?",
        [(tokens[seq], session.id, seq) for seq, _, _ in untold],
    )
    needs = {seq: need for seq, need, active in untold if active}
    newest, tokens_of_newest = max(session.base_seq, session.anchor_seq), 0
    for item in counted:
        if needs.get(item.seq, 0) > newest:
            newest, tokens_of_newest = needs[item.seq], item.context_tokens or 0
    if tokens_of_newest:
        _take(conn, session, newest, tokens_of_newest)


def _take(conn: sqlite3.Connection, session: Session, seq: int, context_tokens: int) -> None:
    session.anchor_seq = seq
    if session.overhead_source == "given" or (session.owner == "client" and _is_ours(conn, session)):
        return
    rows = live_rows(conn, session, after=session.anchor_seq - 1)
    after = sum((live_weight(conn, session.id, row) for row in rows), NOTHING)
    before = family_of(session.model).tokens(session.totals.weight - after)
    session.overhead_tokens, session.overhead_source = max(0, context_tokens - before), "usage"


def _newest(session: Session, placed: Sequence[Placed]) -> tuple[int, int] | None:
    """The first record of the newest answer with usage, and what the provider counted; None if it is older."""
    for item in reversed(placed):
        tokens = item.context_tokens
        if tokens and item.kind == MESSAGE and item.active and item.seq > session.base_seq:
            is_here = item.need_seq >= placed[0].seq and item.need_seq > session.base_seq
            return (item.need_seq, tokens) if is_here else None
    return None


def _is_ours(conn: sqlite3.Connection, session: Session) -> bool:
    """Is a marker of ours in effect since the client's last own boundary?"""
    seq = session.marker_seq
    while seq:
        native, kind, parent = conn.execute(
            "SELECT native, kind, parent_seq FROM marker WHERE session = ? AND seq = ?", (session.id, seq)
        ).fetchone()
        if not native:
            return True
        seq = 0 if kind == MarkerKind.COMPACT.value else parent or 0
    return False


def client_tokens(conn: sqlite3.Connection, session: Session) -> int | None:
    """Tokens of the client's last request, and what was appended since; None where nothing was counted.

    Its own boundary makes it void until the next request; ours change nothing, for the client does not see them.
    """
    found = _anchor(conn, session) if session.anchor_seq else None
    if found is None:
        return None
    seq, tokens = found
    units, answers, media, messages = conn.execute(
        "SELECT coalesce(sum(coalesce(exact_units, units)), 0), coalesce(sum(answers), 0), coalesce(sum(media), 0), "
        "coalesce(sum(messages), 0) FROM record WHERE session = ? AND seq >= ? AND kind = 1 AND active > 0",
        (session.id, seq),
    ).fetchone()
    return tokens + family_of(session.model).tokens(Weight(units, answers, media, messages))


def _anchor(conn: sqlite3.Connection, session: Session) -> tuple[int, int] | None:
    """The newest answer of the active branch that was counted since the client's last boundary."""
    row = conn.execute(
        "SELECT need_seq, context_tokens FROM record WHERE session = ? AND seq <= ? AND context_tokens IS NOT NULL "
        "AND active > 0 AND kind = 1 ORDER BY seq DESC LIMIT 1",
        (session.id, session.anchor_seq),
    ).fetchone()
    boundary = conn.execute(
        "SELECT max(m.seq) FROM marker m JOIN record r ON r.session = m.session AND r.seq = m.seq "
        "WHERE m.session = ? AND m.native = 1 AND m.kind = ? AND r.active > 0",
        (session.id, MarkerKind.COMPACT.value),
    ).fetchone()[0]
    return row if row and row[0] > (boundary or 0) else None
