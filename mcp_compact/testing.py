"""Helpers for tests, shipped: builders of records and a fixed clock."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_compact.messages.codec import canonical, decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn

START_MS = 1_767_225_600_000
"""2026-01-01 00:00 UTC."""
STEP_MS = 60_000


@dataclass(slots=True)
class FixedClock:
    """A clock that stands still until it is moved, and numbers its uuids."""

    at_ms: int = START_MS
    made: int = 0

    def now_ms(self) -> int:
        """The fixed time."""
        return self.at_ms

    def new_uuid(self) -> str:
        """The next of a known row of uuids."""
        self.made += 1
        return f"00000000-0000-4000-8000-{self.made:012d}"


@dataclass(slots=True)
class Talk:
    """Builds a conversation record by record; each record's parent is the one before unless said otherwise."""

    records: list[Record] = field(default_factory=list)

    def add(self, role: str, content: Any, *, message_id: str = "", **fields: Any) -> Record:  # noqa: ANN401
        """Add a message; `fields` are those of Record (uuid, parent_uuid, is_meta, ...)."""
        number = len(self.records) + 1
        raw: dict[str, Any] = {"role": role, "content": content} | ({"id": message_id} if message_id else {})
        base = Record(
            uuid=MessageUuid(f"r{number}"),
            type=role,
            body=canonical(raw),
            raw=raw,
            message=decode_message(raw, role),
            at_ms=START_MS + number * STEP_MS,
            seq=number,
        )
        record = replace(base, **fields)
        self.records.append(record)
        return record

    def user(self, text: str, **fields: Any) -> Record:  # noqa: ANN401
        """What a person typed."""
        return self.add("user", text, **fields)

    def assistant(self, text: str, **fields: Any) -> Record:  # noqa: ANN401
        """An answer in one text block."""
        return self.add("assistant", [{"type": "text", "text": text}], **fields)

    def call(self, *ids: str, name: str = "Read", message_id: str = "", **fields: Any) -> Record:  # noqa: ANN401
        """An answer that makes calls."""
        blocks = [{"type": "tool_use", "id": i, "name": name, "input": {"file_path": f"{i}.py"}} for i in ids]
        return self.add("assistant", blocks, message_id=message_id, **fields)

    def results(self, *ids: str, text: str = "ok", **fields: Any) -> Record:  # noqa: ANN401
        """The user turn with the results of calls."""
        return self.add("user", [tool_result(i, text) for i in ids], **fields)


def tool_result(call: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    """A tool_result block."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": text}
    return block | ({"is_error": True} if is_error else {})


def image(side: int | None = None) -> dict[str, Any]:
    """A PNG of so many pixels a side: its header alone. None: an image that cannot be measured."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII5x", 13, b"IHDR", side or 0, side or 0)
    data = base64.b64encode(head if side else b"no image" * 4).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def turns(records: Sequence[Record]) -> list[Turn]:
    """Records as turns of a view."""
    return [Turn(r.message.role, r.message.blocks, r.uuid, r.message.id) for r in records if r.message]


def as_messages(view: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as plain API messages."""
    return [{"role": turn.role, "content": [dict(block.raw) for block in turn.blocks]} for turn in view]
