"""What is put back after a compaction, as text: one message a thing, under a line that says which thing it is.

The line lets the next compaction know these messages again: they are carried on by name and never summarised.
"""

from __future__ import annotations

import re

from mcp_compact.compaction.material import framed
from mcp_compact.messages.values import value

PINS, PLAN, TODOS, TOOLS, SKILL, FILE = "pins", "plan", "todos", "tools", "skill", "file"
KINDS = (PINS, PLAN, TODOS, TOOLS, SKILL, FILE)
"""In the order in which they are put back."""
NAMED = (SKILL, FILE)
"""Kinds of which there may be several, each with a name of its own."""
MOST_NAME_CHARS = 4_096

BEGINNING = "[Kept through compaction: "
STANDING = "Standing instructions of the user, word for word:"
_ABOUT = {
    PLAN: "The plan of this work:",
    TODOS: "The to-do list as it stands:",
    TOOLS: "Tools that a tool search found; they go by these names:",
    SKILL: "A skill that was loaded earlier and still applies:",
    FILE: "A file as it was last read or written in this session; it may have changed since by other means:",
}
_HEADER = re.compile(rf"{re.escape(BEGINNING)}([a-z]+)(?::([^\n]*))?\]\n")
_FENCE = re.compile(r"~{3,}")
_BULLET = "- "
_BETWEEN = ", "


@value
class Item:
    """One thing that could be put back."""

    kind: str
    name: str
    """Of a skill, or the path of a file; empty for the other kinds."""
    text: str
    seq: int = 0
    """The record that holds it; 0 for none of those at hand."""
    handle: str = ""
    """The id under which the archive gives the whole of it."""
    note: str = ""
    """What stands under the text: that it was cut, or which lines of a file it is."""

    @property
    def label(self) -> str:
        """As the service record is named: `plan`, `skill:pdf`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind


def render(item: Item) -> str:
    """The message. Text that the conversation brought stands in a frame which nothing in it can leave."""
    head = f"{BEGINNING}{item.label}]\n"
    match item.kind:
        case "pins":
            return head + item.text
        case "tools":
            return f"{head}{_ABOUT[TOOLS]}\n{item.text}"
        case kind:
            note = f"\n{item.note}" if item.note else ""
            return f"{head}{_ABOUT[kind]}\n{framed(item.text)}{note}"


def read_back(text: str) -> Item | None:
    """What an earlier compaction put back in this message; None for any other message."""
    match = _HEADER.match(text)
    if match is None or match[1] not in KINDS or bool(match[2]) != (match[1] in NAMED):
        return None
    kind, name, body = match[1], match[2] or "", text[match.end() :]
    if kind == PINS:
        return Item(kind, name, body)
    about, _, body = body.partition("\n")
    if about != _ABOUT[kind]:
        return None
    return Item(kind, name, body) if kind == TOOLS else _unframed(kind, name, body)


def _unframed(kind: str, name: str, body: str) -> Item | None:
    fence = _FENCE.match(body)
    if fence is None or not body.startswith(f"{fence[0]}\n"):
        return None
    inner, end, note = body[len(fence[0]) + 1 :].rpartition(f"\n{fence[0]}")
    return Item(kind, name, inner, note=note.strip("\n")) if end else None


def nameable(name: str) -> bool:
    """Can this stand in the first line of a message and be read back?"""
    return 0 < len(name) <= MOST_NAME_CHARS and name.isprintable()


def instructions_text(texts: tuple[str, ...]) -> str:
    """Instructions one under the other; one of several lines stays as it is, so that it is there word for word."""
    return "\n".join([STANDING, *(text if "\n" in text else f"{_BULLET}{text}" for text in texts)])


def instructions_in(item: Item) -> tuple[str, ...]:
    """The instructions of one line that such a text holds."""
    return tuple(line.removeprefix(_BULLET) for line in item.text.splitlines() if line.startswith(_BULLET))


def tools_text(names: tuple[str, ...]) -> str:
    """Names of tools on one line."""
    return _BETWEEN.join(names)


def tools_in(text: str) -> tuple[str, ...]:
    """The names in such a line, or in a list as a caller gives it."""
    return tuple(name for name in re.split(r"[\s,;]+", text) if name)
