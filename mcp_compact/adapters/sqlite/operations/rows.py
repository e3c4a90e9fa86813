"""Rows of records as values: the narrow view that compaction walks over, and whole records with their bodies."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from mcp_compact.adapters.sqlite.failures import DamagedBodyError
from mcp_compact.adapters.sqlite.operations.encoding import ids_of, json_list
from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import body_hash, decode_message
from mcp_compact.messages.ids import ApiMessageId, MessageUuid, ToolUseId
from mcp_compact.messages.message import Entry, Message, Record
from mcp_compact.messages.weights import Weight
from mcp_compact.transcripts.quick_json import ObjectDecoder, ValueWriter

OTHER, MESSAGE, MARKER, SERVICE, NATIVE_SERVICE = range(5)
"""What a record is (`record.kind`)."""
ANSWERS, SHARES, CHAIN = 1, 2, 3
"""Why a record is on the active branch (`record.active`); 0: it is not."""


_object, _write = ObjectDecoder(), ValueWriter()
"""The JSON of a body, in a fourth of `json`'s time once a process has read some."""


class Narrow(NamedTuple):
    """What compaction needs of a record."""

    seq: int
    uuid: str
    role: str | None
    message_id: str | None
    units: int
    estimated: int
    answers: int
    media: int
    messages: int
    text_holding: int
    has_thinking: int
    calls: str | None
    results: str | None
    at_ms: int | None
    need_seq: int
    cleared: int
    body_hash: bytes

    @property
    def weight(self) -> Weight:
        """As it stands in the archive, nothing cleared."""
        return Weight(self.units, self.answers, self.media, self.messages)


NARROW = (
    "r.seq, r.uuid, r.role, r.message_id, coalesce(r.exact_units, r.units), r.exact_units IS NULL, r.answers, r.media, "
    "r.messages, r.text_holding, r.has_thinking, r.calls, r.results, r.at_ms, r.need_seq, r.cleared, r.body_hash"
)
WHOLE = (
    "r.uuid, r.type, b.data, b.message, r.role, r.message_id, r.parent_uuid, r.is_root, r.at_ms, r.seq, r.subtype, "
    "r.is_meta, r.is_summary, r.agent_id, r.body_hash, r.session"
)
"""Columns of `record_of_row` and `checked_record`, of `record r JOIN body b ON b.id = r.body_id`."""


def entry_of_row(row: Narrow, weight: Weight) -> Entry:
    """The record as the algorithms see it; the weight is that of the live context."""
    return Entry(
        uuid=MessageUuid(row.uuid),
        seq=row.seq,
        role=row.role or "",
        message_id=ApiMessageId(row.message_id) if row.message_id is not None else None,
        weight=weight,
        text_holding=bool(row.text_holding),
        calls=cast("tuple[ToolUseId, ...]", tuple(ids_of(row.calls))) if row.calls else (),
        results=cast("tuple[ToolUseId, ...]", tuple(ids_of(row.results))) if row.results else (),
        at_ms=row.at_ms,
        has_thinking=bool(row.has_thinking),
    )


def record_of_row(row: tuple[Any, ...]) -> Record:
    """The record as it was appended, its message read from its body; one whose bytes are damaged reads as empty."""
    return _record(row if is_sound(row) else (*row[:2], b"", None, *row[4:]))


def checked_record(row: tuple[Any, ...]) -> Record:
    """The same, for who needs what the record says. Raises DamagedBodyError."""
    # Of nearly every row this is all that there is to ask.
    is_plain = row[3] is None and type(row[2]) is bytes and body_hash(row[2]) == row[-2]
    if not is_plain and not is_sound(row):
        raise DamagedBodyError(row[-1], row[9], row[0])
    return _record(row)


def is_sound(row: tuple[Any, ...]) -> bool:
    """Are the bytes those that were stored, and can the message beside them be read?"""
    data, message = row[2], row[3]
    return is_intact(data, row[-2]) and (message is None or bool(parsed(message)))


