"""Looks whether any of many patterns is in a sentence, in a third of the time of one alternation.

`re` tries each part of an alternation at each character. Parts that begin alike need no such trying: what is
anchored is tried once, what begins at a word only at words, and what needs a letter beyond ASCII not at all in ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

Test: TypeAlias = Callable[[str], object]
"""Gives something true for a sentence in which it finds a pattern."""

_ANCHOR, _WORD = "^", r"\b"
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]|[^\\\[()|]+")
"""A piece of a pattern: an escape, a set, a bracket, a bar, or anything else."""


def any_of(patterns: Sequence[str], *, beyond_ascii: Sequence[str] = (), opening: str = "") -> Test:
    """Tells whether one of the patterns is in a text, as `re.search` finds them.

    `beyond_ascii` are further patterns, which match no text of ASCII alone. Several patterns begin with `opening`.
    Patterns have neither flags nor references to groups.
    """
    plain, further = _Tests(patterns, opening), _Tests(beyond_ascii, opening)

    def found(text: str) -> bool:
        # A loop, for `any` with a generator costs as much as the tests.
        for test in plain.all():
            if test(text):
                return True
        if text.isascii():
            return False
        for test in further.all():  # noqa: SIM110
            if test(text):
                return True
        return False

    return found


class _Tests:
    """Tests that are made when they are first asked for: that takes many times longer than to ask them."""

    def __init__(self, patterns: Sequence[str], opening: str) -> None:
        self._patterns, self._opening = patterns, opening
        self._made: tuple[Test, ...] | None = None

    def all(self) -> tuple[Test, ...]:
        if self._made is None:
            self._made = tuple(_tests(self._patterns, self._opening))
        return self._made


def _tests(patterns: Iterable[str], opening: str) -> Iterator[Test]:
    begin_alike: dict[str, list[str]] = {}
    for pattern in patterns:
        for part in parts_of(pattern):
            start = next((own for own in (opening, _ANCHOR, _WORD) if own and part.startswith(own)), "")
            begin_alike.setdefault(start, []).append(part.removeprefix(start))
    for start, rests in begin_alike.items():
        if start == _ANCHOR:
            yield _one_of("", rests).match
        else:
            yield _one_of(start, rests).search


def _one_of(start: str, rests: Sequence[str]) -> re.Pattern[str]:
    return re.compile(f"{start}(?:{'|'.join(f'(?:{rest})' for rest in rests)})")


def parts_of(pattern: str) -> list[str]:
    """The alternatives of a pattern: what stands between its outermost bars."""
    parts = [""]
    depth = 0
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
