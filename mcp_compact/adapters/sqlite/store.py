"""The store behind its port: each operation in one hop on the thread of its connection.

A call that is cancelled leaves its operation to end on that thread, whole or rolled back; the next
call waits its turn. aiosqlite's thread is no daemon, so closing always ends it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar, cast

import aiosqlite
from anyio import CancelScope, lowlevel

from mcp_compact.adapters.sqlite import connection, operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.operations import bindings, indexing, tokens
from mcp_compact.compaction.micro import Clearable
from mcp_compact.compaction.plan import ClearingPlan, CompactionPlan
from mcp_compact.compaction.snapshot import Memory, Reach, Snapshot
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.errors import ServerError
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Marker
from mcp_compact.messages.message import Record
from mcp_compact.ports.bindings import Bound
from mcp_compact.ports.search import Found, SearchQuery
from mcp_compact.ports.store import (
    Appended,
    Batch,
    Committed,
    LivePage,
    Pending,
    Registered,
    SessionFacts,
    SessionKey,
    SessionRow,
    SourcePosition,
    Stamp,
)
from mcp_compact.ports.tokens import Token, Usage

operations.load()
SHORT_RECORDS, SHORT_BYTES = 4, 32_768
SHORT_LIVE, SHORT_LIVE_BYTES = 24, 65_536
"""So much of a context is read in about a millisecond."""
LOOK_EVERY = 16
"""So many short appends are made between looks at what waits for the index: a look costs a tenth of one."""
P = ParamSpec("P")
T = TypeVar("T")


class OneHopConnection(aiosqlite.Connection):
    """An aiosqlite connection whose protected one-hop call has a name, and that runs what is short without a hop.

    A change of threads and back costs more than a short operation, several times as much where many agents call at
    once: the two threads then wait for each other at every statement.
    """

    _given: int = 0
    _done: int = 0
    """Operations that the thread was given (the loop counts them), and that it has ended (it counts them itself)."""

    @property
    def _archive(self) -> ArchiveConnection:
        return cast("ArchiveConnection", self._conn)

    async def run(
        self, operation: Callable[Concatenate[ArchiveConnection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation on the connection's thread, whole, and give its result."""
        # The thread holds what it ran last until it is given something else; it shall not hold a whole batch.
        handed = [partial(operation, self._archive, *args, **kwargs)]
        self._given += 1
        # aiosqlite gives its protected method no types.
        result: T = await self._execute(self._run_once, handed)  # type: ignore[no-untyped-call]
        return result

    async def at_once(
        self, operation: Callable[Concatenate[ArchiveConnection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a short operation in the loop's own thread where nothing has to be waited for, else as `run` does.

        Operations keep the order in which they were asked for.
        """
        # A caller that was cancelled begins nothing, with a hop or without.
        await lowlevel.checkpoint_if_cancelled()
        conn = self._archive
        if self._given != self._done or conn.waits_for_disk:
            return await self.run(operation, *args, **kwargs)
        connection.set_patience(conn, may_wait=False)
        try:
            return operation(conn, *args, **kwargs)
        except ServerError as error:
            if error.code != "store_locked":
                raise
        return await self.run(operation, *args, **kwargs)

    def _run_once(self, handed: list[Callable[[], T]]) -> T:
        """Run the one operation of a list, which does not keep it."""
        try:
            connection.set_patience(self._archive, may_wait=True)
            return handed.pop()()
        finally:
            self._done += 1

    async def open(self) -> None:
        """Start the thread and connect; the thread has ended where that fails."""
        try:
            with CancelScope(shield=True):
                await self
        except BaseException:
            self._thread.join()
            raise

    async def end(self) -> None:
        """Close after what is queued has run, and wait for the thread, also where the caller is cancelled."""
        with CancelScope(shield=True):
            await self.close()
        self._thread.join()


def _is_short(batch: Batch) -> bool:
    """Does it bring so little, and nothing that could move older records, that it takes about a millisecond?"""
    if len(batch.records) > SHORT_RECORDS or batch.boundaries or batch.is_import:
        return False
    bodies = 0
    for item in batch.records:
        bodies += len(item.record.body)
        if item.record.parent_uuid is not None:
            return False
    return bodies <= SHORT_BYTES


@asynccontextmanager
async def open_store(path: str | os.PathLike[str], *, full_sync: bool = False) -> AsyncIterator[SqliteStore]:
    """The archive at `path`, open inside of the context. Errors are those of `connection.connect`."""
    opened = OneHopConnection(partial(connection.connect, path, full_sync=full_sync), iter_chunk_size=64)
    await opened.open()
    try:
        yield SqliteStore(opened)
    finally:
        await opened.end()


class SqliteStore:
    """`ports.store.Store` over one connection."""

    def __init__(self, opened: OneHopConnection) -> None:
        self._opened = opened
        self._short = 0

    async def run(
        self, operation: Callable[Concatenate[ArchiveConnection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run any storage operation in one hop."""
        return await self._opened.run(operation, *args, **kwargs)

    async def at_once(
        self, operation: Callable[Concatenate[ArchiveConnection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a short one, without a hop where nothing has to be waited for."""
        return await self._opened.at_once(operation, *args, **kwargs)

    async def append(self, key: SessionKey, batch: Batch, now_ms: int) -> Appended:
        if not _is_short(batch):
            return await self.run(indexing.append_and_index, key, batch, now_ms)
        done = await self.at_once(operations.append, key, batch, now_ms)
        is_looked_for = self._short % LOOK_EVERY == 0
        self._short += 1
        if is_looked_for and await self.at_once(indexing.is_due):
            await self.run(indexing.tidy)
        return done

    async def session(self, key: SessionKey) -> SessionRow | None:
        return await self.at_once(operations.session, key)

    async def sessions(self, namespace: str, *, cwd: str | None, limit: int, before_ms: int | None) -> list[SessionRow]:
        return await self.run(operations.sessions, namespace, cwd=cwd, limit=limit, before_ms=before_ms)

    async def position(self, namespace: str, source: str) -> SourcePosition | None:
        return await self.run(operations.position, namespace, source)

    async def snapshot(self, key: SessionKey, reach: Reach, *, up_to_seq: int | None = None) -> Snapshot | None:
        return await self.run(operations.snapshot, key, reach, up_to_seq=up_to_seq)

    async def clearable(self, key: SessionKey) -> Clearable | None:
        return await self.run(operations.clearable, key)

    async def records(self, key: SessionKey, *, after_seq: int, up_to_seq: int, live_only: bool) -> list[Record]:
        return await self.run(operations.records, key, after_seq=after_seq, up_to_seq=up_to_seq, live_only=live_only)

    async def live(self, key: SessionKey, *, after: int, limit: int, max_bytes: int) -> LivePage | None:
        few = limit <= SHORT_LIVE and max_bytes <= SHORT_LIVE_BYTES
        run = self.at_once if few else self.run
        return await run(operations.live, key, after=after, limit=limit, max_bytes=max_bytes)

    async def commit(self, key: SessionKey, plan: CompactionPlan | ClearingPlan | SnipPlan, stamp: Stamp) -> Committed:
        return await self.run(operations.commit, key, plan, stamp)

    async def put_pending(self, pending: Pending) -> None:
        await self.run(operations.put_pending, pending)

    async def pending(self, namespace: str, compaction_id: str) -> Pending | None:
        return await self.run(operations.pending, namespace, compaction_id)

    async def use_pending(self, namespace: str, compaction_id: str, now_ms: int) -> bool:
        return await self.run(operations.use_pending, namespace, compaction_id, now_ms)

    async def register(self, key: SessionKey, item: Registered, now_ms: int) -> None:
        await self.run(operations.register, key, item, now_ms)

    async def unregister(self, key: SessionKey, kind: str, name: str) -> bool:
        return await self.run(operations.unregister, key, kind, name)

    async def registered(self, key: SessionKey) -> list[Registered]:
        return await self.run(operations.registered, key)

    async def create_session(self, key: SessionKey, facts: SessionFacts, now_ms: int) -> bool:
        return await self.run(operations.create_session, key, facts, now_ms)

    async def delete_session(self, key: SessionKey) -> int:
        return await self.run(operations.delete_session, key)

    async def fork_session(self, key: SessionKey, new_key: SessionKey, up_to: MessageUuid | None, now_ms: int) -> int:
        return await self.run(operations.fork_session, key, new_key, up_to, now_ms)

    async def undo(self, key: SessionKey, stamp: Stamp) -> Committed:
        return await self.run(operations.undo, key, stamp)

    async def memory(self, key: SessionKey, version: int | None = None) -> Memory | None:
        return await self.run(operations.memory, key, version)

    async def write_memory(
        self,
        key: SessionKey,
        text: str,
        mark_uuid: MessageUuid | None,
        writer: str,
        now_ms: int,
        *,
        if_version: int | None = None,
    ) -> Memory:
        return await self.run(operations.write_memory, key, text, mark_uuid, writer, now_ms, if_version=if_version)

    async def note(
        self, key: SessionKey, *, decline: str = "", attempt: str = "", auto_failed: bool | None = None
    ) -> None:
        await self.run(operations.note, key, decline=decline, attempt=attempt, auto_failed=auto_failed)

    async def record(self, key: SessionKey, uuid: MessageUuid) -> Record | None:
        return await self.run(operations.record, key, uuid)

    async def call(self, key: SessionKey, tool_use_id: ToolUseId) -> tuple[Record | None, Record | None]:
        return await self.run(operations.call, key, tool_use_id)

    async def markers(self, key: SessionKey) -> list[Marker]:
        return await self.run(operations.markers, key)

    async def newest_message(self, key: SessionKey) -> MessageUuid | None:
        return await self.run(operations.newest_message, key)

    async def index_more(self) -> tuple[int, int]:
        return await self.run(indexing.index_more)

    async def search(self, namespace: str, query: SearchQuery) -> Found:
        return await self.run(operations.search, namespace, query)

    async def bound(self, client: str) -> Bound | None:
        return await self.at_once(bindings.bound, client)

    async def follow(self, client: str, server: str, now_ms: int) -> None:
        await self.run(bindings.follow, client, server, now_ms)

    async def match_prefix(self, key: SessionKey, hashes: Sequence[bytes]) -> int:
        return await self.run(operations.match_prefix, key, hashes)


class SqliteTenants:
    """`ports.tokens.Tenants` over the same connection."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def token(self, hashed: bytes) -> Token | None:
        return await self._store.at_once(tokens.token, hashed)

    async def has_tokens(self) -> bool:
        return await self._store.at_once(tokens.has_tokens)

    async def active(self, since_ms: int) -> list[str]:
        return await self._store.run(tokens.active, since_ms)

    async def usage(self, namespace: str) -> Usage:
        return await self._store.run(tokens.usage, namespace)
