"""Hooks that are Python: callables that installed packages offer as entry points of one group."""

from __future__ import annotations

import inspect
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

import anyio
from anyio.from_thread import BlockingPortal

from mcp_compact.adapters.hooks.outcomes import blocking, first_line, joined, judged, plain, said
from mcp_compact.ports.hooks import HookDetails, HookEvent, HookOutcome

GROUP = "mcp_compact.hooks"


class EntryPointHooks:
    """Every callable `fn(details) -> str | HookOutcome | None` of the group, awaited where it is asynchronous.

    Each is called for every event; those that are not asynchronous run in a thread. Never raises but when
    it is cancelled: what fails is a warning. `timeout_s` holds for each callable and includes its import.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._found: tuple[_Callable, ...] | None = None

    async def run(self, details: HookDetails) -> HookOutcome:
        """Call them one after the other, by name."""
        if self._found is None:
            # Looked up on first use: it reads the records of every installed package.
            points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
            self._found = tuple(_Callable(point, self._timeout_s) for point in points)
        return joined([await known.run(details) for known in self._found])


@dataclass(slots=True)
class _Call:
    """One call in its thread."""

    details: HookDetails
    done: anyio.Event = field(default_factory=anyio.Event)
    abandoned: bool = False
    result: object = None
    error: Exception | SystemExit | None = None


@dataclass(frozen=True, slots=True)
class _Callable:
    point: EntryPoint
    timeout_s: float
    busy: threading.Lock = field(default_factory=threading.Lock)
    """Held for as long as it runs, beyond its time limit too: one that hangs takes one thread, not many."""

    async def run(self, details: HookDetails) -> HookOutcome:
        name = f"{details.event} hook {self.point.name!r}"
        try:
            with anyio.move_on_after(self.timeout_s):
                return _outcome(details.event, name, await self._result(details))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
            return HookOutcome(warnings=(f"{name} failed: {first_line(f'{type(error).__name__}: {error}')}",))
        return HookOutcome(warnings=(f"{name} took longer than {self.timeout_s:g} s and is left out",))

    async def _result(self, details: HookDetails) -> object:
        call = _Call(details)
        try:
            async with BlockingPortal() as portal:
                # A daemon, unlike anyio's own threads: one that hangs must not keep the program from ending.
                threading.Thread(target=self._work, args=(call, portal), daemon=True, name=self.point.name).start()
                await call.done.wait()
        finally:
            call.abandoned = not call.done.is_set()
        if call.error is not None:
            raise call.error
        return await call.result if inspect.isawaitable(call.result) else call.result

    def _work(self, call: _Call, portal: BlockingPortal) -> None:
        if not self.busy.acquire(timeout=self.timeout_s):
            return
        try:
            if not call.abandoned:
                call.result = self.point.load()(call.details)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - raised again where somebody waits for it
            call.error = error
        finally:
            self.busy.release()
            if call.abandoned and inspect.iscoroutine(call.result):
                call.result.close()
            # RuntimeError: nobody waits any more.
            with suppress(RuntimeError):
                portal.start_task_soon(call.done.set)


def _outcome(event: HookEvent, name: str, result: object) -> HookOutcome:
    match result:
        case None:
            return HookOutcome()
        case str():
            return said(event, name, result)
        case HookOutcome():
            return _checked(event, name, result)
    raise TypeError(f"it gave {type(result).__name__}, not text, a HookOutcome or None")


def _checked(event: HookEvent, name: str, given: HookOutcome) -> HookOutcome:
    """The outcome, of which only that counts which its event may say."""
    text, warnings = plain(given.text), tuple(f"{name}: {first_line(warning)}" for warning in given.warnings)
    if event == "post_compact":
        return judged(name, HookOutcome(text, verified=given.verified, warnings=warnings))
    blocked = blocking(name, given.blocked).blocked if event == "pre_compact" and given.blocked else ""
    return HookOutcome(text, blocked, warnings=warnings)
