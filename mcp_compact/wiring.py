"""The composition root: settings in, a service out. Database and tokenizer are imported when they are first needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from functools import cache

import anyio
from anyio.abc import TaskGroup

from mcp_compact.config import Settings, load_settings
from mcp_compact.ports.clock import Clock
from mcp_compact.ports.hooks import Hooks
from mcp_compact.ports.store import Store
from mcp_compact.ports.summarizer import Summarizer
from mcp_compact.ports.tokenizer import Tokenizer
from mcp_compact.ports.tokens import Tenants
from mcp_compact.service.deps import Deps
from mcp_compact.service.extraction import Extractions, Runs
from mcp_compact.service.service import LOCAL, Service


@asynccontextmanager
async def open_service(
    settings: Settings | None = None, *, namespace: str = LOCAL, tasks: TaskGroup | None = None
) -> AsyncIterator[Service]:
    """Every verb of the product over the archive that the settings name; closes it at the end.

    May be entered several times at once in a process: all share one archive, the last one out closes it.
    With `tasks` session memory is brought up to date in the background, in that group; what still runs is
    stopped before this closes. Raises ServerError where the archive cannot be opened.
    """
    known = settings or load_settings()
    async with _shared_store(known) as shared:
        hooks, writers = _hooks(known), _writers(known)
        deps = Deps(shared.stores[0], tokenizer(), system_clock(), known, hooks, writers)
        if tasks is None or not known.extract:
            yield Service(deps, namespace)
            return
        extractions = Extractions(deps, tasks, shared.runs)
        try:
            yield Service(replace(deps, extractions=extractions), namespace)
        finally:
            with anyio.CancelScope(shield=True):
                await extractions.close()


@asynccontextmanager
async def open_tenants(settings: Settings) -> AsyncIterator[Tenants]:
    """Who may call over a network, from the same archive that `open_service` opens."""
    async with _shared_store(settings) as shared:
        from mcp_compact.adapters.sqlite.store import SqliteStore, SqliteTenants  # noqa: PLC0415 - see above

        store = shared.stores[0]
        assert isinstance(store, SqliteStore)  # noqa: S101 - what _opened put there
        yield SqliteTenants(store)


def tokens_exist(settings: Settings) -> bool:
    """Was a token ever made? Before a server starts; no archive is made where there is none."""
    from mcp_compact.adapters.sqlite.operations import connect  # noqa: PLC0415 - see above
    from mcp_compact.adapters.sqlite.operations.tokens import has_tokens  # noqa: PLC0415 - see above

    if not settings.db.is_file():
        return False
    with closing(connect(settings.db)) as conn:
        return has_tokens(conn)


def _hooks(settings: Settings) -> Hooks | None:
    """The owner's hooks, where there may be any."""
    if settings.hooks is None and not settings.hook_entry_points:
        return None
    from mcp_compact.adapters.hooks import load_hooks  # noqa: PLC0415 - adapters are loaded on first use

    return load_hooks(
        str(settings.hooks or ""), entry_points=settings.hook_entry_points, timeout_s=settings.hook_timeout_s
    )


def _writers(settings: Settings) -> dict[str, Summarizer]:
    """Who can be asked for a summary, apart from the calling agent."""
    if "provider" not in settings.summarizers:
        return {}
    from mcp_compact.adapters.summarizers import ProviderSummarizer  # noqa: PLC0415 - only where it is asked for

    llm = settings.llm
    provider = ProviderSummarizer(
        llm.model, base_url=llm.base_url, api_key=llm.api_key, timeout_s=llm.timeout_s, max_tokens=llm.max_tokens
    )
    return {"provider": provider}


@cache
def tokenizer() -> Tokenizer:
    """The process's one tokenizer, cold: its vocabulary takes 80 MB and half a second to load."""
    from mcp_compact.adapters.tokenizers import O200kTokenizer  # noqa: PLC0415 - loaded on first use

    return O200kTokenizer()


def system_clock() -> Clock:
    """This machine's clock."""
    from mcp_compact.adapters.system import SystemClock  # noqa: PLC0415 - adapters are loaded on first use

    return SystemClock()


@dataclass(slots=True)
class _Shared:
    """An archive that is open, or about to be, and how many use it."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    stores: list[Store] = field(default_factory=list)
    """Empty until it is open."""
    users: int = 0
    runs: Runs = field(default_factory=dict)
    """Updates of session memory under way, whoever started them."""


_open: dict[str, _Shared] = {}
"""By file. A server's lifespan may run once a connection, so a process must not open its archive once a lifespan."""


@asynccontextmanager
async def _shared_store(settings: Settings) -> AsyncIterator[_Shared]:
    name = str(settings.db)
    shared = _open.setdefault(name, _Shared())
    shared.users += 1
    try:
        await _opened(shared, settings)
        yield shared
    finally:
        shared.users -= 1
        if shared.users == 0:
            # Out of the table before the first await: whoever comes meanwhile opens the file anew.
            _open.pop(name, None)
            with anyio.CancelScope(shield=True):
                await shared.stack.aclose()


async def _opened(shared: _Shared, settings: Settings) -> None:
    from mcp_compact.adapters.sqlite.store import open_store  # noqa: PLC0415 - loads aiosqlite, on first use

    # Half an opened connection would keep the process from ending.
    with anyio.CancelScope(shield=True):
        async with shared.lock:
            if not shared.stores:
                shared.stores.append(
                    await shared.stack.enter_async_context(
                        open_store(settings.db, full_sync=settings.synchronous == "full")
                    )
                )
