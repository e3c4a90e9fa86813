"""What the tools of one server stand on: the service, opened at first use, and the place that the server runs in."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread

from mcp_compact.errors import CompactError
from mcp_compact.service.service import Service

ServiceFactory = Callable[[], AbstractAsyncContextManager[Service]]

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


@dataclass(slots=True)
class Backend:
    """One lifespan's service. Nothing is opened before somebody needs it: `initialize` must not wait for a database."""

    factory: ServiceFactory
    place: Place
    _stack: AsyncExitStack
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _service: Service | None = None

    async def service(self) -> Service:
        """The service; opens it the first time. What fails is tried again by the next call."""
        if self._service is not None:
            return self._service
        async with self._lock:
            if self._service is None:
                self._service = await self._stack.enter_async_context(self.factory())
            return self._service

    async def warm_after(self, answered: anyio.Event) -> None:
        """Once the client has its first answer, open the database and load the tokenizer."""
        await answered.wait()
        try:
            service = await self.service()
            await to_thread.run_sync(service.deps.tokenizer.warm)
        except CompactError as error:
            logger.warning("%s: %s", error.code, error)
        except Exception:
            # The next call meets the same fault and answers for it; the server itself goes on.
            logger.exception("the service could not be opened ahead of its use")


@asynccontextmanager
async def open_backend(factory: ServiceFactory, place: Place, answered: anyio.Event | None) -> AsyncIterator[Backend]:
    """A backend for a server's lifespan; `answered` is set by a transport after its first answer."""
    async with AsyncExitStack() as stack:
        backend = Backend(factory, place, stack)
        async with anyio.create_task_group() as tasks:
            if answered is not None:
                tasks.start_soon(backend.warm_after, answered)
            yield backend
            tasks.cancel_scope.cancel()
