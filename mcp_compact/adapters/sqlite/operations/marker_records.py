"""Rows of the records that we append: markers and their service records."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_compact.adapters.sqlite.operations import bodies
from mcp_compact.adapters.sqlite.operations.rows import MARKER, SERVICE
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.adapters.sqlite.operations.writing_rows import reserve_ids
from mcp_compact.compaction.plan import ServiceText
from mcp_compact.messages.codec import body_hash, canonical, well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Marker
from mcp_compact.messages.weights import NOTHING, Weight

_RECORD = (
    "INSERT INTO record (id, session, seq, uuid, parent_uuid, parent_seq, is_root, kind, type, subtype, role, at_ms, "
    "units, answers, media, messages, text_holding, has_thinking, is_meta, is_summary, active, need_seq, content_hash, "
    "body_hash, body_id) VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, 0, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class _Own:
    """A record of ours: what differs from one to the other."""

    seq: int
    uuid: MessageUuid
    parent_uuid: MessageUuid | None
    kind: int
    type: str
    subtype: str
    role: str | None
    weight: Weight
    body: Mapping[str, Any]
    content_hash: bytes | None = None

    @property
    def is_summary(self) -> bool:
        return self.body.get("isCompactSummary") is True


def write_service(
    conn: sqlite3.Connection, session: Session, marker: Marker, service: Sequence[ServiceText], now_ms: int
) -> int:
    """Write the service records of a boundary, right after its own place; the row id that is kept for the boundary."""
    first = reserve_ids(conn, 1 + len(service))
    for at, (item, uuid) in enumerate(zip(service, marker.service, strict=True), start=1):
        body = bodies.service_body(session, uuid, marker.uuid, item, now_ms)
        own = _Own(
            marker.seq + at,
            uuid,
            marker.uuid,
            SERVICE,
            "user",
            "" if item.kind == bodies.SUMMARY else item.kind,
            "user",
            item.weight,
            body,
            body_hash(canonical(body["message"])),
        )
        _write(conn, session, own, first + at, now_ms)
    return first


def write_marker(conn: sqlite3.Connection, session: Session, marker: Marker, row_id: int, now_ms: int) -> None:
    """Write the marker's record; its service records stand already."""
    body = bodies.marker_body(session, marker, now_ms)
    own = _Own(marker.seq, marker.uuid, None, MARKER, "system", marker.kind.value, None, NOTHING, body)
    _write(conn, session, own, row_id, now_ms)


def _write(conn: sqlite3.Connection, session: Session, own: _Own, row_id: int, now_ms: int) -> None:
    data = canonical(own.body)
    conn.execute("INSERT INTO body (id, data) VALUES (?, ?)", (row_id, data))
    conn.execute(
        _RECORD,
        (
            row_id,
            session.id,
            own.seq,
            own.uuid,
            own.parent_uuid,
            own.parent_uuid is None,
            own.kind,
            own.type,
            well_formed(own.subtype),
            own.role,
            now_ms,
            own.weight.units,
            own.weight.results,
            own.weight.media,
            own.weight.messages,
            own.kind == SERVICE and not own.is_summary,
            own.is_summary,
            own.seq,
            own.content_hash,
            body_hash(data),
            row_id,
        ),
    )
    session.last_seq = max(session.last_seq, own.seq)
    session.body_bytes += len(data)
