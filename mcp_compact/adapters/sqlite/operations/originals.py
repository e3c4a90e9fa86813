"""Records with their bodies: the archive's first bytes, whatever was cleared or compacted since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.chain import marker_at, markers_of, seq_of
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.adapters.sqlite.operations.live import clearings_at, live_rows, service_rows
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, Narrow, checked_record, whole_record, whole_records
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.blocks import ToolResultBlock
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Clearing, Marker
from mcp_compact.messages.message import Record
from mcp_compact.messages.repeats import answered_call, counting_results
from mcp_compact.ports.store import LivePage, SessionKey

BODIES_AHEAD = 8
"""So many bodies are read at once; one may have megabytes."""
_MADE = "SELECT seq FROM call WHERE session = ? AND tool_use_id = ? ORDER BY seq"
_ANSWERED = "SELECT is_error, seq, block FROM result WHERE session = ? AND tool_use_id = ? ORDER BY seq, block"


def record(conn: sqlite3.Connection, key: SessionKey, uuid: MessageUuid) -> Record | None:
    """One record by its uuid, None where the session has none such."""
    with reading(conn):
        session = state.load(conn, key)
        seq = seq_of(conn, session.id, safe_id(uuid)) if session else None
        return whole_record(conn, session.id, seq) if session and seq is not None else None


def newest_message(conn: sqlite3.Connection, key: SessionKey) -> MessageUuid | None:
    """The last message of the live context, service records left out; None where there is none."""
    with reading(conn):
        session = state.load(conn, key)
        row = next(live_rows(conn, session, newest_first=True), None) if session else None
        return MessageUuid(row.uuid) if row else None


def call(conn: sqlite3.Connection, key: SessionKey, tool_use_id: ToolUseId) -> tuple[Record | None, Record | None]:
    """The records of a call and of its result; of repeated ids the result that counts and the call that it answers.

    A result that came back with its content cleared counts only where nothing else is stored.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return None, None
        asked = (session.id, safe_id(tool_use_id))
        made = [seq for (seq,) in conn.execute(_MADE, asked)]
        results = [("", is_error == 1, (seq, block)) for is_error, seq, block in conn.execute(_ANSWERED, asked)]
        results = [item for item in results if made and made[0] < item[2][0]] or results
        if len(results) > 1:
            results = [item for item in results if not _is_cleared(conn, session, *item[2])] or results
        answered = counting_results(results).get("", (None, 0))[0]
        asking = answered_call(made, answered) if answered is not None else None
        return _at(conn, session, asking or next(iter(made), None)), _at(conn, session, answered)


def _is_cleared(conn: sqlite3.Connection, session: Session, seq: int, block: int) -> bool:
    found = whole_record(conn, session.id, seq)
    result = found.blocks[block] if found else None
    return isinstance(result, ToolResultBlock) and result.cleared


def _at(conn: sqlite3.Connection, session: Session, seq: int | None) -> Record | None:
    return whole_record(conn, session.id, seq) if seq is not None else None


def markers(conn: sqlite3.Connection, key: SessionKey) -> list[Marker]:
    """All markers of a session, in order."""
    with reading(conn):
        session = state.load(conn, key)
        return markers_of(conn, session.id) if session else []


def records(
    conn: sqlite3.Connection, key: SessionKey, *, after_seq: int, up_to_seq: int, live_only: bool
) -> list[Record]:
    """Records after one seq and up to another, in order.

    All that the archive holds, or only the live ones, service records left out.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return []
        if not live_only:
            rows = conn.execute(
                f"SELECT {WHOLE} FROM record r LEFT JOIN body b ON b.id = r.body_id "  # noqa: S608 - our own columns
                "WHERE r.session = ? AND r.seq > ? AND r.seq <= ? ORDER BY r.seq",
                (session.id, after_seq, up_to_seq),
            )
            return [checked_record(row) for row in rows]
        return whole_records(
            conn, session.id, [row.seq for row in live_rows(conn, session, after=after_seq, up_to=up_to_seq)]
        )


def live(conn: sqlite3.Connection, key: SessionKey, *, after: int, limit: int, max_bytes: int) -> LivePage | None:
    """A page of the live context: at most `limit` records and, but for the first, `max_bytes` of bodies.

    Positions: service records first, by their number, then the seq of what follows.
    """
    with reading(conn):
        session = state.load(conn, key)
        if session is None:
            return None
        service = service_rows(conn, session)
        rows = _from(conn, session, service, max(after, 0))
        taken: list[Record] = []
        clearings: dict[MessageUuid, tuple[Clearing, ...]] = {}
        room, reached, more = max_bytes, after, False
        for position, row, found in _with_bodies(conn, session, rows):
            if taken and (len(taken) >= limit or len(found.body) > room):
                more = True
                break
            taken.append(found)
            room -= len(found.body)
            reached = position
            if row.cleared:
                clearings[found.uuid] = tuple(item for item, _ in clearings_at(conn, session.id, row.seq))
        return LivePage(
            records=tuple(taken),
            clearings=clearings,
            next_after=reached if more else None,
            version=f"{session.marker_seq}.{session.epoch}",
            service=tuple(MessageUuid(row.uuid) for row in service),
            boundary=marker_at(conn, session.id, session.boundary_seq) if session.boundary_seq else None,
        )


def _from(
    conn: sqlite3.Connection, session: Session, service: Sequence[Narrow], after: int
) -> Iterator[tuple[int, Narrow]]:
    """The live rows after a position, each with the position to go on from."""
    number = len(service)
    for at, row in enumerate(service[after:], start=after + 1):
        yield at, row
    for row in live_rows(conn, session, after=max(0, after - number)):
        yield number + row.seq, row


def _with_bodies(
    conn: sqlite3.Connection, session: Session, rows: Iterator[tuple[int, Narrow]]
) -> Iterator[tuple[int, Narrow, Record]]:
    """Rows with their bodies, some read ahead."""
    while ahead := list(islice(rows, BODIES_AHEAD)):
        found = whole_records(conn, session.id, [row.seq for _, row in ahead])
        for (position, row), record in zip(ahead, found, strict=True):
            yield position, row, record
