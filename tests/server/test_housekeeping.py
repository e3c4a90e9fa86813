"""A quiet server gives back what it holds for nothing; a busy one is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcp_compact.server.housekeeping import GROWN_KB, MOST_LOOKS, Housekeeping, give_back, resident_kb
from mcp_compact.service.page_cache import KEPT_MS, Whole
from mcp_compact.testing import FixedClock
from tests.service.test_summaries import opened


class Process:
    """A process whose size a test sets."""

    def __init__(self) -> None:
        self.kb, self.given_back, self.returns = 1_000_000, 0, 0

    def size(self) -> int:
        return self.kb

    def free(self) -> None:
        self.given_back += 1
        self.kb -= self.returns


async def test_it_frees_where_it_has_grown_and_is_quiet_and_less_often_where_that_is_in_vain(tmp_path: Path) -> None:
    process = Process()
    async with opened(tmp_path) as service:
        keeping = Housekeeping(service.deps, process.size, process.free, began_kb=process.kb)
        await keeping.look()
        await keeping.look()
        assert process.given_back == 0, "it has not grown"
        process.kb += 2 * GROWN_KB
        await keeping.look()
        assert process.given_back == 0, "it is at work"
        process.returns = 2 * GROWN_KB
        await keeping.look()
        assert (process.given_back, process.kb) == (1, 1_000_000)
        process.kb, process.returns, process.given_back = 1_100_000, 0, 0
        for _ in range(4 * MOST_LOOKS):
            await keeping.look()
        assert 5 < process.given_back < 15


async def test_pages_that_nobody_asks_for_are_dropped_without_being_asked_for(tmp_path: Path) -> None:
    clock = FixedClock()
    async with opened(tmp_path, clock=clock) as service:
        deps = replace(service.deps, clock=clock)
        keeping = Housekeeping(deps, began_kb=resident_kb())
        deps.pages.keep("a", Whole((), "1.0", "", (), 1), clock.now_ms())
        await keeping.look()
        assert deps.pages.kept
        clock.at_ms += KEPT_MS + 1
        await keeping.look()
        assert not deps.pages.kept


def test_the_size_of_this_process_is_told_and_giving_back_ends_nothing() -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("the system tells no size")
    assert resident_kb() > 10_000
    give_back()
