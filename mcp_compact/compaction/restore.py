"""What is put back after a compaction, each thing only where memory, summary and tail lack it.

In this order: pins and standing instructions; plan and to-dos; names of tools that were found; skills; files.
What the caller pinned, and the user's standing instructions, come before the memory's size. Everything that was
merely found takes room that is left: the memory's lines were measured to be worth more than whole files.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mcp_compact.compaction.attachments import (
    FILE,
    KINDS,
    NAMED,
    PINS,
    PLAN,
    SKILL,
    TODOS,
    TOOLS,
    Item,
    instructions_text,
    read_back,
    render,
    tools_in,
    tools_text,
)
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, NeedsRecords, Window
from mcp_compact.compaction.cuts import total
from mcp_compact.compaction.findings import Findings, found, tool_references
from mcp_compact.compaction.plan import ServiceText
from mcp_compact.compaction.revisions import revised
from mcp_compact.compaction.rules import DROPPED, holding
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import Weight
from mcp_compact.messages.words import users_words

LOOK_BACK = 400
"""So many newest records are looked through where the memory is up to date and nobody else needs their bodies.

It keeps the cost of such a compaction the same whatever the session's length.
"""
FEWEST_SHOWN_TOKENS = 500
"""A skill or file of which less would be shown is left out."""
FEWEST_BLANKS = 2
"""A plan of one or two words is found in any text, so it is not looked for."""
MOST_CHARS_PER_TOKEN = 16
"""Longer texts are cut roughly before they are counted."""
CLIENTS_OWN = (PLAN, TODOS, SKILL, FILE)
INSTRUCTION = "instruction"


def folded(text: str) -> str:
    """The text with white space and case evened out: two texts that fold alike say the same words."""
    return " ".join(text.split()).lower()


@dataclass(frozen=True, slots=True)
class Rule:
    """An instruction that must hold on, pinned or said by the user."""

    text: str
    pinned: bool
    in_tail: bool


@dataclass(frozen=True, slots=True)
class PinRoom:
    """Tokens for what must be put back."""

    pinned: int
    """For pinned instructions."""
    said: int
    """For those and the user's own."""
    things: int
    """For all pins together."""


@dataclass(frozen=True, slots=True)
class Put:
    """What is put back, and what of the pins there was no room for."""

    texts: tuple[ServiceText, ...] = ()
    left_out: tuple[str, ...] = ()

    def __add__(self, other: Put) -> Put:
        texts = sorted((*self.texts, *other.texts), key=lambda item: KINDS.index(item.name.partition(":")[0]))
        return Put(tuple(texts), (*self.left_out, *other.left_out))


