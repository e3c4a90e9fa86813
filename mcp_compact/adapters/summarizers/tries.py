"""Asking again: after what passes by itself, with growing waits, and never past the time limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from mcp_compact.ports.summarizer import TooLong, WriterFailed, Written

LONGEST_BACKOFF_S = 20.0


@dataclass(frozen=True, slots=True)
class Again:
    """A failure that may pass by itself, and how long the provider asks to wait."""

    failed: WriterFailed
    wait_s: float = 0.0


Outcome = Written | TooLong | WriterFailed
Ask = Callable[[], Awaitable[Outcome | Again]]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Tries:
    """So many tries at most, the waits between them doubling from `backoff_s` seconds."""

    most: int
    backoff_s: float
    sleep: Sleep
    last: WriterFailed | None = None
    """What the newest failed try ended with."""

    async def of(self, ask: Ask, deadline: float) -> Outcome:
        """The first outcome that another try cannot better. The deadline is one of the event loop's clock."""
        for number in range(1, self.most + 1):
            outcome = await ask()
            if not isinstance(outcome, Again):
                return outcome
            self.last = outcome.failed
            if number == self.most:
                return _with(outcome.failed, f"tried {number} times" if number > 1 else "tried once")
            wait_s = max(outcome.wait_s, min(self.backoff_s * 2 ** (number - 1), LONGEST_BACKOFF_S))
            left_s = deadline - anyio.current_time()
            if wait_s >= left_s:
                return _with(outcome.failed, f"to be tried again in {wait_s:.0f} s, {max(left_s, 0):.0f} s are left")
            await self.sleep(wait_s)
        return WriterFailed("no_tries", "a summary wants one try at least")


def _with(failed: WriterFailed, note: str) -> WriterFailed:
    return WriterFailed(failed.reason, f"{failed.detail} ({note})")
