"""Items that a loop of the caller's own appends, as records: told by what they hold, one list at a time.

Messages of Anthropic and of OpenAI's chat API and transcript records are read as they stand (`claude_code`). Items of
OpenAI's Responses API and contents of Gemini have readers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import OBJECT, OtherBlock
from mcp_compact.messages.codec import canonical, clean, decode_message, parse_time
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import MESSAGE_TYPES, Record
from mcp_compact.messages.values import value
from mcp_compact.transcripts.beside import SILENT_ITEMS
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.fields import uuid_of
from mcp_compact.transcripts.kinds import UNKNOWN, kind_of
from mcp_compact.transcripts.objects import may_hold_half
from mcp_compact.transcripts.openai_chat_messages import is_chat
from mcp_compact.transcripts.registry import GEMINI, OPENAI, RESPONSES, reader_for
from mcp_compact.transcripts.report import ImportReport
from mcp_compact.transcripts.responses_out import ANSWERED, ANSWERS, FIXED_ANSWERS, MODEL_ITEMS
from mcp_compact.transcripts.validity.anthropic_rules import KINDS

Item: TypeAlias = Mapping[str, Any]
MESSAGES = ""
"""The form of messages and transcript records: any but those of the two other readers."""
ANTHROPIC_ONLY = "anthropic-only"
RECORD = "record"
PLAIN = "plain"
"""A role and a text look the same in several APIs."""
SAID = {
    GEMINI: "a content of Gemini (`parts`)",
    RESPONSES: "an item of OpenAI's Responses API",
    OPENAI: "a message of OpenAI's chat API",
    ANTHROPIC_ONLY: "a message of Anthropic",
    RECORD: "a transcript record",
    PLAIN: "a message with `content`",
}
HINT = "Append the items of one API in one call, as it gave and takes them."

_ITEMS = frozenset((
    *MODEL_ITEMS, *ANSWERS.values(), *FIXED_ANSWERS.values(), *ANSWERED, *SILENT_ITEMS, "compaction_trigger",
))  # fmt: skip
_ITEM_PARTS = frozenset(("input_text", "output_text", "input_image", "input_file"))
_CHAT_PARTS = frozenset(("image_url", "input_audio", "file"))
_BLOCKS = frozenset((
    "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result",
    "image", "document",
))  # fmt: skip
_SERVERS_RESULT = "_tool_result"
_KNOWN_BLOCKS = KINDS | _CHAT_PARTS | _ITEM_PARTS
_OF_TRANSCRIPTS = frozenset(("type", "message", "uuid", "parentUuid"))
"""An item without any of these stands for itself alone: nothing before it in the list says what becomes of it."""
_ROLE_AND_CONTENT = 2
_MADE_UP = re.compile(r"(call|result)-\d+-(\d+)")
_OF_PLACE = ("id", "tool_use_id")


@value
class Carried:
    """What earlier appends left for the reader of Gemini's contents, whose calls have no ids."""

    place: int = 0
    """A number that no content before has, and none above."""
    open_calls: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names of tools, and the ids of their calls that wait for a result."""


@dataclass(frozen=True, slots=True)
class ReadItems:
    """Records of items in their order, and what was not understood of them."""

    records: list[Record]
    unknown: tuple[str, ...] = ()
    odd_blocks: tuple[str, ...] = ()
    """Blocks of messages whose type no API is known to have."""


def form_of(items: Sequence[Item]) -> str:
    """`responses`, `gemini`, or nothing for messages and records. Raises CallerError `mixed_messages`."""
    form, at = MESSAGES, 0
    signs = [sign_of(item) for item in items]
    for place, sign in enumerate(signs, 1):
        if sign in (GEMINI, RESPONSES):
            form, at = sign, place
            break
    if not form:
        return form
    fits = (GEMINI,) if form == GEMINI else (RESPONSES, PLAIN)
    for place, sign in enumerate(signs, 1):
        if sign not in fits:
            told = f"Message {at} is {SAID[form]}, but message {place} is {SAID[sign]}."
            raise CallerError("mixed_messages", told, HINT)
    return form


def is_chat_list(items: Iterable[Item]) -> bool:
    """Is there a message among them that only OpenAI's chat API has?"""
    return any(sign_of(item) == OPENAI for item in items)


def sign_of(item: Item) -> str:
    """What an item is for sure; `plain` where several APIs have such a one."""
    message = item.get("message")
    if message is not None and isinstance(message, OBJECT):
        return RECORD
    if isinstance(item.get("parts"), list) and "content" not in item and "info" not in item:
        return GEMINI
    kind = item.get("type")
    if isinstance(kind, str) and kind in _ITEMS:
        return RESPONSES
    if "tool_calls" in item or "function_call" in item or item.get("role") in ("tool", "function"):
        return OPENAI
    return _sign_of_parts(item.get("content"))


def _sign_of_parts(content: object) -> str:
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, OBJECT) else None
        if not isinstance(kind, str):
            continue
        for kinds, sign in ((_ITEM_PARTS, RESPONSES), (_BLOCKS, ANTHROPIC_ONLY), (_CHAT_PARTS, OPENAI)):
            if kind in kinds:
                return sign
    return PLAIN


def says_anything(item: Item) -> bool:
    """Does it hold what can be sent, as far as its form tells?"""
    inner = item.get("message", item)
    if not isinstance(inner, OBJECT) or item.get("type") not in (None, "user", "assistant", "message"):
        return True
    get = inner.get
    return bool(get("content") or get("tool_calls") or get("refusal") or get("parts"))


