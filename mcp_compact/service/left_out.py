"""What of a list or a file goes no further: named with its places and why, so that nothing is missing in silence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_compact.messages.blocks import Block, TextBlock, ThinkingBlock
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import MESSAGE_TYPES, Record
from mcp_compact.service.given import ENTRY, MESSAGE, OF_APIS, Given
from mcp_compact.transcripts.beside import beside_of, is_silent, is_system, item_of
from mcp_compact.transcripts.loop_items import MESSAGES
from mcp_compact.transcripts.openai_chat_messages import INSTRUCTING
from mcp_compact.transcripts.outs import Out
from mcp_compact.transcripts.parsed import Parsed
from mcp_compact.transcripts.registry import ANTHROPIC, CLAUDE_CODE, OPENAI
from mcp_compact.transcripts.report import PART
from mcp_compact.transcripts.responses_out import CODEX_OWN, ENVELOPE

THINKING_GOES = (ANTHROPIC, CLAUDE_CODE)
NO_SYSTEM = ("gemini", "codex")
"""Contents of Gemini and rollouts of Codex have no place for a message of the system."""
NOTHING_SAID = "it says nothing (no `content`, or an empty one): left out"
LISTED = 20
"""So many places, or runs of them, are named in one warning."""
_KNOWN_ROLES = frozenset((*MESSAGE_TYPES, "system", "developer", "tool", "function", "model"))


def left_out(given: Given, out: Out, live: LiveContext, made: Iterable[Mapping[str, Any]]) -> list[str]:
    """What of it does not go on, each with its places and why.

    `live`: what goes on after the compaction, as `made` in the format `out`.
    """
    groups: dict[int, list[Parsed]] = defaultdict(list)
    for item in given.parsed:
        groups[item.line].append(item)
    teller = _Teller(given, out, frozenset(systems_going(given, out, live)), _silent(made), _first_place(given, live))
    reasons: dict[str, list[int]] = defaultdict(list)
    for place in sorted(groups):
        if why := teller.why(groups[place], place):
            reasons[why].append(place)
    for lost in given.reader.report.unknown_places:
        if lost.kind.startswith(PART) and lost.kind in given.reader.report.unknown_types:
            reasons[f"{lost.kind!r} of it is not understood: left out"].append(lost.line)
    return [f"{named_places(given.noun, places)}: {why}" for why, places in reasons.items()]


def says_anything(record: Record) -> bool:
    """Is it a message in which there is anything but blanks?"""
    return record.is_message and bool(_filled(record))


def _filled(record: Record) -> list[Block]:
    """Its blocks but blank ones, and thinking in the user's turn, which no provider takes."""
    return [
        b for b in record.blocks if not _is_blank(b) and not (record.type == "user" and isinstance(b, ThinkingBlock))
    ]


def _is_blank(block: Block) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _silent(made: Iterable[Mapping[str, Any]]) -> frozenset[bytes]:
    """What only its own provider reads of the items that were made."""
    return frozenset(_bare(item) for item in made if is_silent(item))


def _bare(raw: Mapping[str, Any]) -> bytes:
    """An item alone, to be compared: without the line around it and what a client or a caller noted in it."""
    item = item_of(raw)
    return canonical({key: item[key] for key in item if key not in ENVELOPE and not key.startswith(CODEX_OWN)})


def _first_place(given: Given, live: LiveContext) -> int:
    """Where the first message stands that goes on: what stands before it left with the messages there, if any did."""
    shown = {record.uuid for record in live.all}
    messages = [item for item in given.main if says_anything(item.record)]
    first = next((at for at, item in enumerate(messages) if item.record.uuid in shown), 0)
    return messages[first].line if first else 0


