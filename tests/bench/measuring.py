"""What the benchmarks share: CPU time of alternated work, a bar for what takes minutes, a session's key."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

BAR_COLUMNS = 30


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of one call (all threads of the process), from a swept heap on."""
    swept()
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


async def async_milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    """The same of a call that is awaited."""
    swept()
    start = time.process_time()
    await work()
    return (time.process_time() - start) * 1000


def swept() -> None:
    """Sweep the heap; what is left is set aside, so that the next sweep costs nothing and none comes in between."""
    gc.collect()
    gc.freeze()


@dataclass(slots=True)
class Times:
    """What was measured, by name; medians of it."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        self.values.setdefault(name, []).append(value)

    def median(self, name: str) -> float:
        return statistics.median(self.values[name])


def alternated(works: Mapping[str, Callable[[], object]], repeats: int) -> Times:
    """Medians of works that take turns, so that what else the machine does meets all of them."""
    times = Times()
    for _ in range(repeats):
        for name, work in works.items():
            times.add(name, milliseconds(work))
    return times


class Bar:
    """Progress on stderr: a bar in a terminal, else a line each tenth."""

    def __init__(self, what: str, whole: int) -> None:
        self.what, self.whole, self.shown = what, whole, -1
        self.start = time.monotonic()

    def reach(self, done: int) -> None:
        """So much is done."""
        tenths = 100 * done // self.whole if sys.stderr.isatty() else 10 * done // self.whole
        if tenths == self.shown:
            return
        self.shown = tenths
        passed = time.monotonic() - self.start
        left = passed * (self.whole - done) / done if done else 0
        filled = BAR_COLUMNS * done // self.whole
        line = (
            f"{self.what} [{'#' * filled}{'.' * (BAR_COLUMNS - filled)}] {done:,} of {self.whole:,}, {left:.0f} s left"
        )
        end = "\n" if done >= self.whole or not sys.stderr.isatty() else ""
        print(f"\r{line:<100}" if sys.stderr.isatty() else line, end=end or "", file=sys.stderr, flush=True)
