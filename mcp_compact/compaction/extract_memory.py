"""Reads an old memory, or a summary, back into passages that compete with new lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_compact.compaction.extract_envelopes import is_envelope
from mcp_compact.compaction.extract_lines import LONG_CHARS, Line, Splitter
from mcp_compact.compaction.extract_passages import JOINT, MEMORY, Passage
from mcp_compact.compaction.extract_tasks import is_task
from mcp_compact.messages.memory_document import HEADINGS, REQUESTS, STATE, TASK, WORKLOG, MemoryDocument, parse

OLD = -1
"""Order of everything that was written before the first record."""
QUOTE = "> "
BULLETS = ("- ", "* ", "+ ")
LONGEST_BULLET_CHARS = 3 * LONG_CHARS
"""A longer paragraph is split into its sentences."""

_KNOWN = {heading.casefold(): heading for heading in HEADINGS}


@dataclass(slots=True)
class _Item:
    """A bullet or paragraph, and what is nested under it."""

    text: str
    quoted: bool
    nested: list[tuple[str, bool]] = field(default_factory=list)


def user_words_of(memory: MemoryDocument | None) -> tuple[str, ...]:
    """What the user said, as an old memory kept it: the bullets of its first section."""
    if memory is None:
        return ()
    return tuple(item.text for item in _items(memory.body(REQUESTS)) if not item.quoted)


def memory_passages(memory: MemoryDocument | None, splitter: Splitter) -> list[Passage]:
    """Passages of an old memory; the user's words are read by `user_words_of`."""
    made: list[Passage] = []
    for section in memory.sections if memory else ():
        heading = _KNOWN.get(section.heading.casefold(), section.heading)
        if heading and heading != REQUESTS:
            made += _of_section(WORKLOG if heading == STATE else heading, section.body, splitter)
    return made


def summary_passages(summaries: Sequence[str], splitter: Splitter) -> list[Passage]:
    """Passages of the last boundary's summary texts; a model wrote them."""
    made: list[Passage] = []
    for text in summaries:
        for section in parse(text).sections:
            made += _of_section(_KNOWN.get(section.heading.casefold(), WORKLOG), section.body, splitter)
    return made


def _of_section(heading: str, body: str, splitter: Splitter) -> Iterator[Passage]:
    for item in _items(body):
        if heading == TASK and is_task(item.text):
            continue
        if not item.nested:
            yield Passage(OLD, MEMORY, heading, "", _lines(item.text, splitter), from_tool=item.quoted)
            continue
        head = item.text.strip("`") if item.text.count("`") == 2 else item.text  # noqa: PLR2004 - one pair of marks
        if head == item.text:
            yield Passage(OLD, MEMORY, heading, head, _lines(head, splitter), tells_head=True)
        for text, quoted in item.nested:
            yield Passage(OLD, MEMORY, heading, head, _lines(text, splitter), from_tool=quoted)


def _lines(text: str, splitter: Splitter) -> tuple[Line, ...]:
    """A bullet's lines as they stood in their source; a long paragraph's sentences."""
    parts = [part for part in text.split(JOINT) if not is_envelope(part)]
    return tuple(
        line
        for part in parts
        for line in (splitter.lines(part) if len(part) > LONGEST_BULLET_CHARS else (splitter.quoted(part),))
    )


def _items(body: str) -> list[_Item]:
    items: list[_Item] = []
    for raw in body.splitlines():
        text = raw.strip()
        if not text or text == "_" or (text.startswith("_") and text.endswith("_")):
            continue
        indented = raw[0] in " \t"
        quoted = text.startswith(QUOTE)
        marked = quoted or text.startswith(BULLETS)
        own = text[2:].strip() if marked else text
        if indented and items and own:
            items[-1].nested.append((own, quoted))
        elif own:
            items.append(_Item(own, quoted))
    return items
