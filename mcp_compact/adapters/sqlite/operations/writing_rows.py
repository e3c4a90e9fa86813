"""Writing the rows of new records.

Flags are given as whole numbers: for a bool SQLite's module looks for an adapter each time, which costs half a
microsecond, and a record has five.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache

from mcp_compact.adapters.sqlite.operations.encoding import fitting, ids_text, safe_id, safe_id_or_none
from mcp_compact.adapters.sqlite.operations.placing import Placed
from mcp_compact.adapters.sqlite.operations.rows import MESSAGE
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.compaction.weighing import NO_INPUT
from mcp_compact.messages.codec import body_hash, well_formed
from mcp_compact.messages.weights import NOTHING

_BODY = "INSERT INTO body (id, data, message) VALUES (?, ?, ?)"
_RECORD = (
    "INSERT INTO record (id, session, seq, uuid, parent_uuid, parent_seq, is_root, kind, type, subtype, role, "
    "message_id, agent_id, at_ms, units, exact_units, answers, media, messages, text_holding, has_thinking, is_meta, "
    "is_summary, active, context_tokens, need_seq, calls, results, content_hash, body_hash, body_id) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CALL = "INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_RESULT = "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING"
_MEDIA = "INSERT OR IGNORE INTO media VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)"
_LEDGER = (
    "INSERT INTO ledger (session, kind, hash, first_seq, seq, text) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (session, kind, hash) DO UPDATE SET seq = excluded.seq"
)


# Few words, met again in every record.
_word = lru_cache(maxsize=1024)(well_formed)


def write(conn: sqlite3.Connection, session: Session, placed: Sequence[Placed]) -> None:
    """Write everything of the new records, and count them in the session's row."""
    first = reserve_ids(conn, len(placed))
    sid = session.id
    conn.executemany(
        _BODY,
        [(first + at, item.prepared.record.body, item.message) for at, item in enumerate(placed)],
    )
    conn.executemany(_RECORD, [_record(sid, first + at, item) for at, item in enumerate(placed)])
    write_parts(conn, sid, placed)
    session.last_seq = placed[-1].seq
    session.message_count += sum([item.kind == MESSAGE for item in placed])
    session.body_bytes += sum([len(item.prepared.record.body) for item in placed])


def write_parts(conn: sqlite3.Connection, sid: int, placed: Sequence[Placed]) -> None:
    """Write what records are made of: calls, results, media, instructions and tools; what is there already stays."""
    # Many batches bring none of a kind, and a statement costs something even where it has nothing to do.
    if calls := [row for item in placed if item.calls for row in _calls(sid, item)]:
        conn.executemany(_CALL, calls)
    if results := [row for item in placed if item.results for row in _results(sid, item)]:
        conn.executemany(_RESULT, results)
    if media := [row for item in placed if item.prepared.media for row in _media(sid, item)]:
        conn.executemany(_MEDIA, media)
    if notes := [row for item in placed if _notes(item) for row in _ledger(sid, item)]:
        conn.executemany(_LEDGER, notes)


def reserve_ids(conn: sqlite3.Connection, number: int) -> int:
    """Ids for so many new records (and their bodies); the first one."""
    first = conn.execute("SELECT last_record FROM archive").fetchone()[0] + 1
    conn.execute("UPDATE archive SET last_record = ?", (first + number - 1,))
    return int(first)


def _record(session: int, row_id: int, item: Placed) -> tuple[object, ...]:
    prepared, record = item.prepared, item.prepared.record
    weight = prepared.weight
    return (
        row_id,
        session,
        item.seq,
        item.uuid,
        item.parent_uuid,
        item.parent_seq,
        1 if record.is_root else 0,
        item.kind,
        _word(record.type),
        record.subtype and _word(record.subtype),
        _word(record.message.role) if record.message else None,
        item.message_id,
        record.agent_id and safe_id_or_none(record.agent_id),
        record.at_ms and fitting(record.at_ms),
        weight.units,
        prepared.exact_units,
        weight.results,
        weight.media,
        weight.messages,
        1 if item.text_holding else 0,
        1 if item.has_thinking else 0,
        1 if record.is_meta else 0,
        1 if record.is_summary else 0,
        item.active,
        item.context_tokens,
        item.need_seq,
        (item.calls and ids_text([call for call, _, _ in item.calls])) or None,
        (item.results and ids_text([call for call, _, _ in item.results])) or None,
        prepared.content_hash or None,
        item.body_hash,
        row_id,
    )


def _calls(session: int, item: Placed) -> list[tuple[object, ...]]:
    inputs = item.prepared.inputs or (NO_INPUT,) * len(item.calls)
    return [
        (
            session,
            call,
            item.seq,
            block,
            name,
            (given.path and safe_id(given.path)) or None,
            given.lines and given.lines[0],
            given.lines and given.lines[1],
            given.hash or None,
            given.freed_units,
        )
        for (call, block, name), given in zip(item.calls, inputs, strict=True)
    ]


def _results(session: int, item: Placed) -> list[tuple[object, ...]]:
    prepared = item.prepared
    # What is no message weighs nothing, also where it holds results.
    none = () if prepared.result_weights else (NOTHING,) * len(item.results)
    rows = zip(item.results, prepared.result_weights or none, prepared.cleared_weights or none, strict=True)
    return [
        (
            session,
            item.seq,
            block,
            call,
            weight.units,
            weight.results,
            weight.media,
            cleared.units,
            cleared.results,
            cleared.media,
            int(is_error),
        )
        for (call, block, is_error), weight, cleared in rows
    ]


def _media(session: int, item: Placed) -> list[tuple[object, ...]]:
    return [
        (
            session,
            item.seq,
            facts.block,
            -1 if facts.part is None else facts.part,
            facts.kind,
            facts.tokens,
            safe_id_or_none(facts.tool_use_id),
            facts.mark_units,
            facts.bytes,
        )
        for facts in item.prepared.media
    ]


def _notes(item: Placed) -> bool:
    return bool(item.prepared.instructions or item.prepared.tools)


def _ledger(session: int, item: Placed) -> list[tuple[object, ...]]:
    named = [("instruction", text) for text in item.prepared.instructions]
    named += [("tool", text) for text in item.prepared.tools]
    rows: list[tuple[object, ...]] = []
    for kind, text in named:
        clean = well_formed(text)
        rows.append((session, kind, body_hash(clean.encode()), item.seq, item.seq, clean))
    return rows
