"""One consistent reading of a session for a compaction: the session's row, then some dozens of narrow rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.clearable import RESULT, result_facts
from mcp_compact.adapters.sqlite.operations.encoding import json_list, json_value
from mcp_compact.adapters.sqlite.operations.live import (
    appended_rows,
    live_rows,
    live_weight,
    service_rows,
    total,
    with_weights,
)
from mcp_compact.adapters.sqlite.operations.memory import memory_of
from mcp_compact.adapters.sqlite.operations.pins import pins_of
from mcp_compact.adapters.sqlite.operations.rows import Narrow, entry_of_row, whole_record
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.compaction.snapshot import Base, Instruction, Reach, ResultFacts, ServiceRecord, Snapshot
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import NOTHING, Family, family_of
from mcp_compact.ports.store import SessionKey

OWN_KINDS = ("attachment", "hook_result")
"""What a service record of ours may be beside a summary."""
INSTRUCTIONS = 200
"""So many newest standing instructions are read."""


def snapshot(
    conn: sqlite3.Connection, key: SessionKey, reach: Reach, *, up_to_seq: int | None = None
) -> Snapshot | None:
    """The live context as far back as `reach` asks for; None where there is no such session.

    With `up_to_seq` as if nothing newer had been appended; where a newer marker is in effect it is the
    live context as it is now, and its base says so.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is not None and up_to_seq is not None:
            _step_back(conn, session, up_to_seq)
        return _snapshot(conn, session, reach) if session else None


def _step_back(conn: sqlite3.Connection, session: Session, up_to_seq: int) -> None:
    """Take what was appended since off the row (in memory only)."""
    if session.marker_seq > up_to_seq or session.last_seq <= up_to_seq:
        return
    session.totals -= total(conn, session.id, appended_rows(conn, session, up_to_seq))
    session.last_seq = up_to_seq


def _snapshot(conn: sqlite3.Connection, session: Session, reach: Reach) -> Snapshot:
    family = family_of(session.model)
    tail, is_all = _tail(conn, session, reach, family)
    last, last_user = _last_messages(conn, session, tail)
    return Snapshot(
        base=Base(session.last_seq, session.marker_seq, session.live_hash.hex()),
        family=family,
        tail=tail,
        tail_is_all=is_all,
        live_weight=session.totals.weight,
        live_count=session.live_count,
        service=tuple(_service(conn, session, row) for row in service_rows(conn, session)),
        results=_results(conn, session, tail),
        memory=memory_of(conn, session),
        instructions=_instructions(conn, session),
        discovered_tools=_tools(conn, session),
        registered=tuple(pins_of(conn, session.id)),
        context_window=session.context_window,
        overhead_tokens=session.overhead_tokens,
        last_message_uuid=last,
        last_user_message_uuid=last_user,
    )


def _tail(conn: sqlite3.Connection, session: Session, reach: Reach, family: Family) -> tuple[tuple[Entry, ...], bool]:
    """The newest live records, old to new; whether they begin at the floor."""
    entries: list[Entry] = []
    weight, texts, need = NOTHING, 0, session.last_seq + 1
    newest_first = live_rows(conn, session, up_to=session.last_seq, newest_first=True)
    for row, own in with_weights(conn, session.id, newest_first):
        if row.seq < need and entries and _reached(reach, family.tokens(weight), texts, row.seq):
            return tuple(reversed(entries)), False
        entries.append(entry_of_row(row, own))
        weight, texts, need = weight + own, texts + row.text_holding, min(need, row.need_seq)
    return tuple(reversed(entries)), True


def _reached(reach: Reach, tokens: int, texts: int, next_seq: int) -> bool:
    if reach.down_to_seq is not None and next_seq > reach.down_to_seq:
        return False
    return tokens >= reach.max_tokens or (tokens >= reach.min_tokens and texts >= reach.min_text)


