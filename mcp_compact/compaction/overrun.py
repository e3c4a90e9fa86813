"""What a provider's "prompt is too long" says: how long it was, and how long it may be."""

from __future__ import annotations

import re
from dataclasses import dataclass

ERROR_CHARS = 4_000
"""So much of an error is read."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """Tokens as the provider counted them; None where the error does not say."""

    actual: int | None = None
    limit: int | None = None

    @property
    def over(self) -> int | None:
        """So many tokens too many."""
        if self.actual is None or self.limit is None or self.actual <= self.limit:
            return None
        return self.actual - self.limit


_N = r"([\d][\d,_.]{0,14})"
# As the providers word it: Anthropic (twice), OpenAI and those who copy it (three times), Google, xAI,
# Mistral, llama.cpp.
_BOTH = (
    re.compile(rf"too long:\s*{_N} tokens? >\s*{_N}"),
    re.compile(rf"context limit:\s*{_N} \+ {_N} > {_N}"),
    re.compile(rf"maximum context length is {_N} tokens?[^\d]{{1,120}}{_N} tokens"),
    re.compile(rf"maximum context length is {_N}[^\d]{{1,120}}{_N}"),
    re.compile(rf"context window of {_N} tokens?[^\d]{{1,120}}{_N} tokens"),
    re.compile(rf"input token count \(?{_N}\)? exceeds the maximum number of tokens allowed \(?{_N}"),
    re.compile(rf"maximum prompt length is {_N} but the request contains {_N}"),
    re.compile(rf"prompt contains {_N} tokens[^\d]{{1,120}}{_N}"),
    re.compile(rf"request \({_N} tokens\) exceeds the available context size \({_N}"),
)
_LIMIT_FIRST = (2, 3, 4, 6)
_SUM = 1
_ONE = re.compile(rf"(?:maximum|limit|at most|context (?:length|window|size))[^\d]{{0,40}}{_N}")
_SAYS_SO = re.compile(
    r"prompt is too long|too many (?:input )?tokens|context[_ ]length[_ ]exceeded|context limit|maximum context"
    r"|input is too long|exceeds? the (?:available )?(?:context|maximum number of tokens)|maximum prompt length"
    r"|request_too_large|prompt too long|context window|too large for model",
)


def read_overrun(error: str) -> Overrun | None:
    """The figures of an error that says the prompt is too long; None where it says something else."""
    text = error[:ERROR_CHARS].lower().replace("`", "")
    for place, pattern in enumerate(_BOTH):
        if match := pattern.search(text):
            return _overrun(place, [_number(group) for group in match.groups()])
    if not _SAYS_SO.search(text):
        return None
    one = _ONE.search(text)
    return Overrun(limit=_number(one[1]) or None) if one else Overrun()


def _overrun(place: int, numbers: list[int]) -> Overrun:
    if place == _SUM:
        return Overrun(numbers[0] + numbers[1], numbers[2])
    first, second = numbers[:2]
    return Overrun(second, first) if place in _LIMIT_FIRST else Overrun(first, second)


def _number(text: str) -> int:
    return int("".join(char for char in text if char.isdigit()) or "0")
