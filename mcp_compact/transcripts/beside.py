"""What stands in an archive between the messages and belongs to a request all the same.

System prompts are no part of the dialogue, and reasoning or searches of a provider can be read by that provider
alone: neither is live. Formats that have a place for them get them back before the message that they stood before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_compact.messages.blocks import OBJECT, Raw, TextBlock
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record

LINE_OF_ITEM = "response_item"
"""How Codex marks a line whose payload is an item of the Responses API."""
SILENT_ITEMS = frozenset(
    ("reasoning", "compaction", "compaction_summary", "web_search_call", "image_generation_call", "mcp_list_tools",
     "mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output", "item_reference",
     "additional_tools", "program", "program_output", "configuration_update")
)  # fmt: skip
"""Items of the Responses API that no other provider can be sent."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Records that are no messages, by their place among those that are shown."""

    leading: tuple[Record, ...] = ()
    """System prompts before the first message of the archive, each text once."""
    before: Mapping[MessageUuid, tuple[Record, ...]] = field(default_factory=dict)
    """What stands right before a shown message."""
    closing: tuple[Record, ...] = ()
    """What follows the last message of the archive, where that one is shown."""
    parted: frozenset[MessageUuid] = frozenset()
    """Shown answers that go on an answer which is not shown."""


NOTHING = Beside()


def beside_of(archive: Iterable[Record], shown: Iterable[MessageUuid]) -> Beside:
    """What stands beside the shown messages. `archive` are the session's records in order."""
    names = frozenset(shown)
    leading: dict[str, Record] = {}
    before: dict[MessageUuid, tuple[Record, ...]] = {}
    parted: set[MessageUuid] = set()
    held: list[Record] = []
    last: Record | None = None
    for record in archive:
        if not record.is_message:
            if last is None and is_system(record):
                leading.setdefault(record.text, record)
            elif is_system(record) or is_silent(record.raw):
                held.append(record)
            continue
        if not _says_anything(record):
            continue
        if record.uuid in names:
            if held:
                before[record.uuid] = tuple(held)
            if record.type == "assistant" and last is not None and last.type == "assistant" and last.uuid not in names:
                parted.add(record.uuid)
        held, last = [], record
    closing = tuple(held) if last is not None and last.uuid in names else ()
    return Beside(tuple(leading.values()), before, closing, frozenset(parted))


def _says_anything(record: Record) -> bool:
    """Blank messages are not sent: what stands before one belongs to the next."""
    return any(not isinstance(block, TextBlock) or block.text.strip() for block in record.blocks)


def is_system(record: Record) -> bool:
    """Is it a system prompt, or an instruction of the developer?"""
    message = record.message
    return message is not None and message.role == "system" and not record.is_message and _says_anything(record)


def is_silent(raw: Raw) -> bool:
    """Is it an item that only its provider can read?"""
    kind = item_of(raw).get("type")
    return isinstance(kind, str) and kind in SILENT_ITEMS


def item_of(raw: Raw) -> Raw:
    """An item of the Responses API, taken out of the line that Codex keeps it in."""
    payload = raw.get("payload")
    return payload if raw.get("type") == LINE_OF_ITEM and isinstance(payload, OBJECT) else raw


def system_texts(records: Sequence[Record]) -> list[str]:
    """The texts of the system prompts among records."""
    return [record.text for record in records if is_system(record)]
