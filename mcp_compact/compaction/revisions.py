"""What a user revises in other words: `the launch date is 3 March`, later `we moved the launch to May 7`.

A later sentence revises an earlier one where it says that something changed, is about the same, and gives another
value of the same kind (an amount, a date, a person, ...). All three must be there, and one earlier sentence must fit
better than all others: where it is not clear, both stay. Losing what holds is worse than keeping one too many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from mcp_compact.compaction.rules_ended import same_word, stems
from mcp_compact.messages.lazily import pattern
from mcp_compact.messages.words import sentences

LONGEST = 300
"""Characters; a longer sentence tells of more than one thing."""
MOST_HELD = 200
"""Statements that a later one is compared with, the newest, so that the work stays linear."""
OPPOSITES = frozenset(("units",))
"""Kinds of few values, each of which rules out the others: a later one needs no word of change."""
OF_ANSWERS = frozenset(("units", "manner"))

_CHANGE = pattern(
    r"\b(?:is|are|was|we|i|you|will|has|have|must|should|be) now\b|\bnow[.!]?$|\bnow (?:is|are|on|at|in|has|owns?|"
    r"belongs?|goes|lives?|runs?|called|due|handle[sd]?|leads?|takes?)\b|"
    r"\b(?:from now on|(?:from|as of) today|as of now)\b|"
    r"\b(?:changed|moved|switched|renamed|rotated|rebased|postponed|pushed back|brought forward|raised|lowered|cut|"
    r"extended)(?: [\w'-]+){0,4} (?:to|onto|from|until|by)\b|"
    r"\b(?:switched|replaced|rotation|rotated|retired|no longer|any ?more)\b|"
    r"\bupdate:|^(?:the )?new \w+|\bthe new\b|\bi(?:'d| would) rather\b|\b(?:jetzt|ab sofort|neue?[rns]?|ahora|"
    r"a partir de ahora|maintenant|désormais|adesso|agora|теперь)\b|现在|改为|改成|从现在起",
    re.IGNORECASE,
)
_ADDS = pattern(r"\b(?:also|too|as well|in addition|additionally|another|second|besides)\b", re.IGNORECASE)
_MORE = pattern(r"\b(?:with|without|but)\b|;", re.IGNORECASE)
"""A wish beside how to answer, that no other way to answer ends."""
_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_COUNT = "(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|fifty)(?: (?:hundred|thousand))*"
_CURRENCY = "(?:dollars|euros?|pounds|usd|eur)"
_ZONE = "(?:pacific|eastern|central|mountain)(?: (?:standard )?time)?|(?:europe|america|asia|africa)/[a-z_]+"
_ALONE = r"(?![\w/]|\.\w)"
_KINDS = {
    "money": rf"[$€£¥]\s?\d[\d,.]*|\b(?:\d[\d,.]*|{_COUNT}) {_CURRENCY}\b",
    "date": rf"\b\d{{4}}-\d\d-\d\d\b|\b{_MONTH} \d{{1,2}}\b|\b\d{{1,2}}\.? {_MONTH}\b",
    "zone": rf"\b(?:utc|gmt|cet|cest|est|pst|{_ZONE})\b",
    "units": r"\b(?:metric|imperial)\b",
    "manner": r"\b(?:terse|brief|concise|short|long|detailed|verbose|formal|casual|playful|serious)\b",
    "branch": rf"(?<![\w/.])[a-z]+/[\w-]*\d[\w-]*{_ALONE}",
    "code": rf"(?<![\w/.-])(?=[\w-]*[a-z])(?=[\w-]*\d)\w{{2,}}-\w{{2,}}{_ALONE}",
}
_KIND = {kind: pattern(source, re.IGNORECASE) for kind, source in _KINDS.items()}
_PERSON = pattern(
    r"(?:^|(?<=\bis )|(?<=\bto )|(?<=\bby ))[A-Z][a-z]+ [A-Z][a-z]+"
    r"(?= (?:is|now|owns|has|will|leads|takes|handles)\b|[.!]?$)"
)
_LABEL = pattern(r"^\W*[A-Za-z][\w ]{1,24}: ")
_TELLS_KIND = frozenset((
    "quick", "update", "new", "old", "current", "currently", "latest", "previous", "total", "changed", "moved",
    "switched", "renamed", "rotated", "done", "budget", "cap", "limit", "ceiling", "maximum", "minimum",
    "spend", "spending", "costs", "cost", "expenses", "date", "deadline", "time", "times", "timing", "target",
    "works", "calling", "called", "user", "team", "note",
))  # fmt: skip
"""Words that tell what kind of value it is, or that it changed; not what it is of."""


def revised(messages: Iterable[str]) -> frozenset[str]:
    """Those sentences of a user's messages, old to new, that a later one revises; white space evened out."""
    held: dict[str, str] = {}
    gone: set[str] = set()
    for sentence in (" ".join(own.split()) for message in messages for own in sentences(message)):
        if not gives_value(sentence):
            continue
        if (key := revised_by(sentence, held)) is not None:
            gone.add(held.pop(key))
        held.pop(sentence, None)
        held[sentence] = sentence
        gone.discard(sentence)
        if len(held) > MOST_HELD:
            del held[next(iter(held))]
    return frozenset(gone)


def revised_by(sentence: str, earlier: Mapping[str, str]) -> str | None:
    """The key of the earlier sentence that this one revises; None where it revises none, or it is not clear which."""
    values = _values(sentence) if len(sentence) <= LONGEST else {}
    changes = bool(values) and _CHANGE.search(sentence) is not None and _ADDS.search(sentence) is None
    if not changes and not values.keys() & OPPOSITES:
        return None
    own = _subject(sentence)
    shares = {
        key: sum(any(same_word(one, two) for two in _subject(text)) for one in own)
        for key, text in earlier.items()
        if _gives_another(values, text, changes=changes)
    }
    best = max(shares.values(), default=0)
    found = [key for key, common in shares.items() if common == best]
    return found[0] if best and len(found) == 1 else None


def gives_value(sentence: str) -> bool:
    """Does a sentence hold a value that can be revised: an amount, a date, a person, ...?"""
    return len(sentence) <= LONGEST and bool(_values(sentence))


def _gives_another(values: Mapping[str, frozenset[str]], text: str, *, changes: bool) -> bool:
    """Another value of a kind that the earlier sentence has; of how to answer, all that it asks for."""
    others = _values(text) if len(text) <= LONGEST else {}
    new = {kind for kind in values if kind in others and not others[kind] & values[kind]}
    if others.keys() & OF_ANSWERS:
        return new >= others.keys() and _MORE.search(text) is None and (changes or bool(new & OPPOSITES))
    return changes and bool(new)


@lru_cache(maxsize=1024)
def _values(sentence: str) -> Mapping[str, frozenset[str]]:
    """The values in a sentence by their kind."""
    own = _LABEL.sub("", sentence)
    found = {"person": frozenset(_PERSON.findall(own))}
    for kind, values in _KIND.items():
        found[kind] = frozenset(value.casefold() for value in values.findall(own))
        own = values.sub(" ", own)
    return {kind: held for kind, held in found.items() if held}


@lru_cache(maxsize=1024)
def _subject(sentence: str) -> tuple[str, ...]:
    """What it is about: its words without the values, and without those that only tell their kind."""
    own = _LABEL.sub("", sentence).casefold()
    for values in _values(sentence).values():
        for value in values:
            # The first part of a branch's name is the family that it is of.
            own = own.replace(value.casefold(), value.partition("/")[0] if "/" in value else " ")
    return tuple(word for word in stems(own) if word not in _TELLS_KIND)
