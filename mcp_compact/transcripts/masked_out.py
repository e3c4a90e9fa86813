"""Masks keys and passwords in what is handed on: in turns before they are written, and in what stands beside them.

What may not be changed, since its provider signed it, is left out instead where it holds a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_compact.messages.blocks import OBJECT, Block, MediaBlock, ThinkingBlock, parse_block, parse_content
from mcp_compact.messages.masking import masked
from mcp_compact.messages.message import Message, Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.beside import Beside, is_system

OPAQUE = frozenset(
    ("data", "signature", "encrypted_content", "thoughtSignature", "thought_signature", "type", "id", "tool_use_id",
     "call_id", "uuid", "parentUuid", "sessionId", "media_type", "mimeType", "tool_call_id")
)  # fmt: skip
"""Fields whose texts are no words: a part of one may look like a key by chance."""


@dataclass(slots=True)
class Masker:
    """Masks values, and counts the texts that it changed."""

    count: int = 0
    _known: dict[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """A text with its keys masked."""
        told = self._known.get(text)
        if told is None:
            told = self._known[text] = masked(text)
        if told == text:
            # Not the equal text that was met before: what is unchanged is told by being the same object.
            return text
        self.count += 1
        return told

    def value(self, value: Any) -> Any:  # noqa: ANN401 - a JSON value
        """A JSON value with every text in it masked; the same value where none changed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, OBJECT):
            told = {key: item if key in OPAQUE else self.value(item) for key, item in value.items()}
            return value if all(told[key] is value[key] for key in value) else told
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def turns(self, turns: Iterable[Turn]) -> list[Turn]:
        """The turns with every text in them masked."""
        return [self._turn(turn) for turn in turns]

    def _turn(self, turn: Turn) -> Turn:
        kept = [told for block in turn.blocks if (told := self._block(block)) is not None]
        if len(kept) == len(turn.blocks) and all(new is old for new, old in zip(kept, turn.blocks, strict=True)):
            return turn
        return replace(turn, blocks=tuple(kept), whole=False)

    def _block(self, block: Block) -> Block | None:
        if isinstance(block, MediaBlock):
            return block
        raw = self.value(block.raw)
        if raw is block.raw:
            return block
        return None if isinstance(block, ThinkingBlock) else parse_block(raw)

    def beside(self, beside: Beside) -> Beside:
        """What stands beside the messages: system prompts masked, other things left out where they hold a key."""
        return Beside(
            self._records(beside.leading),
            {uuid: self._records(records) for uuid, records in beside.before.items()},
            self._records(beside.closing),
            beside.parted,
        )

    def _records(self, records: Iterable[Record]) -> tuple[Record, ...]:
        return tuple(told for record in records if (told := self._record(record)) is not None)

    def _record(self, record: Record) -> Record | None:
        raw = self.value(record.raw)
        if raw is record.raw:
            return record
        if not is_system(record):
            return None
        text = self.text(record.text)
        message = Message("system", text, parse_content(text))
        return replace(record, raw={"role": "system", "content": text}, message=message)

    def envelope(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """A line of a client's session file whose message was masked already: the copies beside it, too."""
        return {key: item if key in ("message", *OPAQUE) else self.value(item) for key, item in entry.items()}
