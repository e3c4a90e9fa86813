"""Time and new identifiers, as values that tests can fix."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        ...

    def new_uuid(self) -> str:
        """A fresh uuid in its text form."""
        ...
