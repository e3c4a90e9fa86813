"""Cutting a memory document to a size. Whole lines go; standing instructions go last of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mcp_compact.messages.memory_document import MemoryDocument, Section, replace_section
from mcp_compact.messages.weights import CountUnits
from mcp_compact.messages.words import is_instruction

CutNote = Callable[[str, int], str]
"""Heading and number of lines cut -> how to get them."""
_Place = tuple[int, int]


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
    if section_units is not None:
        own = [
            _fitted(replace(document, title="", sections=(s,)), section_units, count, note) for s in document.sections
        ]
        document = replace(document, sections=tuple(s for part in own for s in part.sections))
    return _fitted(document, total_units, count, note)


def merged(first: MemoryDocument, second: MemoryDocument) -> MemoryDocument:
    """The first document with the second's sections below its own of the same name, or behind all of them."""
    out = first
    for section in second.sections:
        body = "\n".join(filter(None, [out.body(section.heading), section.body]))
        out = replace_section(out, section.heading, body)
    return out


def _fitted(document: MemoryDocument, units: int, count: CountUnits, note: CutNote | None) -> MemoryDocument:
    if count([document.render()])[0] <= units:
        return document
    order = _by_need(document)
    low, high = 0, len(order) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if count([_kept(document, order[:middle], note).render()])[0] <= units:
            low = middle
        else:
            high = middle - 1
    return _kept(document, order[:low], note)


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
