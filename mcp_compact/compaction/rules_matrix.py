"""What became of the user's rules at each compaction of a client: one judgement for the report and the audit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mcp_compact.compaction.rules import Rule
from mcp_compact.messages.values import value

KEPT, REWORDED, BACK, LOST, NOT_YET = "kept", "reworded", "put_back", "lost", ""
"""By the client word for word, by the client in other words; by us; by nobody. Empty: it did not hold then."""
FATES = (KEPT, REWORDED, BACK, LOST)
MOST_OF_ITS_WORDS = 0.8
_FEWEST_WORDS = 3
_WORD = re.compile(r"[^\W_]+")
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_LINE = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？；])")  # noqa: RUF001 - sentence ends of other scripts
_EMPTY = frozenset("the a an to of in on for and or is are be it this that with as at by we you i so do".split())  # noqa: SIM905


@value
class Column:
    """One compaction: the rules that held, the client's summary, and what we give back."""

    rules: tuple[Rule, ...]
    summary: str
    given: str = ""


@value
class Row:
    """One rule, and what became of it at each compaction."""

    rule: Rule
    fates: tuple[str, ...]


def fates(column: Column) -> tuple[tuple[Rule, str], ...]:
    """What became of every rule at one compaction."""
    lines = [_words(line) for line in _LINE.split(column.summary)]
    summary, given = _folded(column.summary), _folded(column.given)
    made = []
    for rule in column.rules:
        own = _folded(rule.text)
        if own in summary:
            fate = KEPT
        elif _in_a_line(_words(rule.text), lines):
            fate = REWORDED
        else:
            fate = BACK if own in given else LOST
        made.append((rule, fate))
    return tuple(made)


def matrix(columns: Sequence[Column]) -> tuple[Row, ...]:
    """Rules by compactions, in the order in which the rules were said first."""
    rows: dict[str, tuple[Rule, list[str]]] = {}
    for at, column in enumerate(columns):
        for rule, fate in fates(column):
            known = rows.setdefault(_folded(rule.text), (rule, [NOT_YET] * len(columns)))
            known[1][at] = fate
    return tuple(Row(rule, tuple(own)) for rule, own in rows.values())


def _in_a_line(own: frozenset[str], lines: Iterable[frozenset[str]]) -> bool:
    """Does one line or sentence hold most of these words? Of very few words nothing can be said."""
    return len(own) >= _FEWEST_WORDS and any(len(own & line) >= MOST_OF_ITS_WORDS * len(own) for line in lines)


def _words(text: str) -> frozenset[str]:
    """Its words without the empty ones; of scripts without spaces pairs of characters."""
    low = text.lower()
    pairs = {run[at : at + 2] for run in _DENSE.findall(low) for at in range(len(run) - 1)}
    return frozenset(pairs | {word for word in _WORD.findall(_DENSE.sub(" ", low)) if word not in _EMPTY})


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
