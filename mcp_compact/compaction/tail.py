"""Making the kept tail fit: its largest results are cleared, as few as will do."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_compact.compaction.cuts import last_round_index, total
from mcp_compact.compaction.micro_request import matches
from mcp_compact.compaction.plan import Cleared
from mcp_compact.compaction.snapshot import ResultFacts, Snapshot
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import UNITS_PER_TOKEN, Weight


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
    seqs, unseen_from = {entry.seq for entry in kept}, kept[last_round_index(kept)].seq
    candidates = [result for result in snapshot.results if result.seq in seqs and not result.cleared]
    candidates.sort(
        key=lambda result: (matches(result.tool, spare), result.seq >= unseen_from, -_size(result), result.seq)
    )
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
