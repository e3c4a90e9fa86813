"""The memory of a session: a Markdown document of known sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

REQUESTS = "User requests and instructions"
STATE = "Current state"
TASK = "Task"
FILES = "Files and functions"
WORKFLOW = "Workflow and commands"
ERRORS = "Errors and corrections"
SYSTEM = "System knowledge"
LEARNINGS = "Learnings"
RESULTS = "Key results"
WORKLOG = "Worklog"
HEADINGS = (REQUESTS, STATE, TASK, FILES, WORKFLOW, ERRORS, SYSTEM, LEARNINGS, RESULTS, WORKLOG)
"""In the order in which they stand."""

DEFAULT_TITLE = "Session memory"

CutNote = Callable[[str, int], str]
"""Heading and number of lines cut -> how to get them."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    body: str
    """Without the heading and without blank lines around."""


@dataclass(frozen=True, slots=True)
class MemoryDocument:
    title: str = DEFAULT_TITLE
    sections: tuple[Section, ...] = ()

    def render(self) -> str:
        """Markdown: the title, then each section that holds something."""
        parts = [f"# {self.title}"] if self.title else []
        for section in self.sections:
            head = f"## {section.heading}\n" if section.heading else ""
            parts.append(f"{head}{section.body}".rstrip())
        return "\n\n".join(part for part in parts if part) + "\n" if parts else ""

    def body(self, heading: str) -> str:
        """The text under a heading, whatever its case; empty where there is none."""
        wanted = heading.casefold()
        return "\n".join(s.body for s in self.sections if s.heading.casefold() == wanted)


def parse(text: str) -> MemoryDocument:
    """A document from Markdown as anybody writes it.

    The first top heading before any other text is the title. Headings of the first and second
    level open sections; deeper ones, and those in code fences, belong to a section's body.
    Text before the first heading becomes a section without one. Nothing is dropped.
    """
    title = ""
    sections: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in text.splitlines():
        fence = _fence_after(fence, line)
        match = None if fence else _HEADING.fullmatch(line.rstrip())
        if match is None or len(match[1]) > 2:  # noqa: PLR2004 - the second level is the sections'
            sections[-1][1].append(line)
        elif len(match[1]) == 1 and not title and _nothing_yet(sections):
            title = _heading_text(match[2])
        else:
            sections.append((_heading_text(match[2]), []))
    made = (Section(heading, _trim(lines)) for heading, lines in sections)
    return MemoryDocument(title or DEFAULT_TITLE, tuple(s for s in made if s.heading or s.body))


def _heading_text(text: str) -> str:
    """Without closing marks, a colon, and bold around it."""
    own = text.rstrip("#").strip().rstrip(":").strip()
    if len(own) > 4 and own.startswith("**") and own.endswith("**"):  # noqa: PLR2004 - two marks on either side
        own = own[2:-2].rstrip(":").strip()
    return own or text.strip()


def _nothing_yet(sections: Sequence[tuple[str, list[str]]]) -> bool:
    return len(sections) == 1 and not any(line.strip() for line in sections[0][1])


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after this line; empty: none."""
    match = _FENCE.match(line)
    if not match:
        return fence
    if not fence:
        return match[1]
    closes = match[1][0] == fence[0] and len(match[1]) >= len(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence


def _trim(lines: Sequence[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def is_empty(text: str) -> bool:
    """Does it hold headings, guidance (in italics or comments) and white space only?"""
    return not any(_says_something(line) for line in _without_comments(text).splitlines())


def _without_comments(text: str) -> str:
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0:
        kept.append(text[at:start])
        end = text.find("-->", start)
        at = len(text) if end < 0 else end + 3
    kept.append(text[at:])
    return "".join(kept)


def _says_something(line: str) -> bool:
    own = line.strip()
    if not own.strip("#-*_=`~>| \t"):
        return False
    if _HEADING.fullmatch(own):
        return False
    for mark in ("*", "_"):
        bold = own.startswith(mark * 2)
        if own.startswith(mark) and own.endswith(mark) and not bold and own.count(mark) == 2:  # noqa: PLR2004
            return False
    return True


def replace_section(document: MemoryDocument, heading: str, body: str) -> MemoryDocument:
    """The document with this section's body; a new known section goes to its place, another one to the end."""
    wanted = heading.casefold()
    kept = [s for s in document.sections if s.heading.casefold() != wanted]
    at = next((i for i, s in enumerate(document.sections) if s.heading.casefold() == wanted), None)
    if at is None:
        at = _place(kept, heading)
    kept.insert(min(at, len(kept)), Section(heading, body.strip("\n")))
    return replace(document, sections=tuple(kept))


def _place(sections: Sequence[Section], heading: str) -> int:
    order = {name.casefold(): number for number, name in enumerate(HEADINGS)}
    own = order.get(heading.casefold(), len(HEADINGS))
    for i, section in enumerate(sections):
        if order.get(section.heading.casefold(), -1 if not section.heading else len(HEADINGS)) > own:
            return i
    return len(sections)
