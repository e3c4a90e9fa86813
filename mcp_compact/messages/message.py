"""Records of the archive, and the narrow view (`Entry`) that the algorithms work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mcp_compact.messages.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ApiMessageId, MessageUuid, ToolUseId
from mcp_compact.messages.values import value
from mcp_compact.messages.weights import Weight

MESSAGE_TYPES = ("user", "assistant")


@value
class Usage:
    """What the provider counted for one request, in its own tokens."""

    context_tokens: int
    """Everything that was sent: fresh, cache write and cache read."""
    output_tokens: int
    """Largest figure seen; reliable only where the answer has a stop reason."""


@value
class Message:
    role: str
    content: Any
    """The JSON as it was: text or a list of blocks."""
    blocks: tuple[Block, ...]
    id: ApiMessageId | None = None
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None


@value
class Record:
    """One entry of a session's archive.

    `parent_uuid` None with `is_root` means that nothing comes before; without `is_root`
    that the previous record is the parent. `seq` is 1 for the first record, 0 before it is stored.
    """

    uuid: MessageUuid
    type: str
    body: bytes
    """The transcript's own bytes, or canonical JSON of what was received."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    message: Message | None = None
    parent_uuid: MessageUuid | None = None
    is_root: bool = False
    at_ms: int | None = None
    """Milliseconds since 1970, None where there was no usable time."""
    seq: int = 0
    subtype: str = ""
    is_meta: bool = False
    is_summary: bool = False
    """A compaction's summary, ours or a client's own."""
    agent_id: str | None = None
    """Set on the records of a sub-agent (sidechain)."""

    @property
    def is_message(self) -> bool:
        """Is it part of the dialogue with the model?"""
        return self.message is not None and self.type in MESSAGE_TYPES and self.message.role in MESSAGE_TYPES

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.message.blocks if self.message else ()

    @property
    def calls(self) -> tuple[ToolUseBlock, ...]:
        """Calls that a later user turn answers (server calls are answered in place)."""
        return tuple([b for b in self.blocks if isinstance(b, ToolUseBlock) and not b.server])

    @property
    def results(self) -> tuple[ToolResultBlock, ...]:
        return tuple([b for b in self.blocks if isinstance(b, ToolResultBlock) and not b.server])

    @property
    def text(self) -> str:
        """Its own text, tool results and thinking left out."""
        return "\n".join(b.text for b in self.blocks if isinstance(b, TextBlock))

    @property
    def has_thinking(self) -> bool:
        return any(isinstance(b, ThinkingBlock) for b in self.blocks)

    @property
    def is_text_holding(self) -> bool:
        """A user or assistant record with text of its own; meta and service records do not count."""
        if self.is_meta or self.is_summary or not self.is_message:
            return False
        # No copies: `isspace` stops at the first character that is none.
        return any(b.text and not b.text.isspace() for b in self.blocks if isinstance(b, TextBlock))


@value
class Entry:
    """A live message record as the algorithms see it: no body, but its weight and its links."""

    uuid: MessageUuid
    seq: int
    role: str
    message_id: ApiMessageId | None
    weight: Weight
    text_holding: bool
    calls: tuple[ToolUseId, ...] = ()
    results: tuple[ToolUseId, ...] = ()
    at_ms: int | None = None
    has_thinking: bool = False


def entry_of(record: Record, weight: Weight) -> Entry:
    """The narrow view of a message record."""
    message = record.message
    return Entry(
        uuid=record.uuid,
        seq=record.seq,
        role=message.role if message else record.type,
        message_id=message.id if message else None,
        weight=weight,
        text_holding=record.is_text_holding,
        calls=tuple(call.id for call in record.calls),
        results=tuple(result.tool_use_id for result in record.results),
        at_ms=record.at_ms,
        has_thinking=record.has_thinking,
    )
