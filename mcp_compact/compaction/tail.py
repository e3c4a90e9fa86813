"""Making the kept tail fit: its largest results are cleared, as few as will do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, Window
from mcp_compact.compaction.cuts import last_round_index, total
from mcp_compact.compaction.extract import tail_share
from mcp_compact.compaction.micro_request import matches
from mcp_compact.compaction.plan import Cleared
from mcp_compact.compaction.snapshot import ResultFacts, Snapshot
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import UNITS_PER_TOKEN, Weight

MEMORY_SHARE = 4
"""The memory gets at least a quarter of a threshold."""
UNSEEN_SHARE = 2 / 3
"""Of a target that was asked for: results that no answer has followed yet are cleared before the memory gets less."""
MOST_OF_LEAVING = 2
"""The memory takes at most half of what it stands for."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The kept tail as it will be sent."""

    cleared: tuple[Cleared, ...]
    weight: Weight


def fitted_tail(attempt: Attempt, window: Window) -> Tail:
    """The tail with results cleared where memory and tail would not share the target well.

    Chosen lines of a result hold more of what is needed than the same room filled with the whole of it. So where a
    target was asked for, seen results are cleared until the memory has the share that it makes most of, and those
    that no answer has followed until it has two thirds. Below a threshold, room is left for the work to go on: there
    the memory gets a quarter.
    """
    kept, spare = window.kept, attempt.policy.micro.exclude_tools
    if attempt.request.target_tokens is None:
        least = max(FEWEST_MEMORY_TOKENS, window.target // MEMORY_SHARE)
        return Tail(*clear_largest(attempt.snapshot, kept, window.target - least, spare))
    wanted = _wanted(attempt.snapshot, window, attempt.policy.memory.total_tokens)
    unseen_from = kept[last_round_index(kept)].seq if kept else 0
    seen = [r for r in _results(attempt.snapshot, kept) if r.seq < unseen_from and not matches(r.tool, spare)]
    seen.sort(key=lambda result: (-_size(result), result.seq))
    first, weight = _clear(attempt.snapshot, seen, total(kept), window.target - wanted)
    done = {item.clearing.tool_use_id for item in first}
    rest = [r for r in _results(attempt.snapshot, kept) if r.tool_use_id not in done]
    rest.sort(key=lambda r: (matches(r.tool, spare), r.seq >= unseen_from, -_size(r), r.seq))
    least = max(FEWEST_MEMORY_TOKENS, min(int(window.target * UNSEEN_SHARE), wanted))
    second, weight = _clear(attempt.snapshot, rest, weight, window.target - least)
    return Tail((*first, *second), weight)


def _wanted(snapshot: Snapshot, window: Window, memory_tokens: int) -> int:
    """Tokens that the memory can make more of than the tail."""
    leaving = snapshot.family.tokens(snapshot.live_weight - total(window.kept) + snapshot.service_weight)
    share = 1 - tail_share(snapshot.live_tokens, window.target)
    return min(int(window.target * share), memory_tokens, leaving // MOST_OF_LEAVING)


def gone_results(attempt: Attempt, window: Window, tail: Tail) -> frozenset[ToolUseId]:
    """Calls of the tail whose results are not shown: cleared now or before."""
    shown = {result.tool_use_id for result in attempt.snapshot.results if not result.cleared}
    cleared = {item.clearing.tool_use_id for item in tail.cleared}
    answered = {call for entry in window.kept for call in entry.results}
    return frozenset(call for call in answered if call in cleared or call not in shown)


def clear_largest(
    snapshot: Snapshot, kept: Sequence[Entry], allowed_tokens: int, spare: Sequence[str] = ()
) -> tuple[tuple[Cleared, ...], Weight]:
    """What is cleared so that the tail takes at most `allowed_tokens`, and the tail's weight then.

    The largest results go first; those that no answer has followed yet come late, and last of all those of the
    tools that are to be spared (names and globs).
    """
    family, weight = snapshot.family, total(kept)
    if not kept or family.tokens(weight) <= allowed_tokens:
        return (), weight
    unseen_from = kept[last_round_index(kept)].seq
    candidates = _results(snapshot, kept)
    candidates.sort(
        key=lambda result: (matches(result.tool, spare), result.seq >= unseen_from, -_size(result), result.seq)
    )
    return _clear(snapshot, candidates, weight, allowed_tokens)


def _results(snapshot: Snapshot, kept: Sequence[Entry]) -> list[ResultFacts]:
    seqs = {entry.seq for entry in kept}
    return [result for result in snapshot.results if result.seq in seqs and not result.cleared]


def _clear(
    snapshot: Snapshot, candidates: Iterable[ResultFacts], weight: Weight, allowed_tokens: int
) -> tuple[tuple[Cleared, ...], Weight]:
    """Clear these in their order until so many tokens are left."""
    family = snapshot.family
    cleared: list[Cleared] = []
    for result in candidates:
        if family.tokens(weight) <= allowed_tokens:
            break
        freed = result.weight - result.cleared_weight
        if family.frees(freed):
            place = Clearing(ClearKind.RESULT, result.uuid, result.block, None, result.tool_use_id)
            cleared.append(Cleared(place, freed, result.tool))
            weight -= freed
    return tuple(cleared), weight


def _size(result: ResultFacts) -> int:
    return result.weight.units + result.weight.media * UNITS_PER_TOKEN
