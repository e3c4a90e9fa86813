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


async def with_progress(ctx: Context[Backend], work: Callable[[Progress], Awaitable[Result]]) -> Result:
    """Do the work, and tell the client how far it is, if it asked to be told."""
    send, receive = anyio.create_memory_object_stream[tuple[int, int, str]](1)
    failure: CompactError | None = None

    def report(done: int, total: int, what: str) -> None:
        # The next report says more than one that nobody has fetched yet.
        if send.statistics().current_buffer_used == 0:
            send.send_nowait((done, total, what))

    async def relay() -> None:
        async with receive:
            async for done, total, what in receive:
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
