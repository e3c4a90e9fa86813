"""Session memory in the background: brought up to date by the extractor when it is due, beside the work.

An append only starts it and never waits. A version is written only where the memory is still the one that
was read, so notes that an agent writes meanwhile are never lost.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from mcp_compact.compaction.memory_due import is_memory_due, tokens_until_due
from mcp_compact.compaction.snapshot import Reach, Snapshot
from mcp_compact.errors import CompactError
from mcp_compact.ports.store import SessionKey, SessionRow
from mcp_compact.service.deps import Deps
from mcp_compact.service.extracting import extract_memory
from mcp_compact.service.results import Status

WAIT_S = 15.0
"""So long a compaction waits for an update under way."""
DEAD_AFTER_MS = 60_000
"""An update older than this is waited for no more, and another one may begin."""
AT_ONCE = 2
MOST_WAITING = 100
"""Updates under way or queued; beyond these an append starts none (a later one does)."""
REMEMBERED = 1_000
"""So many sessions' next due sizes are kept in memory."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Run:
    """One update of a session's memory, queued or under way."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    started_ms: int | None = None
    """None while it is queued."""


Runs: TypeAlias = dict[SessionKey, Run]
"""The newest update of each session; shared by all who work on one archive."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A look at a session whose memory was not due: it cannot be before the context has grown to `next_tokens`."""

    version: int
    tokens: int
    next_tokens: int


class Extractions:
    """Starts updates in a task group, at most one a session and a few at once; stops its own at `close`."""

    def __init__(self, deps: Deps, tasks: TaskGroup, runs: Runs | None = None, *, wait_s: float = WAIT_S) -> None:
        self._deps = deps
        self._tasks = tasks
        self._runs: Runs = {} if runs is None else runs
        self._wait_s = wait_s
        self._own: list[Run] = []
        self._seen: dict[SessionKey, _Seen] = {}
        self._slots = anyio.Semaphore(AT_ONCE, fast_acquire=True)
        self._is_closed = False

    def consider(self, key: SessionKey, status: Status) -> None:
        """After an append or import: start an update where one may be due. Returns at once and raises nothing."""
        policy = self._deps.settings.policy
        if self._is_closed or not policy.session_memory or not self._deps.settings.extract:
            return
        if status.memory_version == 0 and status.message_tokens < policy.memory.first_at_tokens:
            return
        seen = self._seen.get(key)
        if seen and seen.version == status.memory_version and seen.tokens <= status.message_tokens < seen.next_tokens:
            return
        before = self._runs.get(key)
        if len(self._own) >= MOST_WAITING or (before is not None and not self._is_dead(before)):
            return
        if before is not None:
            before.scope.cancel()
        run = self._runs[key] = Run()
        self._own.append(run)
        self._tasks.start_soon(self._work, key, run)

    async def settled(self, key: SessionKey) -> str:
        """Wait for an update of the session under way, 15 s at most; a warning where it goes on without it."""
        run = self._runs.get(key)
        if run is None or run.started_ms is None:
            return ""
        if self._is_dead(run):
            return _without("has run for more than a minute and counts as dead")
        with anyio.move_on_after(self._wait_s):
            await run.ended.wait()
        return "" if run.ended.is_set() else _without(f"was not ready after {self._wait_s:g} s")

    async def close(self) -> None:
        """Stop what this one started, and wait until it has ended."""
        self._is_closed = True
        own = list(self._own)
        for run in own:
            run.scope.cancel()
        for run in own:
            await run.ended.wait()

    def _is_dead(self, run: Run) -> bool:
        return run.started_ms is not None and self._deps.clock.now_ms() - run.started_ms > DEAD_AFTER_MS

    async def _work(self, key: SessionKey, run: Run) -> None:
        try:
            with run.scope:
                async with self._slots:
                    run.started_ms = self._deps.clock.now_ms()
                    await self._update(key)
        except CompactError as error:
            # The session was deleted, or others kept writing: the next append looks again.
            logger.debug("no session memory in the background: %s", error)
        except Exception:
            # A defect must not take the server down; a compaction meets it again and says so.
            logger.exception("session memory could not be updated in the background")
        finally:
            self._own.remove(run)
            if self._runs.get(key) is run:
                del self._runs[key]
            run.ended.set()

    async def _update(self, key: SessionKey) -> None:
        row = await self._deps.store.session(key)
        snapshot = await self._deps.store.snapshot(key, _reach(row)) if row is not None else None
        if snapshot is None:
            return
        if is_memory_due(snapshot, self._deps.settings.policy.memory):
            self._seen.pop(key, None)
            await extract_memory(self._deps, key)
        else:
            self._remember(key, snapshot)

    def _remember(self, key: SessionKey, snapshot: Snapshot) -> None:
        if len(self._seen) >= REMEMBERED:
            self._seen.pop(next(iter(self._seen)))
        version, tokens = snapshot.memory.version if snapshot.memory else 0, snapshot.live_tokens
        until = tokens_until_due(snapshot, self._deps.settings.policy.memory)
        self._seen[key] = _Seen(version, tokens, tokens + until)


def _reach(row: SessionRow) -> Reach:
    """Down to the memory's mark: what it does not cover is weighed."""
    return Reach(1, 0, 1, (row.memory_mark_seq or 0) if row.memory_version else None)


def _without(why: str) -> str:
    return f"the session memory's update {why}: its last finished version was used"
