"""Messages that somebody gives, as a list or a file: whose they are, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.weights import GEMINI as GEMINI_FAMILY
from mcp_compact.messages.weights import OPENAI as OPENAI_FAMILY
from mcp_compact.messages.weights import family_of
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.loop_items import MESSAGES, PLAIN, SAID, form_of, sign_of
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.parsed import Parsed, Reader
from mcp_compact.transcripts.registry import (
    ANTHROPIC,
    CLAUDE_CODE,
    FORMATS,
    GEMINI,
    GEMINI_CLI,
    LANGCHAIN,
    OPENAI,
    RESPONSES,
    reader_for,
    sniff,
)
from mcp_compact.transcripts.responses_out import is_item
from mcp_compact.transcripts.sniffing import HEADS_BYTES

Item = Mapping[str, Any]
MESSAGE, ENTRY = "message", "entry"
"""What the things of a list, and those of a file, are called in a warning."""
OF_APIS = (ANTHROPIC, OPENAI, RESPONSES, GEMINI, LANGCHAIN)
HINT = "Pass the messages of one API, as it gives and takes them; compact each list by itself."
_LANGCHAINS_OWN = frozenset(("human", "ai"))
_OF_LANGCHAIN = _LANGCHAINS_OWN | {"system", "developer", "tool", "function", "chat", "remove"}


@dataclass(frozen=True, slots=True)
class Given:
    """What was read of a list or a file."""

    format: str
    """A name of FORMATS, or MESSAGES for messages and records as they stand."""
    reader: Reader
    parsed: Sequence[Parsed]
    noun: str = MESSAGE

    @property
    def main(self) -> list[Parsed]:
        """What is no sub-agent's, or its own where the whole is a sub-agent's."""
        own = self.reader.sole_agent
        return [item for item in self.parsed if item.agent_id is None or item.agent_id == own]


def read_list(items: Sequence[Any]) -> Given:
    """The records of a list. Raises CallerError `bad_message`, `mixed_messages`."""
    bodies = [_json(item, place) for place, item in enumerate(items, 1)]
    form = form_given(items)
    if form:
        reader = reader_for(form, "messages")
        return Given(form, reader, list(reader.read(read_lines([b"[" + b",".join(bodies) + b"]"]))))
    if items and not any(_is_message(item) for item in items):
        # A client's own entries, perhaps: each is one line of its file.
        data = b"\n".join(bodies)
        found = sniff(data[: HEADS_BYTES[0]])
        if found is not None and found in FORMATS and found not in (CLAUDE_CODE, ANTHROPIC, OPENAI):
            reader = reader_for(found, "messages")
            return Given(found, reader, list(reader.read(read_lines([data]))))
    own = ClaudeCodeReader("messages")
    pairs = zip(items, bodies, strict=True)
    return Given(MESSAGES, own, [p for at, (item, body) in enumerate(pairs, 1) for p in own.feed(dict(item), body, at)])


def _json(item: object, place: int) -> bytes:
    if not isinstance(item, Mapping) or not _tells_what_it_is(item):
        hint = "Pass API messages: {role, content}."
        raise CallerError("bad_message", f"Message {place} is no object with a role.", hint)
    try:
        return canonical(dict(item))
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError("bad_message", f"Message {place} is no JSON: {error}.", "Pass plain JSON values.") from None


def _tells_what_it_is(item: Item) -> bool:
    return isinstance(item.get("role"), str) or isinstance(item.get("type"), str) or isinstance(item.get("parts"), list)


def _is_message(item: Item) -> bool:
    return isinstance(item.get("role"), str) or isinstance(item.get("message"), OBJECT) or "uuid" in item


def form_given(items: Sequence[Item]) -> str:
    """The format of items that have a reader of their own, else MESSAGES. Raises CallerError `mixed_messages`."""
    at = next((place for place, item in enumerate(items, 1) if _is_langchain(item)), 0)
    if at:
        _refuse_beside_langchain(items, at)
        return LANGCHAIN
    try:
        form = form_of(items)
    except CallerError as error:
        raise CallerError(error.code, error.message, HINT) from None
    if form:
        return form
    named = any(item.get("type") == "message" and is_item(item) for item in items)
    return RESPONSES if named and all(sign_of(item) == PLAIN for item in items) else MESSAGES


def _is_langchain(item: Item) -> bool:
    """Is it a message that only LangChain has?"""
    if "role" in item and _kind(item) not in (*_LANGCHAINS_OWN, "chat"):
        return False
    if item.get("lc") is not None and isinstance(item.get("kwargs"), OBJECT):
        return True
    if isinstance(item.get("message"), OBJECT):
        return False
    is_own = _kind(item) in _LANGCHAINS_OWN and ("content" in item or "data" in item)
    return is_own or (_kind(item) in _OF_LANGCHAIN and isinstance(item.get("data"), OBJECT))


def _kind(item: Item) -> str:
    """Its type, as LangChain writes it in small letters; whole and in pieces alike."""
    kind = item.get("type")
    return kind.lower().removesuffix("messagechunk") if isinstance(kind, str) else ""


def _refuse_beside_langchain(items: Sequence[Item], at: int) -> None:
    for place, item in enumerate(items, 1):
        kind, sign = item.get("type"), sign_of(item)
        if _is_langchain(item) or (
            isinstance(kind, str) and kind.lower().removesuffix("messagechunk") in _OF_LANGCHAIN
        ):
            continue
        if sign != PLAIN or "role" in item:
            told = f"Message {at} is a message of LangChain, but message {place} is {SAID[sign]}."
            raise CallerError("mixed_messages", told, HINT)


def refuse_mixed(given: Given) -> None:
    """Raises CallerError `mixed_messages` for a file of messages of two APIs."""
    if given.format not in OF_APIS:
        return
    raws: dict[int, Item] = {}
    for item in given.main:
        if item.line > 0 and item.record.type != HEADER and not item.record.subtype:
            raws.setdefault(item.line, item.record.raw)
    form_given(list(raws.values()))


def format_to_write(name: str, model: str | None) -> str:
    """The format to give messages back in that were read as `name`: the same, else that of the model's provider."""
    if name in OUTS:
        return name
    family = family_of(model)
    if name == GEMINI_CLI or family is GEMINI_FAMILY:
        return GEMINI
    return OPENAI if family is OPENAI_FAMILY else ANTHROPIC


def told_of_format(name: str, written: str) -> list[str]:
    """What is said where messages cannot be given back in the format that they came in."""
    if not name or name in OUTS:
        return []
    return [f"the format {name} is read, but not written: these are given back in the format {written}"]
