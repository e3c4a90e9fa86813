"""A written summary in less room: whole lines of it, those first that say where the work stands and what was wanted.

Never in it are code in fences, what the user said (that stands beside it word for word) and lines with names that
never occurred. What is kept stays in its order, under its headings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mcp_compact.messages.weights import CountUnits

SHORTENED = "[This summary was shortened by {left_out} of its {lines} lines.]"
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6}\s+\S.*|\*\*[^*]+\*\*:?|(?:\d{1,2}[.)]\s+)?\S[^.!?]{0,80}[:：]")  # noqa: RUF001 - of other scripts

NeedNotStay = Callable[[str], bool]
"""Is it a line that is left out first of all: said elsewhere, or with names that never occurred?"""


@dataclass(frozen=True, slots=True)
class _Part:
    """Numbers of lines that stand under one heading."""

    heading: int | None
    lines: tuple[int, ...]


def condensed(text: str, units: int, need_not_stay: NeedNotStay, count: CountUnits) -> str:
    """The summary as it is where it costs at most so many units, else as many of its lines.

    Its last part comes first (it says what is to be done next), then its first one (what was wanted), then the others
    from the last backwards.
    """
    if count([text])[0] <= units:
        return text
    lines = text.splitlines()
    total = sum(bool(line.strip()) for line in lines)
    costs = count([f"{line}\n" for line in lines])
    left = units - count([SHORTENED.format(left_out=total, lines=total)])[0]
    kept: set[int] = set()
    for part in _by_need(_parts(lines)):
        head = {part.heading} if part.heading is not None else set()
        for number in part.lines:
            new = {number, *head} - kept
            if sum(costs[i] for i in new) <= left and not need_not_stay(lines[number]):
                left -= sum(costs[i] for i in new)
                kept |= new
    return "\n".join([*(lines[i] for i in sorted(kept)), SHORTENED.format(left_out=total - len(kept), lines=total)])


def _parts(lines: Sequence[str]) -> list[_Part]:
    heading: int | None = None
    own: list[int] = []
    made: list[_Part] = []
    for number in _told(lines):
        if _HEADING.fullmatch(lines[number].rstrip()):
            made.append(_Part(heading, tuple(own)))
            heading, own = number, []
        else:
            own.append(number)
    return [part for part in (*made, _Part(heading, tuple(own))) if part.lines]


def _told(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of lines that are not blank and stand in no fence."""
    fence = ""
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if match and (not fence or match[1].startswith(fence)):
            fence = "" if fence else match[1]
        elif not fence and line.strip():
            yield number


def _by_need(parts: Sequence[_Part]) -> Sequence[_Part]:
    return parts if len(parts) < 2 else (parts[-1], parts[0], *reversed(parts[1:-1]))  # noqa: PLR2004 - first and last
