"""Progress of long work, from a plain callback to the client's notifications. A slow client gets fewer of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from mcp.server.mcpserver import Context

from mcp_compact.errors import CompactError
from mcp_compact.server.backend import Backend
from mcp_compact.service.prepare import Progress

Result = TypeVar("Result")
BEAT_S = 3.0


async def with_progress(ctx: Context[Backend], work: Callable[[Progress], Awaitable[Result]]) -> Result:
    """Do the work, and tell the client how far it is, if it asked to be told."""
    send, receive = anyio.create_memory_object_stream[None](1)
    newest: list[tuple[int, int, str]] = []
    failure: CompactError | None = None

    def report(done: int, total: int, what: str) -> None:
        # The newest report says more than one that nobody has fetched yet, and the last one is always told.
        newest[:] = [(done, total, what)]
        if send.statistics().current_buffer_used == 0:
            send.send_nowait(None)

    async def relay() -> None:
        far = -1
        async with receive:
            async for _ in receive:
                done, total, what = newest[0]
                # Clients expect more with every report; work that begins anew catches up first.
                if done > far:
                    far = done
                    await ctx.report_progress(done, total or None, what)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        try:
            result = await work(report)
        except CompactError as error:
            # Carried around the task group, which would wrap it.
            failure = error
        finally:
            send.close()
    if failure is not None:
        raise failure
    return result


async def with_beat(ctx: Context[Backend], what: str, work: Callable[[], Awaitable[Result]]) -> Result:
    """Do work that cannot say how far it is, and tell the client every few seconds that it goes on, if it asked.

    What is counted are the reports. Clients take them for a sign of life, and wait on.
    """
    failure: Exception | None = None

    async def beat() -> None:
        number = 0
        while True:
            await ctx.report_progress(number, None, what)
            number += 1
            await anyio.sleep(BEAT_S)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        try:
            result = await work()
        except Exception as error:  # noqa: BLE001 - carried around the task group, which would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result
