"""Which results of a live context are old: by age, by what is newer, by size, by what a later one stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from mcp_compact.compaction.micro_request import (
    Clearable,
    MicroMode,
    MicroRequest,
    is_compactable,
    keep_of,
    minutes_of,
)
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.snapshot import ResultFacts
from mcp_compact.compaction.superseded import looks_at_later, superseded
from mcp_compact.messages.weights import NOTHING

MINUTE_MS = 60_000
Place: TypeAlias = tuple[int, int]
"""Seq of the record and number of the block: the order of the conversation."""


@dataclass(frozen=True, slots=True)
class Results:
    """The compactable results of a live context that are not cleared, old to new."""

    live: Clearable
    request: MicroRequest
    policy: MicroPolicy
    ours: Sequence[ResultFacts]
    free: Sequence[ResultFacts]
    """Of them those that no rule keeps: not the newest ones, nor those that no answer has followed yet."""

    def chosen(self) -> Sequence[ResultFacts]:
        """What the call is about, whether or not clearing it frees anything."""
        old, too_large = self._by_mode(), self._too_large()
        if not too_large and not looks_at_later(self.policy):
            return old
        chosen = {place_of(result) for result in (*old, *too_large)}
        outdated = superseded(self.live.results, chosen, self.policy)
        chosen |= outdated & {place_of(result) for result in self.free}
        return [result for result in self.ours if place_of(result) in chosen]

    def failed(self) -> list[ResultFacts]:
        """Results that say that their call failed."""
        return [result for result in self.free if result.is_error]

    def _by_mode(self) -> Sequence[ResultFacts]:
        match self.request.mode:
            case MicroMode.AGE:
                return [result for result in self.free if self._is_old(result.at_ms)]
            case MicroMode.TOKENS:
                return self._unprotected()
            case MicroMode.ALL:
                return self.free
            case _:
                assert_never(self.request.mode)

    def _is_old(self, at_ms: int | None) -> bool:
        """A missing time, and one after now, are never old."""
        now_ms = self.request.now_ms if self.request.now_ms is not None else self.live.newest_answer_ms
        if at_ms is None or now_ms is None or at_ms <= 0 or at_ms > now_ms:
            return False
        return now_ms - at_ms > minutes_of(self.request, self.policy) * MINUTE_MS

    def _unprotected(self) -> Sequence[ResultFacts]:
        """What is older than the newest results that together stay within `protect_tokens`."""
        kept = NOTHING
        for number, result in enumerate(reversed(self.ours)):
            kept += result.weight
            if self.live.family.tokens(kept) > self.policy.protect_tokens:
                return self.free[: len(self.ours) - number]
        return ()

    def _too_large(self) -> Sequence[ResultFacts]:
        most, seen = self.policy.max_result_tokens, self.live.newest_answer_seq
        if most <= 0:
            return ()
        return [result for result in self.ours if result.seq < seen and self.live.family.tokens(result.weight) > most]


def results_of(live: Clearable, request: MicroRequest, policy: MicroPolicy) -> Results:
    """The compactable results, and which of them may go. A `keep` of 0 lets even those go that nobody has seen."""
    known = {tool: is_compactable(tool, policy) for tool in {result.tool for result in live.results}}
    ours = [result for result in live.results if known[result.tool] and not result.cleared]
    keep = keep_of(request, policy)
    free = ours[: max(0, len(ours) - keep)]
    if keep > 0:
        free = [result for result in free if result.seq < live.newest_answer_seq]
    return Results(live, request, policy, ours, free)


def place_of(result: ResultFacts) -> Place:
    """Where the result stands."""
    return (result.seq, result.block)
