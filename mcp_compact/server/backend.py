"""What the tools of one server stand on: the service, opened at first use, and the place that the server runs in."""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread

from mcp_compact.errors import CompactError

if TYPE_CHECKING:
    from mcp_compact.server.follow import Follower
    from mcp_compact.server.tenants import Quotas
    from mcp_compact.service.service import Service

ServiceFactory: TypeAlias = "Callable[[], AbstractAsyncContextManager[Service]]"

YOUNG = 10_000
"""So many new objects are looked through at once: with Python's 700 a server spends a tenth of its time with it."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """What a server may take from where it runs. Over a network there is no folder and no file."""

    cwd: Path | None = None
    """Sessions of this working directory are looked up without an id."""
    roots: tuple[Path, ...] = ()
    """Files inside of these folders may be read by path."""
    project_only: bool = True
    """A search over all sessions stays in the working directory."""
    tenant: Callable[[], str] | None = None
    """Over a network: whose sessions the call that is being answered may see."""
    quotas: Quotas | None = None
    """And what they may store."""
    state_key: bytes = b""
    """Over a network: seals what a client brings back with a call that it makes again, for every process."""
    client: str = ""
    """The process of the client that started this server; empty over a network."""


@dataclass(frozen=True, slots=True)
class SamplingLimits:
    """Of a summary that the client's model is asked for."""

    timeout_s: float = 120
    max_tokens: int = 12_000
    """What it may write."""


@dataclass(slots=True)
class Backend:
    """One lifespan's service. Nothing is opened before somebody needs it: `initialize` must not wait for a database."""

    factory: ServiceFactory
    place: Place
    takes_summaries: bool
    """Is submit_summary among the tools? Without it no summary is asked of the caller."""
    sampling: SamplingLimits
    _stack: AsyncExitStack
    _lock: anyio.Lock = field(default_factory=partial(anyio.Lock, fast_acquire=True))
    follower: Follower | None = None
    """Takes what is new from the transcript of the session that the client is at."""
    _service: Service | None = None
    _turns: WeakValueDictionary[str, anyio.Lock] = field(default_factory=WeakValueDictionary)

    async def service(self) -> Service:
        """The service; opens it the first time. What fails is tried again by the next call.

        Who asks first is served first, so that calls keep their order.
        """
        # Nobody waits where the lock is free: to take it would only cost time.
        if self._service is None or self._lock.locked():
            async with self._lock:
                if self._service is None:
                    self._service = await self._stack.enter_async_context(self.factory())
        if self.place.tenant is None:
            return self._service
        return replace(self._service, namespace=self.place.tenant())

    async def admit(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """May the call store what it brings? Raises CallerError for the limit that forbids it."""
        if self.place.quotas is not None:
            await self.place.quotas.admit(await self.service(), tool, arguments)

    def turn(self, session_id: str) -> anyio.Lock:
        """Held by one append to a session at a time, so that calls that were sent at once are stored in their order."""
        name = f"{self.place.tenant() if self.place.tenant else ''}\0{session_id}"
        lock = self._turns.get(name)
        if lock is None:
            lock = self._turns[name] = anyio.Lock()
        return lock

    async def warm(self) -> None:
        """Open the database and load the tokenizer, ahead of the first call that needs them."""
        try:
            service = await self.service()
            await to_thread.run_sync(service.deps.tokenizer.warm)
            settle()
        except CompactError as error:
            logger.warning("%s: %s", error.code, error)
        except Exception:
            # The next call meets the same fault and answers for it; the server itself goes on.
            logger.exception("the service could not be opened ahead of its use")


def settle() -> None:
    """Once everything is loaded: it stays until the end, so that garbage is looked for in what calls leave alone."""
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


@asynccontextmanager
async def open_backend(
    factory: ServiceFactory, place: Place, *, takes_summaries: bool, sampling: SamplingLimits
) -> AsyncIterator[Backend]:
    """A backend for a server's lifespan."""
    async with AsyncExitStack() as stack:
        yield Backend(factory, place, takes_summaries, sampling, stack)