def _service(conn: sqlite3.Connection, session: Session, row: Narrow) -> ServiceRecord:
    record = whole_record(conn, session.id, row.seq)
    text = record.text if record else ""
    kind = record.subtype if record and record.subtype in OWN_KINDS else "summary"
    return ServiceRecord(MessageUuid(row.uuid), row.seq, live_weight(conn, session.id, row), text, kind)


def _results(conn: sqlite3.Connection, session: Session, tail: Sequence[Entry]) -> tuple[ResultFacts, ...]:
    """The uncleared results of the tail."""
    seqs = [entry.seq for entry in tail if entry.results]
    rows = conn.execute(
        f"SELECT {RESULT} FROM result t JOIN record r ON r.session = t.session AND r.seq = t.seq "  # noqa: S608 - our own columns
        "WHERE t.session = ? AND t.cleared_by IS NULL AND t.seq IN (SELECT value FROM json_each(?)) "
        "ORDER BY t.seq, t.block",
        (session.id, json_list(seqs)),
    )
    return tuple(result_facts(conn, session.id, rows.fetchall()))


def _instructions(conn: sqlite3.Connection, session: Session) -> tuple[Instruction, ...]:
    """The newest standing instructions, old to new; those of rewound prompts are none.

    A client's boundary may cut the chain of parents: what stands before it was not rewound. A fork keeps
    those of records that it does not hold, with seq 0.
    """
    floor = session.base_seq if session.natives else 0
    rows = conn.execute(
        "SELECT iif(n.active > 0 AND l.seq <= :last, l.seq, l.first_seq), l.text FROM ledger l "
        "LEFT JOIN record n ON n.session = l.session AND n.seq = l.seq "
        "LEFT JOIN record f ON f.session = l.session AND f.seq = l.first_seq "
        "WHERE l.session = :session AND l.kind = 'instruction' AND l.first_seq <= :last "
        "AND (n.active > 0 OR f.active > 0 OR l.first_seq <= :floor) ORDER BY l.seq DESC LIMIT :number",
        {"session": session.id, "last": session.last_seq, "floor": floor, "number": INSTRUCTIONS},
    ).fetchall()
    return tuple(Instruction(seq, text) for seq, text in reversed(rows))


def _tools(conn: sqlite3.Connection, session: Session) -> tuple[str, ...]:
    """Those that records brought, and those that the last boundary (perhaps a client's own) told of."""
    rows = conn.execute(
        "SELECT text FROM ledger WHERE session = ? AND kind = 'tool' AND first_seq <= ?", (session.id, session.last_seq)
    )
    return tuple(sorted({*(row[0] for row in rows), *_told_tools(conn, session)}))


def _told_tools(conn: sqlite3.Connection, session: Session) -> list[str]:
    row = conn.execute(
        "SELECT metadata FROM marker WHERE session = ? AND seq = ?", (session.id, session.boundary_seq)
    ).fetchone()
    metadata = json_value(row[0]) if row else {}
    told = metadata.get("preCompactDiscoveredTools") if isinstance(metadata, dict) else None
    return [name for name in told if isinstance(name, str)] if isinstance(told, list) else []


def _last_messages(
    conn: sqlite3.Connection, session: Session, tail: Sequence[Entry]
) -> tuple[MessageUuid | None, MessageUuid | None]:
    """The newest live message, and the newest one that a person's words are in."""
    last = tail[-1].uuid if tail else None
    words = next((entry.uuid for entry in reversed(tail) if entry.role == "user" and entry.text_holding), None)
    return last, words or _last_words(conn, session)


def _last_words(conn: sqlite3.Connection, session: Session) -> MessageUuid | None:
    row = conn.execute(
        "SELECT uuid FROM record WHERE session = ? AND text_holding = 1 AND role = 'user' AND snipped_by = 0 "
        "AND active > 0 AND kind = 1 AND seq <= ? ORDER BY seq DESC LIMIT 1",
        (session.id, session.last_seq),
    ).fetchone()
    return MessageUuid(row[0]) if row else None
