"""Chooses the lines that cover most of what will be needed for their price: a lazy greedy cover.

Each name has a worth. A line's gain is the worth of the names that it is the first to cover, its
price what it costs in the memory, its head included if no line under that head was chosen yet. The
line with the best gain for its price is taken, again and again. Gains only shrink, so a line is
worked out anew only when it comes up; where a price falls (a head is there now, a neighbour was
taken), the lines that it touches are put in again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.extract_lines import FEW_WORDS, MAX_JOINED, Line
from mcp_compact.compaction.extract_passages import CALLS, EDIT, MEMORY, Passage, section_of

HEAD_SHARE, TOOL_HEAD_SHARE = 0.8, 0.5
"""Share of the worth of the names in a head, over written lines and over a tool's lines: a head has few words of its
own, and a tool's lines seldom say more about it."""
SECTION_ROOM = 0.97
"""Of a section's limit: its heading needs some of it."""
FEW_IN_SMALL = 3
SMALL = {MEMORY: 1, EDIT: 2}
"""Lines of a memory's bullet, which was whole before, and of an edit, which stands under its path: at their end fewer
words are enough."""
ROUNDS = 2
"""How often a name is covered at most while units are left."""
SAME = 1e-12

Position = tuple[int, int]
"""Passage, line."""
Group = tuple[str, str]
"""Section, head."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Units: of each line of each passage, of the marks around a line, of each head."""

    lines: Sequence[Sequence[int]]
    per_line: int
    heads: Mapping[Group, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Lines `first` to `last` of a passage, read together so that they say something."""

    passage: int
    first: int
    last: int
    names: tuple[str, ...]
    section: str


def candidates(
    number: int, passage: Passage, worth: Mapping[str, float], glued: frozenset[str] = frozenset()
) -> list[Candidate]:
    """One candidate for every line of a passage that holds a name of some worth.

    Stale lines are left out, and in calls lines that start with a `glued` name.
    """
    lines = passage.lines
    barred = set(passage.stale)
    if passage.origin in CALLS:
        barred.update(i for i, line in enumerate(lines) if _starts_with(line, glued))
    small = len(lines) <= SMALL.get(passage.origin, 0)
    enough = FEW_IN_SMALL if small else FEW_WORDS
    ends = [_end(lines, first, enough) for first in range(len(lines))]
    made = []
    for first, end in enumerate(ends):
        if end < 0 or (barred and not barred.isdisjoint(range(first, end + 1))):
            continue
        found = lines[first].names
        if end > first:
            for other in range(first + 1, end + 1):
                if 0 <= ends[other] <= end:
                    found += lines[other].names
        if not found:
            continue
        names = tuple(name for name in dict(found) if worth.get(name, 0.0) > 0)
        if names:
            section = section_of(passage, lines[first].text)
            made.append(Candidate(number, first, end, names, section))
    return made


def _starts_with(line: Line, names: frozenset[str]) -> bool:
    return any(name in names and line.text.startswith(name) for name, _ in line.names)


def _end(lines: Sequence[Line], first: int, enough: int) -> int:
    """The last line that must be read with `first` to have words enough; -1 where there are too few.

    Where the text ends before that, `enough` words do.
    """
    words = lines[first].words
    if words >= FEW_WORDS:
        return first
    last = first
    for last in range(first + 1, min(len(lines), first + MAX_JOINED)):
        words += lines[last].words + (lines[last].number != "")
        if words >= FEW_WORDS:
            return last
    return last if words >= enough and last == len(lines) - 1 else -1


class Cover:
    """The lines chosen so far, and the rest in the order in which they come up."""

    def __init__(
        self, passages: Sequence[Passage], worth: Mapping[str, float], prices: Prices, covered: Iterable[str] = ()
    ) -> None:
        self._passages = passages
        self._worth = worth
        self._prices = prices
        self._covered = set(covered)
        self._open: set[Group] = set()
        self._spent: dict[str, int] = {}
        self._aside: list[int] = []
        self._too_dear: list[int] = []
        self._round = 1
        self._candidates: list[Candidate] = []
        self._at: dict[Position, int] = {}
        """Which candidate begins there."""
        self._of_group: dict[Group, list[int]] = {}
        self._heads: dict[Group, tuple[str, ...]] = {}
        self._heap: list[tuple[float, int]] = []
        self.chosen: dict[Position, None] = {}
        """In the order in which they were chosen."""

    def offer(
        self, factors: Sequence[float], heads: Mapping[Group, Sequence[str]], glued: frozenset[str] = frozenset()
    ) -> None:
        """Put in every quotable line; a passage's factor multiplies the gain of its lines."""
        self._factors = factors
        self._heads = {group: tuple(n for n in names if n in self._worth) for group, names in heads.items()}
        for number, passage in enumerate(self._passages):
            if not passage.quotable:
                continue
            start = len(self._candidates)
            self._candidates += candidates(number, passage, self._worth, glued)
            own = range(start, len(self._candidates))
            self._at.update(((number, self._candidates[k].first), k) for k in own)
            if passage.head:
                self._of_group.setdefault((passage.section, passage.head), []).extend(own)
        self._heap = [(-self._rate(c)[0], k) for k, c in enumerate(self._candidates)]
        heapq.heapify(self._heap)

    def take(self, number: int, line: int) -> int:
        """Choose one line whatever it is worth; what it costs in units."""
        passage = self._passages[number]
        names = tuple(name for name, _ in passage.lines[line].names)
        candidate = Candidate(number, line, line, names, passage.section)
        _, cost = self._rate(candidate)
        self._choose(candidate)
        return cost

    def spend(self, units: int, section_units: int | None = None) -> int:
        """Choose lines for so many units, no section getting more than its limit; what is left of them.

        Where every name is covered and units are left, names may be covered once more in other words.
        """
        for k in self._too_dear:
            heapq.heappush(self._heap, (-self._rate(self._candidates[k])[0], k))
        self._too_dear = []
        while units > 0:
            while self._heap and units > 0:
                units -= self._choose_next(units, section_units)
            if self._too_dear or self._round == ROUNDS or not self._aside:
                break
            self._round += 1
            self._covered = set()
            self._heap = [(-self._rate(self._candidates[k])[0], k) for k in self._aside]
            heapq.heapify(self._heap)
            self._aside = []
        return units

    def _choose_next(self, units: int, section_units: int | None) -> int:
        """Look at the line that comes up; what was spent on it."""
        rate, k = heapq.heappop(self._heap)
        candidate = self._candidates[k]
        if self._covered.issuperset(candidate.names):
            if not self._is_chosen(candidate):
                self._aside.append(k)
            return 0
        now, cost = self._rate(candidate)
        if self._heap and -now > self._heap[0][0] + SAME and -now > rate + SAME:
            heapq.heappush(self._heap, (-now, k))
            return 0
        if cost > units:
            if not self._is_chosen(candidate):
                self._too_dear.append(k)
            return 0
        if self._is_chosen(candidate) or not self._fits_section(candidate, cost, section_units):
            return 0
        self._choose(candidate)
        self._offer_again(candidate)
        return cost

    def _is_chosen(self, candidate: Candidate) -> bool:
        number, chosen = candidate.passage, self.chosen
        for i in range(candidate.first, candidate.last + 1):  # noqa: SIM110 - a generator takes thrice the time
            if (number, i) not in chosen:
                return False
        return True

    def _fits_section(self, candidate: Candidate, cost: int, limit: int | None) -> bool:
        if limit is None:
            return True
        spent = self._spent.get(candidate.section, 0) + cost
        if spent > limit * SECTION_ROOM:
            return False
        self._spent[candidate.section] = spent
        return True

    def _rate(self, candidate: Candidate) -> tuple[float, int]:
        """Gain for a unit, and units. Written out in loops: half of the time of an update is spent here."""
        number, names = candidate.passage, candidate.names
        own, chosen, cost = self._prices.lines[number], self.chosen, self._prices.per_line
        for i in range(candidate.first, candidate.last + 1):
            if (number, i) not in chosen:
                cost += own[i]
        covered, worth, gain = self._covered, self._worth, 0.0
        for name in names:
            if name not in covered:
                gain += worth.get(name, 0.0)
        passage = self._passages[number]
        if passage.head and (group := (passage.section, passage.head)) not in self._open:
            cost += self._prices.heads[group]
            share = TOOL_HEAD_SHARE if passage.from_tool else HEAD_SHARE
            for name in self._heads.get(group, ()):
                if name not in covered:
                    gain += share * worth[name]
        return gain * self._factors[number] / cost, cost

    def _choose(self, candidate: Candidate) -> None:
        passage = self._passages[candidate.passage]
        for i in range(candidate.first, candidate.last + 1):
            self.chosen.setdefault((candidate.passage, i))
        self._covered.update(candidate.names)
        group = (passage.section, passage.head)
        if passage.head and not passage.from_tool:
            self._covered.update(self._heads.get(group, ()))
        if passage.head and group not in self._open:
            self._open.add(group)
            for k in self._of_group.get(group, ()):
                heapq.heappush(self._heap, (-self._rate(self._candidates[k])[0], k))

    def _offer_again(self, candidate: Candidate) -> None:
        """The neighbours of a chosen line cost less now: those that share a line with it."""
        for first in range(candidate.first - MAX_JOINED + 1, candidate.last + 1):
            k = self._at.get((candidate.passage, first))
            if k is None:
                continue
            other = self._candidates[k]
            if other.last >= candidate.first and other is not candidate:
                heapq.heappush(self._heap, (-self._rate(other)[0], k))
