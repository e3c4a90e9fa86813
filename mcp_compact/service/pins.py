"""Pins: what every later context of a session must hold, word for word."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_compact.compaction.attachments import FILE, MOST_NAME_CHARS, PLAN, SKILL, TODOS, TOOLS, tools_in
from mcp_compact.compaction.restore import INSTRUCTION, folded
from mcp_compact.compaction.snapshot import Registered
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import body_hash, well_formed
from mcp_compact.messages.masking import masked
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import SessionKey, SessionRow
from mcp_compact.service.deps import Deps, family

KINDS = (INSTRUCTION, PLAN, TODOS, SKILL, FILE, TOOLS)
MAX_INSTRUCTION_CHARS = 8_000
"""About 2,000 tokens: instructions are never cut, and stand in every later context."""
MAX_CHARS = 100_000
"""Of anything else; a compaction cuts it to the limits of its kind."""
MAX_PINS = 100
NAME_CHARS = 60
"""An instruction is named by its own words up to this length."""
SHOWN = 40
"""Characters of a text in a list of pins."""


@dataclass(frozen=True, slots=True)
class PinLine:
    """A pin as a list shows it."""

    kind: str
    name: str
    tokens: int
    beginning: str


@dataclass(frozen=True, slots=True)
class PinResult:
    """What was pinned or taken back, and the pins now in force."""

    session_id: str
    status: str
    """`pinned`, `replaced`, `unpinned` or `listed`."""
    kind: str = ""
    name: str = ""
    """With its kind it names the pin: pin again to replace it, unpin to take it back."""
    pins: tuple[PinLine, ...] = ()


async def pin(deps: Deps, key: SessionKey, text: str, *, kind: str = INSTRUCTION, name: str = "") -> PinResult:
    """Pin something; the same kind and name replaces what was there.

    Raises CallerError `bad_kind`, `empty`, `bad_name`, `too_long`, `too_many`, `unknown_session`; nothing is stored.
    """
    row = await deps.row(key)
    item = _checked(text, kind.strip().lower() or INSTRUCTION, name.strip())
    before = await deps.store.registered(key)
    known = any((one.kind, one.name) == (item.kind, item.name) for one in before)
    if not known and len(before) >= MAX_PINS:
        raise CallerError(
            "too_many",
            f"A session has {MAX_PINS} pins at most.",
            "Take one back with unpin, or replace one by its name.",
        )
    await deps.store.register(key, item, deps.clock.now_ms())
    return await _result(deps, key, row, "replaced" if known else "pinned", item.kind, item.name)


async def unpin(deps: Deps, key: SessionKey, name: str, *, kind: str = INSTRUCTION) -> PinResult:
    """Take a pin back. Raises CallerError `unknown_pin` with the names there are, `bad_kind`, `unknown_session`."""
    row = await deps.row(key)
    asked = _known_kind(kind.strip().lower() or INSTRUCTION)
    named = name.strip() or _only_name(asked)
    if not await deps.store.unregister(key, asked, named):
        there = [item.name for item in await deps.store.registered(key) if item.kind == asked]
        raise CallerError(
            "unknown_pin",
            f"There is no pin of kind {asked} named {named[:NAME_CHARS]!r}.",
            f"Names of that kind: {', '.join(there[:10]) or 'none'}.",
        )
    return await _result(deps, key, row, "unpinned", asked, named)


async def list_pins(deps: Deps, key: SessionKey) -> PinResult:
    """The pins in force, in the order in which they were made. Raises CallerError `unknown_session`."""
    return await _result(deps, key, await deps.row(key), "listed")


def _checked(text: str, kind: str, name: str) -> Registered:
    own = well_formed(text).strip()
    if not own or (kind == TOOLS and not tools_in(own)):
        raise CallerError("empty", "There is nothing to pin: text is blank.", "Pass the words that must be kept.")
    most = MAX_INSTRUCTION_CHARS if _known_kind(kind) == INSTRUCTION else MAX_CHARS
    if len(own) > most:
        raise CallerError(
            "too_long",
            f"The text has {len(own):,} characters; a pin of kind {kind} has {most:,} at most.",
            "Pin what must be kept word for word, and leave the rest to the archive.",
        )
    return Registered(kind, _checked_name(well_formed(name) or _made_name(kind, own), kind), own)


def _known_kind(kind: str) -> str:
    if kind not in KINDS:
        raise CallerError("bad_kind", f"kind {kind[:40]!r} is unknown.", f"Use one of {', '.join(KINDS)}.")
    return kind


def _checked_name(name: str, kind: str) -> str:
    if not name:
        what = "the path of the file" if kind == FILE else "the name of the skill"
        raise CallerError("bad_name", f"A pin of kind {kind} needs a name.", f"Pass {what} as name.")
    if len(name) > MOST_NAME_CHARS or not name.isprintable():
        raise CallerError("bad_name", "A name is one line of printable characters.", "Shorten it.")
    return name


def _made_name(kind: str, text: str) -> str:
    """An instruction's own words, marked where they are cut; the kind itself where there is one of it."""
    if kind != INSTRUCTION:
        return _only_name(kind)
    words = "".join(c for c in " ".join(masked(text).split()) if c.isprintable())
    if 0 < len(words) <= NAME_CHARS:
        return words
    return f"{words[: NAME_CHARS - 10]} #{body_hash(folded(text).encode()).hex()[:8]}"


def _only_name(kind: str) -> str:
    return kind if kind in (PLAN, TODOS, TOOLS) else ""


async def _result(
    deps: Deps, key: SessionKey, row: SessionRow, status: str, kind: str = "", name: str = ""
) -> PinResult:
    items = [item for item in await deps.store.registered(key) if item.kind in KINDS]
    count = (await deps.surroundings(key.session_id)).count
    tokens = [family(row).tokens(Weight(units=units)) for units in count([item.text for item in items])]
    lines = [
        PinLine(item.kind, item.name, cost, " ".join(item.text[: 2 * SHOWN].split())[:SHOWN])
        for item, cost in zip(items, tokens, strict=True)
    ]
    return PinResult(key.session_id, status, kind, name, tuple(lines))
