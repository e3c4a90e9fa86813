"""What a server that runs for weeks gives back while it is quiet.

Pages that nobody asks for any more, objects that refer to each other, and memory that is free but that the C library
keeps for itself: after a few large requests that is more than the server needs for everything else.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from mcp_compact.service.deps import Deps

LOOK_S = 5.0
GROWN_KB = 8_000
"""Above what the server had when it began: less is not worth the look through all objects."""
STILL_KB = 1_000
"""A process whose size changed by no more since the last look is quiet."""
MOST_LOOKS = 120
"""Where giving back frees nothing it is tried less and less often, every ten minutes in the end."""


def resident_kb() -> int:
    """What the process holds in memory now; 0 where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024
    return 0


def give_back() -> None:
    """Look for garbage, and return free memory to the system where the C library can."""
    gc.collect()
    import ctypes  # noqa: PLC0415 - only where there is something to give back

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(slots=True)
class Housekeeping:
    """Looks every few seconds whether the process has grown and is quiet, and gives back what it can."""

    deps: Deps
    size_kb: Callable[[], int] = resident_kb
    free: Callable[[], None] = give_back
    began_kb: int = 0
    _last_kb: int = 0
    _pause: int = 1
    _left: int = 0
    """Looks until giving back is tried again."""

    async def run(self) -> None:
        """Until it is cancelled."""
        await to_thread.run_sync(self.free)
        self.began_kb = self._last_kb = self.size_kb()
        while True:
            await anyio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """One look."""
        self.deps.pages.drop_old(self.deps.clock.now_ms())
        size_kb, last_kb = self.size_kb(), self._last_kb
        self._last_kb = size_kb
        if abs(size_kb - last_kb) > STILL_KB:
            self._pause, self._left = 1, 0
            return
        if size_kb <= self.began_kb + GROWN_KB:
            return
        if self._left > 0:
            self._left -= 1
            return
        await to_thread.run_sync(self.free)
        self._last_kb = self.size_kb()
        freed = size_kb - self._last_kb > STILL_KB
        self._pause = 1 if freed else min(2 * self._pause, MOST_LOOKS)
        self._left = self._pause
