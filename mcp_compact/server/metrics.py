"""What the server counts, under fixed names: as Prometheus text, and through the API of OpenTelemetry.

Nothing that is counted holds a text of a conversation: strategies, reasons and levels are our own words. Without an
OpenTelemetry SDK, which is the owner's to install, its API does nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from opentelemetry import metrics, trace

from mcp_compact import __version__
from mcp_compact.compaction.plan import ClearingPlan, CompactionPlan
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.ports.store import Committed, SessionKey, Stamp, Store

if TYPE_CHECKING:
    from mcp_compact.service.service import Service

LEVELS = ("ok", "warning", "compact", "hard")
COMPACTIONS, DECLINES = "mcp_compact_compactions", "mcp_compact_declines"
BEFORE, AFTER = "mcp_compact_tokens_before", "mcp_compact_tokens_after"
RULES_LOST, SESSIONS = "mcp_compact_rules_lost", "mcp_compact_sessions"
COUNTED: Mapping[str, tuple[str, str]] = {
    COMPACTIONS: ("strategy", "Compactions that were written, clearings and snips among them."),
    DECLINES: ("reason", "Compactions that came to nothing, by the first reason."),
    BEFORE: ("strategy", "Tokens of the contexts before they were compacted."),
    AFTER: ("strategy", "Tokens of the same contexts afterwards."),
    RULES_LOST: ("strategy", "Standing instructions that no context holds word for word after a compaction."),
}
"""Each counter with the name of its one label and what it counts."""
WORD = re.compile(r"[a-z][a-z0-9_]{0,59}")
OTHER = "other"


@dataclass(slots=True)
class Metrics:
    """The counters of one process."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in COUNTED})
    _mirrors: dict[str, metrics.Counter] = field(default_factory=dict)

    def add(self, name: str, label: str, number: int = 1) -> None:
        """Count. A label that is no plain word of ours is counted as `other`."""
        value = label if WORD.fullmatch(label) else OTHER
        self.counts[name][value] += number
        mirror = self._mirrors.get(name)
        if mirror is None:
            meter = metrics.get_meter("mcp-compact", __version__)
            mirror = self._mirrors[name] = meter.create_counter(name, description=COUNTED[name][1])
        mirror.add(number, {COUNTED[name][0]: value})

    def committed(self, plan: CompactionPlan | ClearingPlan | SnipPlan) -> None:
        """Count a plan that was written, and name it on the span of the call that is being answered."""
        strategy = plan.strategy if isinstance(plan, CompactionPlan) else plan.kind.name.lower()
        self.add(COMPACTIONS, strategy)
        self.add(BEFORE, strategy, max(0, plan.tokens_before))
        self.add(AFTER, strategy, max(0, plan.tokens_after))
        if isinstance(plan, CompactionPlan):
            self.add(RULES_LOST, strategy, len(plan.loss.instructions_missing))
        trace.get_current_span().set_attributes(
            {
                "mcp_compact.strategy": strategy,
                "mcp_compact.tokens_before": plan.tokens_before,
                "mcp_compact.tokens_after": plan.tokens_after,
            }
        )

    def text(self, sessions: Mapping[str, int]) -> str:
        """All of it in Prometheus' text format; `sessions` by their level."""
        lines = [
            f"# HELP {SESSIONS} Sessions that were active within a day, by how full their context is.",
            f"# TYPE {SESSIONS} gauge",
            *(f'{SESSIONS}{{level="{level}"}} {sessions.get(level, 0)}' for level in LEVELS),
        ]
        for name, (label, what) in COUNTED.items():
            lines += [f"# HELP {name}_total {what}", f"# TYPE {name}_total counter"]
            lines += [
                f'{name}_total{{{label}="{value}"}} {self.counts[name][value]}' for value in sorted(self.counts[name])
            ]
        return "\n".join(lines) + "\n"


METRICS = Metrics()
"""This process's."""


class CountingStore:
    """A store that counts what is written: every compaction, by whatever way it was asked for, ends here."""

    def __init__(self, inner: Store, counted: Metrics) -> None:
        self._inner, self._counted = inner, counted

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def commit(self, key: SessionKey, plan: CompactionPlan | ClearingPlan | SnipPlan, stamp: Stamp) -> Committed:
        done = await self._inner.commit(key, plan, stamp)
        if done.marker is not None:
            self._counted.committed(plan)
        return done

    async def note(
        self, key: SessionKey, *, decline: str = "", attempt: str = "", auto_failed: bool | None = None
    ) -> None:
        await self._inner.note(key, decline=decline, attempt=attempt, auto_failed=auto_failed)
        if decline:
            self._counted.add(DECLINES, decline)


def counting(
    factory: Callable[[], AbstractAsyncContextManager[Service]],
) -> Callable[[], AbstractAsyncContextManager[Service]]:
    """A factory of the same services, whose compactions are counted."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with factory() as service:
            store = cast("Store", CountingStore(service.deps.store, METRICS))
            yield replace(service, deps=replace(service.deps, store=store))

    return opened