def is_intact(data: object, digest: bytes) -> bool:
    """Is it a body as it was stored?"""
    return isinstance(data, bytes) and body_hash(data) == digest


def _record(row: tuple[Any, ...]) -> Record:
    # By place: a compaction reads hundreds.
    uuid, kind, data, message, role, message_id, parent_uuid, root, at_ms, seq, subtype, meta, summary, agent = row[:14]
    raw = parsed(data)
    return Record(
        uuid,
        kind,
        data,
        raw,
        None if role is None else _message(raw if message is None else parsed(message), role, message_id),
        parent_uuid,
        bool(root),
        at_ms,
        seq,
        subtype,
        bool(meta),
        bool(summary),
        agent,
    )


def parsed(data: bytes) -> Mapping[str, Any]:
    """The JSON object of a body; an empty one where it holds something else (a damaged line)."""
    found = _object(data)
    return _loaded(data) if found is None else found


def _loaded(data: bytes) -> Mapping[str, Any]:
    """The same for what is not plain JSON from its first byte to its last one."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def inner_message(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of a body: a transcript's line holds it under `message`, a plain one is it."""
    message = raw.get("message")
    # To ask for an abstract class costs more than all else here.
    return message if message is not None and isinstance(message, OBJECT) else raw


def _message(raw: Mapping[str, Any], role: str, message_id: str | None) -> Message | None:
    message = decode_message(inner_message(raw), role)
    if message is None or (message.role == role and message.id == message_id):
        return message
    return Message(
        role=role,
        content=message.content,
        blocks=message.blocks,
        id=ApiMessageId(message_id) if message_id is not None else None,
        model=message.model,
        usage=message.usage,
        stop_reason=message.stop_reason,
    )


def stored_message(record: Record, message: Message) -> bytes | None:
    """The JSON of a record's message where its body alone would not give it back (formats that are translated)."""
    if _gives_back(inner_message(record.raw or parsed(record.body)), message):
        return None
    usage = message.usage
    return _write(
        {
            "role": message.role,
            "id": message.id,
            "content": message.content,
            "model": message.model,
            "stop_reason": message.stop_reason,
            "usage": usage and {"input_tokens": usage.context_tokens, "output_tokens": usage.output_tokens},
        }
    )


def _gives_back(inner: Mapping[str, Any], message: Message) -> bool:
    """Is the message in a body the same? Model and usage may stand elsewhere, under names of the format's own."""
    content = inner.get("content")
    if content is message.content:
        # Nearly always it was decoded from here; then nothing of it has another name.
        if message.usage is not None and not (
            isinstance(usage := inner.get("usage"), dict) and "input_tokens" in usage
        ):
            return False
        return message.model is None or inner.get("model") == message.model
    if content != message.content:
        return False
    decoded = decode_message(inner)
    return decoded is not None and (decoded.model, decoded.usage, decoded.stop_reason) == (
        message.model,
        message.usage,
        message.stop_reason,
    )


def whole_records(conn: sqlite3.Connection, session: int, seqs: Sequence[int]) -> list[Record]:
    """Stored records with their bodies, in the order of their seqs. Raises DamagedBodyError."""
    rows = conn.execute(
        f"SELECT {WHOLE} FROM json_each(?) e CROSS JOIN record r ON r.session = ? AND r.seq = e.value "  # noqa: S608
        "LEFT JOIN body b ON b.id = r.body_id ORDER BY e.key",
        (json_list(seqs), session),
    )
    return [checked_record(row) for row in rows]


def whole_record(conn: sqlite3.Connection, session: int, seq: int) -> Record | None:
    """A stored record with its body. Raises DamagedBodyError."""
    row = conn.execute(
        f"SELECT {WHOLE} FROM record r LEFT JOIN body b ON b.id = r.body_id WHERE r.session = ? AND r.seq = ?",  # noqa: S608 - our own columns
        (session, seq),
    ).fetchone()
    return checked_record(row) if row else None
