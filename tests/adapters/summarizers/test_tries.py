from __future__ import annotations

import math

import anyio
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.summarizers.tries import LONGEST_BACKOFF_S, Again, Tries
from mcp_compact.ports.summarizer import WriterFailed

BUSY = WriterFailed("unavailable", "busy")


def run(
    most: int, backoff_s: float, asked_wait_s: float, limit_s: float = math.inf
) -> tuple[WriterFailed, list[float]]:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    async def ask() -> Again:
        return Again(BUSY, asked_wait_s)

    async def all_tries() -> WriterFailed:
        outcome = await Tries(most, backoff_s, wait).of(ask, anyio.current_time() + limit_s)
        assert isinstance(outcome, WriterFailed)
        return outcome

    return anyio.run(all_tries), waits


@given(st.integers(1, 12), st.floats(0, 100), st.floats(0, 1e9))
def test_no_wait_is_shorter_than_asked_for_and_no_own_one_longer_than_the_longest(
    most: int, backoff_s: float, asked_wait_s: float
):
    failed, waits = run(most, backoff_s, asked_wait_s)
    assert failed.reason == "unavailable"
    assert len(waits) == most - 1
    assert all(asked_wait_s <= wait <= max(asked_wait_s, LONGEST_BACKOFF_S) for wait in waits)
    assert waits == sorted(waits)


def test_what_the_last_try_ended_with_is_kept_for_the_one_who_runs_out_of_time():
    async def main() -> None:
        async def ask() -> Again:
            return Again(BUSY)

        tries = Tries(2, 1, lambda _: anyio.sleep_forever())
        with anyio.move_on_after(0.01):
            await tries.of(ask, math.inf)
        assert tries.last == BUSY

    anyio.run(main)


def test_no_wait_is_begun_that_would_end_past_the_limit():
    failed, waits = run(3, 1, 10, limit_s=5)
    assert waits == []
    assert "10 s" in failed.detail


def test_no_tries_is_a_failure_and_no_success():
    assert run(0, 1, 1)[0].reason == "no_tries"