@dataclass(frozen=True, slots=True)
class Restorable:
    """Everything that one attempt could put back, and what the tail says."""

    attempt: Attempt
    rules: tuple[Rule, ...]
    pinned: tuple[Item, ...]
    found: tuple[Item, ...]
    tools: tuple[str, ...]
    """All names that a tool search found, ever, and pinned ones; sorted."""
    tail: str = field(repr=False)
    """What the kept messages say, folded; empty where their bodies are not at hand."""

    def missing_rules(self, shown: str) -> tuple[Rule, ...]:
        """The instructions that neither this text nor the tail holds."""
        text = folded(shown)
        return tuple(rule for rule in self.rules if not rule.in_tail and not _holds_rule(text, rule))

    def required(self, shown: str) -> tuple[tuple[Rule, ...], tuple[Item, ...]]:
        """What must be put back whatever the memory's size, with this memory and summary."""
        missing = self.missing_rules(shown)
        if not self.attempt.policy.require_instructions:
            missing = tuple(rule for rule in missing if rule.pinned)
        return missing, tuple(item for item in self.pinned if not self._holds(item, shown))

    def put_required(self, rules: Sequence[Rule], items: Sequence[Item], room: PinRoom) -> Put:
        """The pins, and the user's instructions, within their room."""
        first = self._instructions(rules, room)
        left = min(room.things, self.attempt.policy.restore.total_tokens) - self._spent(first.texts)
        return first + self._put(items, left)

    def put_found(self, shown: str, already: Put, room_tokens: int) -> Put:
        """What was found, as far as the room goes."""
        names = {item.name for item in already.texts}
        left = min(room_tokens, self.attempt.policy.restore.total_tokens - self._spent(already.texts))
        items = [item for item in self.found if item.label not in names and not self._holds(item, shown)]
        return already + replace(self._put(items, left, already.texts), left_out=())

    def _spent(self, texts: Sequence[ServiceText]) -> int:
        return sum(self.attempt.snapshot.family.tokens(item.weight) for item in texts)

    def _instructions(self, rules: Sequence[Rule], room: PinRoom) -> Put:
        """One text with the pinned ones, then the user's; of the user's the oldest go where they do not all fit."""
        pinned = tuple(rule.text for rule in rules if rule.pinned)
        said = tuple(rule.text for rule in rules if not rule.pinned)
        while pinned or said:
            made = self._text(Item(PINS, "", instructions_text((*pinned, *said))))
            if self.attempt.snapshot.family.tokens(made.weight) <= (room.said if said else room.pinned):
                return Put((made,))
            if said:
                said = said[(len(said) + 1) // 2 :]
            else:
                pinned = pinned[1:]
        return Put()

    def _put(self, items: Sequence[Item], room_tokens: int, already: Sequence[ServiceText] = ()) -> Put:
        """The things in their order, each within the limits of its kind; one that does not fit is passed over."""
        restore = self.attempt.policy.restore
        skills = restore.skills_tokens - self._spent([i for i in already if i.name.startswith(f"{SKILL}:")])
        files = restore.files - sum(item.name.startswith(f"{FILE}:") for item in already)
        texts: list[ServiceText] = []
        left_out: list[str] = []
        for item in items:
            own = {SKILL: min(restore.skill_tokens, skills), FILE: restore.file_tokens if files > 0 else 0}
            made = self._fitted(item, min(room_tokens, own.get(item.kind, room_tokens)))
            if made is None:
                left_out.append(item.label)
                continue
            texts.append(made)
            cost = self._spent([made])
            room_tokens -= cost
            skills -= cost if item.kind == SKILL else 0
            files -= item.kind == FILE
        return Put(tuple(texts), tuple(left_out))

    def _holds(self, item: Item, shown: str) -> bool:
        """Does the new context hold it already?"""
        if item.kind == FILE:
            return False
        text = folded(shown)
        if item.kind == TOOLS:
            return all(name.lower() in text or name.lower() in self.tail for name in tools_in(item.text))
        parts = item.text.splitlines() if item.kind == TODOS else [item.text]
        own = [folded(part.strip(" -*")) for part in parts if part.strip()]
        if sum(part.count(" ") for part in own) < FEWEST_BLANKS:
            return False
        return all(says(text, part) or says(self.tail, part) for part in own)

    def _text(self, item: Item) -> ServiceText:
        text = render(item)
        return ServiceText(
            "attachment", item.label, text, Weight(units=self.attempt.around.count([text])[0], messages=1)
        )

    def _fitted(self, item: Item, limit_tokens: int) -> ServiceText | None:
        """The thing whole, or cut with a note; None where too little of it would fit."""
        family = self.attempt.snapshot.family
        if limit_tokens <= 0:
            return None
        most = limit_tokens * MOST_CHARS_PER_TOKEN
        kept = len(item.text)
        if kept <= most:
            whole = self._text(item)
            cost = family.tokens(whole.weight)
            if cost <= limit_tokens:
                return whole
            kept = kept * limit_tokens // cost
        if item.kind == TOOLS or limit_tokens < FEWEST_SHOWN_TOKENS:
            return None
        kept = min(kept, most)
        while kept > 0:
            made = self._text(self._cut(item, kept))
            cost = family.tokens(made.weight)
            if cost <= limit_tokens:
                return made
            kept = min(kept - 1, kept * limit_tokens // cost) * 49 // 50
        return None

    def _cut(self, item: Item, chars: int) -> Item:
        """Its beginning, up to the end of a line where there is one."""
        at = item.text.rfind("\n", chars // 2, chars)
        text = item.text[: at if at > 0 else chars]
        more = ""
        if item.handle and self.attempt.around.session_id:
            more = f' get_original("{item.handle}") gives all of it.'
        cut = f"[Cut here: these are the first {len(text)} of {len(item.text)} characters.{more}]"
        return replace(item, text=text, note="\n".join(filter(None, [item.note, cut])))


def _holds_rule(text: str, rule: Rule) -> bool:
    own = folded(rule.text)
    return says(text, own) if rule.pinned else own in text


def says(text: str, part: str) -> bool:
    """Does a folded text say this as words of their own? `never use tabs` does not say `use tabs`."""
    at = text.find(part)
    while at >= 0:
        before, after = text[max(0, at - 2) : at].rstrip()[-1:], text[at + len(part) : at + len(part) + 1]
        if not before.isalnum() and not (after.isalnum() and part[-1:].isalnum()):
            return True
        at = text.find(part, at + 1)
    return False


def restorable(attempt: Attempt, window: Window) -> Restorable:
    """What could be put back: from pins, from the bodies at hand, from what an earlier compaction put back."""
    records = attempt.loaded.records if attempt.loaded else ()
    kept = {entry.seq for entry in window.kept}
    tail = [record for record in records if record.seq in kept]
    said = folded("\n".join(record.text for record in tail))
    findings = found(records, _carried(attempt))
    pinned_names = _pinned_tools(attempt)
    tools = tuple(sorted({*attempt.snapshot.discovered_tools, *findings.tools, *pinned_names}))
    pinned = _pinned(attempt, tools if pinned_names else ())
    others = [item for item in _in_order(findings, tools, attempt) if item.seq not in kept]
    named = {name.lower() for record in tail for name in (*tool_references(record), *(c.name for c in record.calls))}
    return Restorable(
        attempt=attempt,
        rules=_rules(attempt, kept, said, _revised(attempt, records)),
        pinned=tuple(pinned.values()),
        found=tuple(item for item in others if item.label not in pinned),
        tools=tools,
        tail=" ".join([said, *sorted(named)]),
    )


def _revised(attempt: Attempt, records: Sequence[Record]) -> frozenset[str]:
    """What the user revised since; where nothing was said to hold on, nobody need look for it."""
    return revised(map(users_words, records)) if attempt.snapshot.instructions else frozenset()


def _rules(attempt: Attempt, kept: Container[int], said: str, gone: Container[str]) -> tuple[Rule, ...]:
    """What must hold on; not what the user revised in other words (`gone`)."""
    pins = [pin.text for pin in attempt.snapshot.registered if pin.kind == INSTRUCTION]
    known = {folded(pin.text) for pin in attempt.snapshot.registered if pin.kind in (INSTRUCTION, DROPPED)}
    held = set(holding([item.text for item in attempt.snapshot.instructions]))
    others = [
        item
        for item in attempt.snapshot.instructions
        if item.text in held and folded(item.text) not in known and " ".join(item.text.split()) not in gone
    ]
    return (
        *(Rule(text, pinned=True, in_tail=says(said, folded(text))) for text in pins),
        *(Rule(item.text, pinned=False, in_tail=item.seq in kept) for item in others),
    )


def _pinned_tools(attempt: Attempt) -> tuple[str, ...]:
    return tuple(name for pin in attempt.snapshot.registered if pin.kind == TOOLS for name in tools_in(pin.text))


def _pinned(attempt: Attempt, tools: tuple[str, ...]) -> dict[str, Item]:
    """Pinned things by their labels, the newest of each, in the order in which they are put back."""
    items = [
        Item(pin.kind, pin.name if pin.kind in NAMED else "", pin.text)
        for pin in attempt.snapshot.registered
        if pin.kind in KINDS and pin.kind != TOOLS
    ]
    items += [Item(TOOLS, "", tools_text(tools))] if tools else []
    return {item.label: item for item in sorted(items, key=lambda item: KINDS.index(item.kind))}


def _in_order(findings: Findings, tools: tuple[str, ...], attempt: Attempt) -> Iterator[Item]:
    """What was found, the most needed first; of skills and files the newest."""
    items = [findings.plan, findings.todos, Item(TOOLS, "", tools_text(tools)) if tools else None]
    items += [*reversed(findings.skills), *reversed(findings.files)]
    for item in items:
        if item is not None and not (attempt.policy.client_restores and item.kind in CLIENTS_OWN):
            yield item


def _carried(attempt: Attempt) -> list[Item]:
    items = (read_back(record.text) for record in attempt.snapshot.service if record.kind == "attachment")
    return [item for item in items if item is not None and item.kind != PINS]


def records_to_look_through(attempt: Attempt, window: Window) -> NeedsRecords | None:
    """The bodies that must be at hand before anything found can be put back; None where they are, or would not help.

    What an earlier compaction put back may be outdated by any record since, so all of them are needed then.
    """
    snapshot, loaded = attempt.snapshot, attempt.loaded
    room = min(window.target, snapshot.live_tokens // 2) - snapshot.family.tokens(total(window.kept))
    if room < FEWEST_MEMORY_TOKENS or attempt.policy.client_restores:
        return None
    after_seq = 0 if _carried(attempt) else max(0, snapshot.base.last_seq - LOOK_BACK)
    return NeedsRecords(after_seq) if loaded is None or loaded.after_seq > after_seq else None
