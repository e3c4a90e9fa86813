"""The user's words in a memory: word for word, instructions that stand above all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log1p, sqrt

from mcp_compact.compaction.identifiers import identifiers
from mcp_compact.compaction.revisions import gives_value, revised
from mcp_compact.compaction.rules import Rule, in_force, rules_in
from mcp_compact.compaction.rules_ended import same_but_for_figures
from mcp_compact.messages.blocks import TextBlock
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CountUnits
from mcp_compact.messages.words import sentences, standing_instructions, users_words, without_injected

WHOLE_CHARS = 400
"""A message up to this length is kept whole; of a longer one its instructions and its beginning."""
BEGINNING_CHARS = 200
REQUEST_SHARE = 0.25
"""Of the budget, for messages that hold no standing instruction."""
STANDING_SHARE = 0.6
"""Of the budget, for standing instructions."""
SMALL_TALK_CHARS = 40
_WORD = re.compile(r"\w+")
NEWEST = 4
"""Messages that are kept however little they say."""


@dataclass(frozen=True, slots=True)
class Request:
    """Words of a user as one bullet."""

    text: str
    standing: bool


def requests(messages: Iterable[str]) -> list[Request]:
    """The bullets of these messages, old to new; what is said again (of another figure) stands where it was said last.

    Rules that a later message revokes are left out, and so are the words that do nothing but revoke.
    """
    said = list(messages)
    gone = _not_in_force(tuple(said))
    found: dict[str, Request] = {}
    for message in said:
        for request in _of_message(_without(message, gone)):
            key = same_but_for_figures(request.text)
            found.pop(key, None)
            found[key] = request
    made = _without_repeated_rules(list(found.values()))
    return [r for r in made[:-NEWEST] if not _is_small_talk(r)] + made[-NEWEST:]


def _without_repeated_rules(found: Sequence[Request]) -> list[Request]:
    """Without rules that another message, which stays whole, holds word for word."""
    whole = "\n".join(request.text.casefold() for request in found)
    return [r for r in found if not r.standing or whole.count(r.text.casefold()) == 1]


def without_revoked(records: Sequence[Record], earlier: Iterable[str] = ()) -> tuple[Record, ...]:
    """The records without rules that a later message revokes, and without what does nothing but revoke.

    `earlier`: words of the user before these records. They tell what the records revoke, and are not given back.
    """
    said = [words for record in records if (words := users_words(record))]
    gone = _not_in_force((*earlier, *said))
    return tuple(_record_without(record, gone) for record in records) if gone else tuple(records)


def _record_without(record: Record, gone: frozenset[str]) -> Record:
    if record.message is None or not users_words(record):
        return record
    blocks = tuple(
        replace(block, text=_without(_read_out(block.text), gone)) if isinstance(block, TextBlock) else block
        for block in record.blocks
    )
    return replace(record, message=replace(record.message, blocks=blocks))


def _read_out(text: str) -> str:
    """The text; where a command stands in it, as it was typed: a tag beside a sentence would hide it."""
    return without_injected(text) if "<command-args>" in text else text


@lru_cache(maxsize=2)
def _not_in_force(messages: tuple[str, ...]) -> frozenset[str]:
    """Rules that are revoked, sentences that revoke, and what is revised: as written but for white space."""
    said = [Rule(text, kind) for message in messages for text, kind in rules_in(message)]
    held = {rule.text.casefold() for rule in in_force(said)}
    ended = frozenset(rule.text for rule in said if rule.text.casefold() not in held)
    return ended | revised(messages)


def _without(message: str, gone: frozenset[str]) -> str:
    """The message without these sentences. What stands between them becomes lines of their own."""
    if not gone or not any(" ".join(sentence.split()) in gone for sentence in sentences(message)):
        return message
    return "\n".join(line for raw in message.split("\n") if (line := _line_without(raw, gone)))


def _line_without(line: str, gone: frozenset[str]) -> str:
    kept = line
    for sentence in sentences(line):
        if " ".join(sentence.split()) in gone:
            kept = kept.replace(sentence, "\n", 1)
    return "\n".join(part.strip() for part in kept.split("\n") if part.strip(" -*+\t"))


def _is_small_talk(request: Request) -> bool:
    """Short, no rule, no name and no date or sum in it: `are you sure?`, `run it`. It says nothing once answered."""
    short = not request.standing and len(request.text) <= SMALL_TALK_CHARS
    return short and not identifiers(request.text) and not gives_value(request.text)


def _of_message(message: str) -> list[Request]:
    text = " ".join(message.split())
    rules = standing_instructions(message)
    if len(text) <= WHOLE_CHARS:
        return [Request(text, bool(rules))] if text else []
    made = [Request(" ".join(rule.split()), standing=True) for rule in rules]
    beginning = _beginning(message)
    if beginning and all(beginning not in rule.text for rule in made):
        made.insert(0, Request(beginning, standing=False))
    return made


def _beginning(message: str) -> str:
    """Whole sentences from the start, at least one; a long one is cut at a blank."""
    taken: list[str] = []
    for sentence in sentences(message):
        own = " ".join(sentence.split())
        if taken and sum(map(len, taken)) + len(own) > BEGINNING_CHARS:
            break
        taken.append(own)
    text = " ".join(taken)
    if len(text) <= 2 * BEGINNING_CHARS:
        return text
    cut = text.rfind(" ", BEGINNING_CHARS, 2 * BEGINNING_CHARS)
    return text[: cut if cut > 0 else 2 * BEGINNING_CHARS] + " …"


def within(
    found: Sequence[Request],
    budget_units: int,
    limit_units: int,
    count: CountUnits,
    telling: Sequence[float] | None = None,
) -> list[str]:
    """The bullets that fit, old to new: standing ones first of all, then the newest, the first, and the rest backwards.

    Where it is known how `telling` each is, those that tell most come before the newest. Together they cost no more
    than their shares of the budget, and than `limit_units`.
    """
    units = count([f"- {request.text}\n" for request in found])
    need = [-own for own in telling] if telling else [_rank(i, len(found)) for i in range(len(found))]
    order = sorted(range(len(found)), key=lambda i: (not found[i].standing, need[i]))
    left = {True: int(budget_units * STANDING_SHARE), False: int(budget_units * REQUEST_SHARE)}
    together = limit_units
    taken = set()
    for i in order:
        kind = found[i].standing
        if units[i] <= min(left[kind], together):
            left[kind] -= units[i]
            together -= units[i]
            taken.add(i)
    return [found[i].text for i in sorted(taken)]


def telling(found: Sequence[Request], messages: Sequence[str]) -> list[float]:
    """How much each bullet tells for its length: the rarity of its words among all messages.

    What is said in every other message (a greeting, a status line that comes again and again) tells little.
    """
    known = Counter(word for message in messages for word in _words(message))
    return [
        sqrt(sum(log1p(len(messages) / max(1, known[word])) for word in _words(request.text))) / (len(request.text) + 1)
        for request in found
    ]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _rank(i: int, number: int) -> int:
    """Newest first, but the very first right after the newest two."""
    backwards = number - 1 - i
    return 2 if i == 0 and number > 2 else backwards + (backwards >= 2)  # noqa: PLR2004
