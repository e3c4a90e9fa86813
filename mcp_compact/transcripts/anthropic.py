"""Reads message lists of the Anthropic Messages API.

A JSON list, an object with `messages` (and `system`, `model`), or one message a line. Items may be
plain messages or stand in a transcript's envelope (type, uuid, parentUuid, message).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import OBJECT, parse_content
from mcp_compact.messages.codec import canonical
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.fields import text_of
from mcp_compact.transcripts.kinds import BOUNDARY, HEADER
from mcp_compact.transcripts.lines import Json, Line, Problem, excerpt, parse_line
from mcp_compact.transcripts.objects import (
    FirstLine,
    begins_value,
    document,
    objects_of,
    several_conversations,
)
from mcp_compact.transcripts.parsed import Known, Parsed, nothing_known
from mcp_compact.transcripts.report import ImportReport

SYSTEM_PROMPT = "system_prompt"
COMPACTION = "compaction"
"""The kind of block in which the API gives the summary of its own compaction; it stands for all that came before."""
_TAKEN = ("messages", "system", "model")
"""What of a request becomes records and facts; the rest is kept as it is."""


class AnthropicReader:
    """Turns a message list into records; each item's place in the list takes the part of its line.

    A list that is one JSON value must be handed over whole; one message a line may come batch by batch.
    """

    def __init__(self, source: str, state: Mapping[str, Any] | None = None, known: Known = nothing_known) -> None:
        self._items = ClaudeCodeReader(source, state["items"] if state else None, known)
        self._model: str | None = state["model"] if state else None
        self._by_line: bool = state["by_line"] if state else False
        self._first: FirstLine | None = None

    @property
    def report(self) -> ImportReport:
        """What was read so far."""
        return self._items.report

    @property
    def agents(self) -> tuple[str, ...]:
        """The sub-agents met so far."""
        return self._items.agents

    @property
    def sole_agent(self) -> str | None:
        """The sub-agent that the whole list is about."""
        return self._items.sole_agent

    def facts(self, agent_id: str | None = None) -> SessionFacts:
        """What is known of the session; the model that the request names counts before an answer's."""
        facts = self._items.facts(agent_id)
        return replace(facts, model=self._model or facts.model) if agent_id is None else facts

    def messages_of(self, value: Mapping[str, Any]) -> list[Any] | None:
        """The messages of an object that holds a whole conversation; None for any other."""
        messages = value.get("messages")
        return messages if isinstance(messages, list) else None

    def state(self) -> dict[str, Any]:
        """A small JSON value from which another reader goes on."""
        return {"items": self._items.state(), "model": self._model, "by_line": self._by_line}

    def goes_on(self, first: Line) -> bool:
        """Is it one message a line, by its first one?"""
        if not self._by_line:
            self._first = FirstLine(first)
            value = self._first.value
            if value is None and not begins_value(first):
                # Torn, or two in one.
                value = next((raw for raw, _ in parse_line(first).objects), None)
            self._by_line = value is not None and self.messages_of(value) is None
        return self._by_line

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of the list, in its order."""
        rest = iter(lines)
        first = next(rest, None)
        if first is None:
            return
        if self._by_line or ((self._first is None or self._first.line is not first) and self.goes_on(first)):
            for raw, body, number in objects_of(chain([first], rest), self.report):
                yield from self._item(raw, body, number)
        else:
            yield from self._read_document(first, list(rest))

    def _read_document(self, first: Line, rest: list[Line]) -> Iterator[Parsed]:
        looked, self._first = self._first, None
        found = looked.document if looked is not None else None
        if found is not None and found.value is not None and rest:
            raise several_conversations()
        value, write, _ = found if found is not None and found.value is not None else document([first, *rest])
        beside: Json = {}
        if isinstance(value, dict):
            beside = {key: item for key, item in value.items() if key not in _TAKEN}
            self._model = text_of(value, "model") or self._model
            if value.get("system"):
                yield from self._system(value["system"])
            value = self.messages_of(value)
        if not isinstance(value, list):
            raise CallerError(
                "not_a_transcript",
                "The JSON holds no list of messages.",
                "Give a list of messages, an object with `messages`, or one message a line.",
            )
        for place, item in enumerate(value, 1):
            if isinstance(item, dict):
                yield from self._item(item, write(item), place)
            else:
                self.report.add_problem(Problem(place, "not a JSON object", excerpt(canonical(item))))
        if beside:
            # Behind the messages: their places, which name them, stay what they are.
            header = {"type": HEADER, "request": beside}
            yield from self._items.feed(header, canonical(header), 0)

    def _system(self, system: object) -> Iterator[Parsed]:
        raw = {"role": "system", "content": system}
        for parsed in self._items.feed(raw, canonical(raw), 0):
            yield parsed._replace(record=replace(parsed.record, subtype=SYSTEM_PROMPT))

    def _item(self, raw: Json, body: bytes, place: int) -> Iterator[Parsed]:
        if not isinstance(raw.get("type"), str) and not isinstance(raw.get("role"), str):
            self.report.add_problem(Problem(place, "a message without role", excerpt(body)))
            return
        summary = compaction_of(raw)
        if not summary:
            yield from self._items.feed(raw, body, place)
            return
        yield from self._compacted(raw, body, place, summary)

    def _compacted(self, raw: Json, body: bytes, place: int, summary: str) -> Iterator[Parsed]:
        """The provider's own boundary and its summary, then the rest of the answer that holds the block."""
        marker = {"type": "system", "subtype": BOUNDARY, "compactMetadata": {"trigger": "auto"}, "of": place}
        told = {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": summary}}
        for entry in (marker, told):
            yield from self._items.feed(entry, canonical(entry), place)
        for parsed in self._items.feed(raw, body, place):
            message = parsed.record.message
            if message is None:
                yield parsed
                continue
            rest = [block for block in message.content if not _is_compaction(block)]
            shown = replace(message, content=rest, blocks=parse_content(rest))
            yield parsed._replace(record=replace(parsed.record, message=shown))


def compaction_of(raw: Json) -> str:
    """What a compaction by the provider left of all that came before, empty where there is none."""
    inner = raw.get("message", raw)
    content = inner.get("content") if isinstance(inner, OBJECT) else None
    found = [block["content"] for block in content if _is_compaction(block)] if isinstance(content, list) else []
    return found[-1] if found else ""


def _is_compaction(block: object) -> bool:
    if not isinstance(block, OBJECT) or block.get("type") != COMPACTION:
        return False
    return isinstance(block.get("content"), str) and bool(block["content"].strip())
