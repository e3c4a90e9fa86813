"""Cutting a memory document to a size. Whole lines go; standing instructions go last of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mcp_compact.messages.memory_document import MemoryDocument, Section, replace_section
from mcp_compact.messages.weights import UNITS_PER_TOKEN, CountUnits
from mcp_compact.messages.words import is_instruction

CutNote = Callable[[str, int], str]
"""Heading and number of lines cut -> how to get them."""
_Place = tuple[int, int]
TOKENS_OF_JOIN = 2
"""A blank line between two sections is a token, or part of the one before it."""


def fit(
    document: MemoryDocument,
    total_units: int,
    section_units: int | None,
    count: CountUnits,
    note: CutNote | None = None,
) -> MemoryDocument:
    """The document cut to so many units: each section first, then all of it, later sections before earlier ones.

    A cut section ends with how many lines went (and with what `note` says). A document of which
    not even a line fits is left with its title.
    """
    if section_units is None:
        return _fitted(document, total_units, count, note)
    parts = [replace(document, title="", sections=(section,)) for section in document.sections]
    sizes = count([part.render() for part in parts])
    if max(sizes, default=0) > section_units:
        own = [_fitted(part, section_units, count, note, size) for part, size in zip(parts, sizes, strict=True)]
        document = replace(document, sections=tuple(section for part in own for section in part.sections))
    elif sum(sizes) + _at_most_beside(document) <= total_units:
        # To count so long a text once more would cost more than all else here.
        return document
    return _fitted(document, total_units, count, note)


def _at_most_beside(document: MemoryDocument) -> int:
    """Units that a document has beside its sections, at most: its title, and what tokens at a join may differ."""
    title = replace(document, sections=()).render()
    return UNITS_PER_TOKEN * (len(title.encode("utf-8", "surrogatepass")) + TOKENS_OF_JOIN * len(document.sections))


def merged(first: MemoryDocument, second: MemoryDocument) -> MemoryDocument:
    """The first document with the second's sections below its own of the same name, or behind all of them."""
    out = first
    for section in second.sections:
        body = "\n".join(filter(None, [out.body(section.heading), section.body]))
        out = replace_section(out, section.heading, body)
    return out


def _fitted(
    document: MemoryDocument, units: int, count: CountUnits, note: CutNote | None, size: int | None = None
) -> MemoryDocument:
    text = document.render()
    whole = count([text])[0] if size is None else size
    if whole <= units:
        return document
    order = _by_need(document)
    number = _most(
        len(order) - 1,
        _by_length(document, order, len(text) * units // max(whole, 1)),
        lambda lines: count([_kept(document, order[:lines], note).render()])[0] <= units,
    )
    return _kept(document, order[:number], note)


def _most(most: int, guess: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, 0 for none. Near the guess first: each look counts a whole text."""
    low, high, step, at = 0, most, 1, guess
    while low < high:
        at = max(low + 1, min(at, high))
        if fits(at):
            low, at = at, at + step
        else:
            high, at = at - 1, at - step
        # Away from a guess that was bad, ever faster; at last by halves.
        step, at = (2 * step, at) if high - low > 2 * step else (1, (low + high + 1) // 2)
    return low


def _by_length(document: MemoryDocument, order: Sequence[_Place], room_chars: int) -> int:
    """About how many of the lines take so many characters."""
    lines = [section.body.splitlines() for section in document.sections]
    for number, (section, line) in enumerate(order):
        room_chars -= len(lines[section][line]) + 1
        if room_chars < 0:
            return number
    return len(order)


def _by_need(document: MemoryDocument) -> list[_Place]:
    """Places of all lines: instructions first, then section by section."""
    places = [
        (at, number, line)
        for at, section in enumerate(document.sections)
        for number, line in enumerate(section.body.splitlines())
        if line.strip()
    ]
    first = [(at, number) for at, number, line in places if is_instruction(line)]
    chosen = set(first)
    return first + [(at, number) for at, number, _ in places if (at, number) not in chosen]


def _kept(document: MemoryDocument, places: Sequence[_Place], note: CutNote | None) -> MemoryDocument:
    wanted = set(places)
    sections: list[Section] = []
    for at, section in enumerate(document.sections):
        lines = section.body.splitlines()
        kept = [line for number, line in enumerate(lines) if (at, number) in wanted or not line.strip()]
        cut = sum(bool(line.strip()) for number, line in enumerate(lines) if (at, number) not in wanted)
        if not any(line.strip() for line in kept):
            continue
        if cut:
            kept.append(_cut_line(section.heading, cut, note))
        sections.append(replace(section, body="\n".join(kept).strip("\n")))
    return replace(document, sections=tuple(sections))


def _cut_line(heading: str, lines: int, note: CutNote | None) -> str:
    more = f" {note(heading, lines)}" if note else ""
    return f"[{lines} more lines were cut here.{more}]"
