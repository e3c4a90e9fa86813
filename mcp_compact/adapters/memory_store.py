"""A store without a file: the very same operations on a database in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp_compact.adapters.sqlite.connection import IN_MEMORY
from mcp_compact.adapters.sqlite.store import SqliteStore, open_store


@asynccontextmanager
async def open_memory_store() -> AsyncIterator[SqliteStore]:
    """An empty archive, gone when the context ends."""
    async with open_store(IN_MEMORY) as store:
        yield store
