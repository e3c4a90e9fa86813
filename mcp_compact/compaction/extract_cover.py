"""Chooses the lines that cover most of what will be needed for their price: a lazy greedy cover."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_compact.compaction.extract_lines import FEW_WORDS, MAX_JOINED, Line, Passage

AGAIN = 0.08
"""What a name is still worth once it is covered: a second mention in other words helps a little."""


@dataclass(slots=True)
class Candidate:
    """Lines `first` up to `last` of a passage, read together so that they say something."""

    passage: int
    first: int
    last: int
    names: tuple[str, ...]


def candidates(passages: Sequence[Passage], value: dict[str, float]) -> list[Candidate]:
    """One candidate for every line that holds a name of some value."""
    made: list[Candidate] = []
    for number, passage in enumerate(passages):
        lines = passage.lines
        ends = [_end(lines, i) for i in range(len(lines))]
        for i, end in enumerate(ends):
            if end < 0:
                continue
            names = [n for n, _ in lines[i].names]
            for j in range(i + 1, end + 1):
                if 0 <= ends[j] <= end:
                    names += [n for n, _ in lines[j].names]
            names = [n for n in dict.fromkeys(names) if value.get(n, 0.0) > 0]
            if names:
                made.append(Candidate(number, i, end, tuple(names)))
    return made


def _end(lines: Sequence[Line], first: int) -> int:
    words = 0
    for last in range(first, min(len(lines), first + MAX_JOINED)):
        words += lines[last].words
        if words >= FEW_WORDS:
            return last
    return -1


def cover(
    passages: Sequence[Passage], value: dict[str, float], costs: Sequence[Sequence[int]], budget: int, per_line: int,
    factor: Sequence[float], covered: set[str],
) -> set[tuple[int, int]]:
    """Positions (passage, line) of the chosen lines; together they cost no more than `budget` units."""
    all_ = candidates(passages, value)
    chosen: set[tuple[int, int]] = set()

    def ratio(candidate: Candidate) -> tuple[float, int]:
        gain = sum(value[n] * (AGAIN if n in covered else 1.0) for n in candidate.names)
        cost = per_line
        own = costs[candidate.passage]
        for i in range(candidate.first, candidate.last + 1):
            if (candidate.passage, i) not in chosen:
                cost += own[i]
        return gain * factor[candidate.passage] / cost, cost

    heap = [(-ratio(c)[0], k) for k, c in enumerate(all_)]
    heapq.heapify(heap)
    room = budget
    while heap and room > 0:
        _, k = heapq.heappop(heap)
        candidate = all_[k]
        if all((candidate.passage, i) in chosen for i in range(candidate.first, candidate.last + 1)):
            continue
        if all(n in covered for n in candidate.names):
            continue
        now, cost = ratio(candidate)
        if heap and now < -heap[0][0] - 1e-12:
            heapq.heappush(heap, (-now, k))
            continue
        if cost > room:
            continue
        room -= cost
        chosen.update((candidate.passage, i) for i in range(candidate.first, candidate.last + 1))
        covered.update(candidate.names)
    return chosen