@dataclass(frozen=True, slots=True)
class _Teller:
    given: Given
    out: Out
    systems: frozenset[str]
    silent: frozenset[bytes]
    first_place: int

    def why(self, group: Sequence[Parsed], place: int) -> str:
        """Why what stands in one place does not go on; empty where it does."""
        own = self.given.reader.sole_agent
        records = [item.record for item in group if item.agent_id is None or item.agent_id == own]
        if not records:
            return "it is a sub-agent's: left out" if self.given.noun == MESSAGE else ""
        messages = [record for record in records if record.is_message]
        if messages:
            return self._why_message(messages)
        system = [record for record in records if is_system(record)]
        if system:
            return self._why_system(system)
        if any(is_silent(record.raw) for record in records):
            return self._why_silent(records[0], place)
        return self._why_none(records[0], place)

    def _why_silent(self, record: Record, place: int) -> str:
        if place < self.first_place or _bare(record.raw) in self.silent:
            return ""
        return f"only its own provider reads it, and {self.out.name} has no place for it there: left out"

    def _why_message(self, records: Sequence[Record]) -> str:
        blocks = [block for record in records for block in _filled(record)]
        if not blocks:
            # Clients' own files hold many a blank message, of which nothing is missed.
            is_odd = self.given.noun == MESSAGE or self.given.format in OF_APIS
            return NOTHING_SAID if is_odd or all(_content(record) is None for record in records) else ""
        if any(record.type == "user" and record.has_thinking for record in records):
            return "thinking stands in a turn of the user: left out"
        is_plain = self.given.format in (MESSAGES, ANTHROPIC, OPENAI)
        if is_plain and all(_has_no_content(record.raw) for record in records):
            return "it says nothing: it has no `content`"
        if self.out.name not in THINKING_GOES and all(isinstance(block, ThinkingBlock) for block in blocks):
            return f"it holds thinking only, for which {self.out.name} has no place: left out"
        return ""

    def _why_system(self, records: Sequence[Record]) -> str:
        if self.given.format != MESSAGES and not all(record.text.strip() for record in records):
            return "an instruction of the system that holds no text: left out"
        if all(record.text in self.systems for record in records):
            return ""
        if self.out.takes_beside:
            return "an instruction of the system that stood among messages which left: left out"
        return f"an instruction of the system, which stands outside of what {self.out.name} holds: left out"

    def _why_none(self, record: Record, place: int) -> str:
        if record.type in MESSAGE_TYPES:
            return NOTHING_SAID
        report, raw = self.given.reader.report, record.raw
        is_unknown = record.type in report.unknown_types or any(lost.line == place for lost in report.unknown_places)
        if not is_unknown and self.given.noun == ENTRY:
            return ""
        role, kind = raw.get("role"), raw.get("type")
        if isinstance(role, str) and role not in _KNOWN_ROLES:
            return f"the role {role[:40]!r} is not understood: left out"
        if is_unknown and isinstance(kind, str):
            return f"the type {kind[:40]!r} is not understood: left out"
        return "it is not understood: left out" if is_unknown else f"{record.type!r} is no message: left out"


def named_places(noun: str, places: Sequence[int]) -> str:
    """`message 2`, `messages 2 and 5-7`; what stands beside a list is at its place 0."""
    if list(places) == [0]:
        return "beside the list"
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    told = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    many = noun.removesuffix("y") + "ies" if noun.endswith("y") else f"{noun}s"
    rest = [f"{len(told) - LISTED} more"] if len(told) > LISTED else []
    listed = [*told[:LISTED], *rest]
    if len(told) == 1 and runs[0][0] == runs[0][1]:
        return f"{noun} {told[0]}"
    return f"{many} " + (", ".join(listed[:-1]) + f" and {listed[-1]}" if len(listed) > 1 else listed[0])


def systems_going(given: Given, out: Out, live: LiveContext) -> list[str]:
    """What of the system's words goes along with the messages that go on."""
    if given.format == MESSAGES:
        return [item.record.text for item in given.main if out.name not in NO_SYSTEM and _is_bare_system(item.record)]
    if not out.takes_beside:
        return []
    beside = beside_of([item.record for item in given.main], [record.uuid for record in live.all])
    there = (*beside.leading, *(r for records in beside.before.values() for r in records), *beside.closing)
    return [record.text for record in there if is_system(record)]


def _content(record: Record) -> object:
    return record.message.content if record.message is not None else None


def _has_no_content(raw: Mapping[str, Any]) -> bool:
    """Is it a message of a role, without what one of this role says something in?"""
    if not isinstance(raw.get("role"), str) or (raw.get("type") in MESSAGE_TYPES and "message" in raw):
        return False
    saying = ("content", "tool_calls", "function_call", "refusal") if raw["role"] == "assistant" else ("content",)
    return all(raw.get(key) is None for key in saying)


def _is_bare_system(record: Record) -> bool:
    return record.raw.get("role") in INSTRUCTING and "message" not in record.raw
