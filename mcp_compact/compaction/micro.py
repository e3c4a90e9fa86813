"""Micro-compaction: old tool results and large media leave the live context. No model is called.

The archive keeps what leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from mcp_compact.compaction.plan import Cleared, ClearingPlan
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.snapshot import Base, MediaFacts, ResultFacts
from mcp_compact.messages.blocks import CLEARED_MEDIA
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, Family, Weight, estimate_units

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class MicroRequest:
    """One call. `now_ms` None measures age against the newest assistant message."""

    now_ms: int | None = None
    all_media: bool = False
    """Clear every image and document, whatever its size (the newest one aside)."""
    keep: int | None = None
    """So many newest compactable results stay; None takes the policy's number, 0 is obeyed."""
    everything: bool = False
    """Clear whatever the age."""


@dataclass(frozen=True, slots=True)
class Clearable:
    """What of a live context could be cleared, old to new."""

    base: Base
    family: Family
    live_weight: Weight
    results: Sequence[ResultFacts]
    media: Sequence[MediaFacts]
    newest_answer_ms: int | None
    """Time of the newest assistant message."""
    newest_answer_seq: int
    """Its seq: what follows it has not been seen by the model yet."""


def plan_clearing(live: Clearable, request: MicroRequest, policy: MicroPolicy) -> ClearingPlan:
    """What would be cleared; an empty plan where nothing would."""
    results = _old_results(live, request, policy)
    media = _large_media(live, request, policy, {place for place, _ in results})
    items = tuple(item for _, item in sorted([*results, *media], key=lambda placed: placed[0]))
    freed = sum((item.freed for item in items), NOTHING)
    before = live.family.tokens(live.live_weight)
    return ClearingPlan(
        base=live.base,
        cleared=items,
        tokens_before=before,
        tokens_after=live.family.tokens(live.live_weight - freed),
        by_tool=_by_tool(items, live.family),
        first_changed=items[0].clearing.uuid if items else None,
    )


def is_compactable(tool: str, policy: MicroPolicy) -> bool:
    """May results of this tool be cleared? Names and globs, exclusions first."""
    if any(fnmatchcase(tool, pattern) for pattern in policy.exclude_tools):
        return False
    return any(fnmatchcase(tool, pattern) for pattern in policy.tools)


_Place: TypeAlias = tuple[int, int]
"""Seq of the record and number of the block: the order of the conversation."""


def _old_results(live: Clearable, request: MicroRequest, policy: MicroPolicy) -> list[tuple[_Place, Cleared]]:
    ours = [result for result in live.results if is_compactable(result.tool, policy)]
    keep = max(1, policy.keep_recent) if request.keep is None else max(0, request.keep)
    old = ours[: max(0, len(ours) - keep)]
    now = request.now_ms if request.now_ms is not None else live.newest_answer_ms
    return [
        ((result.seq, result.block), _cleared_result(result))
        for result in old
        if not result.cleared
        and live.family.frees(result.weight - result.cleared_weight)
        and (request.everything or _is_old(result.at_ms, now, policy.older_than_minutes))
    ]


def _is_old(at_ms: int | None, now_ms: int | None, minutes: int) -> bool:
    """A missing time, and one after now, are never old."""
    if at_ms is None or now_ms is None or at_ms <= 0 or at_ms > now_ms:
        return False
    return now_ms - at_ms > minutes * MINUTE_MS


def _cleared_result(result: ResultFacts) -> Cleared:
    place = Clearing(ClearKind.RESULT, result.uuid, result.block, None, result.tool_use_id)
    return Cleared(place, result.weight - result.cleared_weight, result.tool)


def _large_media(
    live: Clearable, request: MicroRequest, policy: MicroPolicy, gone: Container[_Place]
) -> list[tuple[_Place, Cleared]]:
    """Large images and documents, except the newest one, what no answer has followed yet, and what results take along.

    On request even an image goes that is smaller than its mark: it may be one that the provider refuses.
    """
    placed = [((media.seq, media.block), _cleared_media(media), media.tokens) for media in live.media[:-1]]
    return [
        (place, item)
        for place, item, tokens in placed
        if place[0] < live.newest_answer_seq
        and place not in gone
        and (request.all_media or (tokens >= policy.media_tokens and live.family.frees(item.freed)))
    ]


def _cleared_media(media: MediaFacts) -> Cleared:
    place = Clearing(ClearKind.MEDIA, media.uuid, media.block, media.part, media.tool_use_id)
    mark = estimate_units(CLEARED_MEDIA.get(media.kind, CLEARED_MEDIA["image"]))
    return Cleared(place, Weight(units=-mark, media=media.tokens), media.kind)


def _by_tool(items: Sequence[Cleared], family: Family) -> tuple[tuple[str, int, int], ...]:
    count: Counter[str] = Counter()
    freed: dict[str, Weight] = {}
    for item in items:
        count[item.tool] += 1
        freed[item.tool] = freed.get(item.tool, NOTHING) + item.freed
    return tuple((tool, number, family.tokens(freed[tool])) for tool, number in sorted(count.items()))
