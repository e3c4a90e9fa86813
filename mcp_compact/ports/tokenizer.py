"""Counting tokens exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Tokenizer(Protocol):
    """Counts texts; never raises, whatever the text. Safe to call from several threads."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str:
        """`cold` (not loaded yet), `ready`, or `failed`: then counts are estimates."""
        ...

    @property
    def reason(self) -> str:
        """Why it failed; empty otherwise."""
        ...

    def warm(self) -> None:
        """Load what is needed; takes most of a second of CPU the first time."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        ...