def read_items(
    items: Sequence[Item], form: str, new_uuid: Callable[[], str], carried: Carried | None = None
) -> ReadItems:
    """The records of items of one form, under the uuids that these name, else new ones.

    Each body is the item's own JSON. Raises CallerError `bad_messages` for what is no JSON.
    """
    if form == MESSAGES:
        return _messages(items, new_uuid)
    carried = carried or Carried()
    own = {"place": carried.place, "open": carried.open_calls} if form == GEMINI else {}
    state = {"ordinal": 0, "parent_session": None, "facts": (), "last": "", "own": own}
    reader: Any = reader_for(form, "append", state)
    records: list[Record] = []
    for at, item in enumerate(items, 1):
        raw, body = _json_of(item, at)
        found = [parsed.record for parsed in reader.feed(raw, body, at)]
        uuid, at_ms = uuid_of(item.get("uuid")) or new_uuid(), parse_time(item.get("timestamp"))
        # A call that its provider answered itself is two records of one item.
        names = [uuid, *(f"{uuid}:{number}" for number in range(2, len(found) + 1))]
        records += [_named(record, name, at_ms) for record, name in zip(found, names, strict=True)]
    return ReadItems(records, _unknown(reader.report))


def _unknown(report: ImportReport) -> tuple[str, ...]:
    return tuple(f"message {place.line}: {place.kind!r} is not understood" for place in report.unknown_places)


def _messages(items: Sequence[Item], new_uuid: Callable[[], str]) -> ReadItems:
    """A sub-agent's records are left to the session that the caller names."""
    reader: ClaudeCodeReader | None = None
    out: list[Record] = []
    for at, item in enumerate(items, 1):
        raw, body = _json_of(item, at)
        if _OF_TRANSCRIPTS.isdisjoint(raw) and (bare := _bare(raw, body, MessageUuid(new_uuid()))):
            out.append(bare)
            continue
        reader = reader or ClaudeCodeReader("append")
        record = reader.feed(raw, body, at)[0].record
        named = isinstance(item.get("uuid"), str) and item["uuid"]
        out.append(_named(record, record.uuid if named else new_uuid(), record.at_ms))
    return ReadItems(out, _unknown(reader.report) if reader is not None else (), tuple(_odd_blocks(out)))


def _odd_blocks(records: Iterable[Record]) -> Iterator[str]:
    for at, record in enumerate(records, 1):
        for block in record.blocks:
            if type(block) is OtherBlock and not (block.type in _KNOWN_BLOCKS or block.type.endswith(_SERVERS_RESULT)):
                yield f"message {at}: a block of the type {block.type[:40]!r} is not known here"


def _bare(raw: Item, body: bytes, uuid: MessageUuid) -> Record | None:
    """The record of a message without an envelope, as the reader makes it; None for what it does not know either.

    Nearly all that loops send are such, and the reader keeps books that nobody asks for here.
    """
    role = raw.get("role")
    if len(raw) == _ROLE_AND_CONTENT and role in MESSAGE_TYPES and "content" in raw and not is_chat(raw):
        return Record(uuid, role, body, raw, decode_message(raw, role))
    kind, at_ms = kind_of(raw), parse_time(raw.get("timestamp"))
    if kind.type == UNKNOWN:
        return None
    return Record(
        uuid,
        kind.type,
        body,
        raw,
        kind.message,
        at_ms=at_ms,
        subtype=kind.subtype,
        is_meta=kind.is_meta,
        is_summary=kind.is_summary,
    )


def _json_of(item: Item, at: int) -> tuple[dict[str, Any], bytes]:
    raw = dict(item)
    try:
        body = canonical(raw)
    except (TypeError, ValueError, RecursionError) as error:
        hint = 'Pass plain JSON values; of an SDK\'s object its `model_dump(mode="json")`.'
        raise CallerError("bad_messages", f"Message {at} is no JSON: {error}.", hint) from None
    return (clean(raw) if may_hold_half(body) else raw), body


def _named(record: Record, uuid: str, at_ms: int | None) -> Record:
    """The record under a uuid, as the session's own. By place, which costs a third of `replace`."""
    return Record(
        MessageUuid(uuid),
        record.type,
        record.body,
        record.raw,
        record.message,
        record.parent_uuid,
        record.is_root,
        at_ms,
        record.seq,
        record.subtype,
        record.is_meta,
        record.is_summary,
    )


def carried_from(records: Iterable[Record], place: int) -> Carried:
    """The calls of the newest answer among records, in order, that no result in them answers."""
    waiting: dict[str, list[str]] = {}
    is_answering = False
    for record in records:
        if not record.is_message:
            continue
        is_answer = record.type == "assistant"
        if is_answer and not is_answering:
            waiting.clear()
        is_answering = is_answer
        for call in record.calls:
            waiting.setdefault(call.name, []).append(call.id)
        answered = {result.tool_use_id for result in record.results}
        waiting = {name: [i for i in ids if i not in answered] for name, ids in waiting.items()}
    return Carried(place, tuple((name, tuple(ids)) for name, ids in waiting.items() if ids))


def without_places(content: object) -> object:
    """A message's content without the numbers that were made of a content's place: sent again it has another one."""
    if not isinstance(content, list):
        return content
    return [_unplaced(block) if isinstance(block, Mapping) else block for block in content]


def _unplaced(block: Mapping[str, Any]) -> Mapping[str, Any]:
    names = {key: _MADE_UP.fullmatch(block[key]) for key in _OF_PLACE if isinstance(block.get(key), str)}
    return {**block, **{key: found.expand(r"\1-\2") for key, found in names.items() if found}}
