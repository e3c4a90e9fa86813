"""Pages that are asked for one after the other are cut from one whole: it is kept for a while, within bounds.

Without it each page of a long context would read and convert the whole context anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

KEPT_MS = 120_000
"""Since the last page that was cut from it."""
MOST_BYTES = 64 * 1024 * 1024
"""Of all that is kept, about. A context that is larger by itself is not."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A live context in a format, cut into what pages are made of."""

    items: tuple[Mapping[str, Any], ...]
    version: str
    boundary_uuid: str
    warnings: tuple[str, ...]
    size_bytes: int
    """About what it takes in memory."""


@dataclass(slots=True)
class PageCache:
    """Wholes by what they were made of, those used last at the end."""

    kept: OrderedDict[Hashable, tuple[Whole, int]] = field(default_factory=OrderedDict)

    def find(self, name: Hashable, now_ms: int) -> Whole | None:
        """The whole of that name; what nobody asked for in the meantime is dropped."""
        self.drop_old(now_ms)
        found = self.kept.pop(name, None)
        if found is None:
            return None
        self.kept[name] = (found[0], now_ms)
        return found[0]

    def keep(self, name: Hashable, whole: Whole, now_ms: int) -> None:
        """Keep a whole; older ones go where there is no room."""
        self.kept.pop(name, None)
        if whole.size_bytes > MOST_BYTES:
            return
        self.kept[name] = (whole, now_ms)
        while sum(item.size_bytes for item, _ in self.kept.values()) > MOST_BYTES:
            self.kept.popitem(last=False)

    def drop_old(self, now_ms: int) -> None:
        """Drop what nobody asked for in the meantime."""
        # A clock that was set back keeps nothing for ever, either.
        old = [name for name, (_, used_ms) in self.kept.items() if abs(now_ms - used_ms) > KEPT_MS]
        for name in old:
            del self.kept[name]
