"""Patterns that are compiled when they are first used: to compile all of them takes longer than a hook may."""

from __future__ import annotations

import re
from typing import Any, cast


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(source, flags)` at the first use of it."""
    return cast("re.Pattern[str]", _Pattern(source, flags))


class _Pattern:
    """Becomes what it stands for method by method: from its second use on, a method costs what the pattern's costs."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method or a value of the pattern
        if self._compiled is None:
            self._compiled = re.compile(self._source, self._flags)
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found
