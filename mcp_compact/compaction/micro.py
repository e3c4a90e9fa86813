"""Micro-compaction: old tool results and large media leave the live context. No model is called.

The archive keeps what leaves. Three modes say which results are old:

- `age`: those older than an hour. After that time the provider's prompt cache is cold, so even a little is worth it.
- `tokens`: those beyond the newest 40,000 tokens of results; only where the context has grown to a trigger,
  and only if it frees 20,000 tokens, since clearing makes the provider read everything after it anew.
- `all`: every one.

In each mode the newest results stay, and so does what no answer has followed yet (a `keep` of 0 takes both).
Large results, results that a later one stands for, and inputs come to these where the policy says so.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TypeAlias

from mcp_compact.compaction.micro_request import (
    Clearable,
    MicroMode,
    MicroRequest,
    is_compactable,
    keep_of,
    minutes_of,
)
from mcp_compact.compaction.old_results import MINUTE_MS, Place, Results, place_of, results_of
from mcp_compact.compaction.plan import Cleared, ClearingPlan, Declined
from mcp_compact.compaction.policy import MicroPolicy, levels
from mcp_compact.compaction.snapshot import MediaFacts, ResultFacts
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import Family, Weight, total_weight

__all__ = ["MINUTE_MS", "Clearable", "MicroMode", "MicroRequest", "is_compactable", "plan_clearing"]

PATH = "microcompact"
_Placed: TypeAlias = tuple[Place, Cleared]


def plan_clearing(live: Clearable, request: MicroRequest, policy: MicroPolicy) -> ClearingPlan:
    """What would be cleared; where nothing is, an empty plan and why."""
    known = results_of(live, request, policy)
    chosen = known.chosen()
    results = [_placed(result, freed) for result in chosen if live.family.frees(freed := _gain(result))]
    inputs = _inputs(live.family, policy, chosen, known)
    media = _large_media(live, request, policy, {place for place, _ in results})
    items = _in_order([*results, *inputs, *media])
    declined = _declined(live, request, policy, items)
    if declined is not None:
        items = _in_order(_large_media(live, request, policy, ())) if request.all_media else ()
    before = live.family.tokens(live.live_weight)
    return ClearingPlan(
        base=live.base,
        cleared=items,
        tokens_before=before,
        tokens_after=before - _freed(live, items),
        by_tool=_by_tool(items, live.family),
        first_changed=items[0].clearing.uuid if items else None,
        declined=declined,
    )


def _in_order(placed: Iterable[_Placed]) -> tuple[Cleared, ...]:
    return tuple(item for _, item in sorted(placed, key=lambda pair: pair[0]))


def _freed(live: Clearable, items: Sequence[Cleared]) -> int:
    """Tokens that the live context loses."""
    freed = total_weight([item.freed for item in items])
    return live.family.tokens(live.live_weight) - live.family.tokens(live.live_weight - freed)


def _gain(result: ResultFacts) -> Weight:
    return result.weight - result.cleared_weight


def _placed(result: ResultFacts, freed: Weight) -> _Placed:
    place = Clearing(ClearKind.RESULT, result.uuid, result.block, None, result.tool_use_id)
    return place_of(result), Cleared(place, freed, result.tool)


# ---------------------------------------------------------------- inputs and media


def _inputs(family: Family, policy: MicroPolicy, chosen: Sequence[ResultFacts], known: Results) -> list[_Placed]:
    """Inputs of the chosen calls and of failed ones, each once, never in a message id that holds thinking."""
    calls = list(chosen) if policy.clear_tool_inputs else []
    if policy.clear_failed_inputs:
        calls += known.failed()
    found: dict[Place, Cleared] = {}
    for result in calls:
        call = result.call
        if call is None or call.holds_thinking or call.input_cleared:
            continue
        freed = Weight(units=call.input.freed_units)
        if family.frees(freed):
            place = Clearing(ClearKind.INPUT, call.uuid, call.block, None, result.tool_use_id)
            found[call.seq, call.block] = Cleared(place, freed, f"{result.tool} input")
    return list(found.items())


def _large_media(live: Clearable, request: MicroRequest, policy: MicroPolicy, gone: Container[Place]) -> list[_Placed]:
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
    return Cleared(place, Weight(units=-media.mark_units, media=media.tokens), media.kind)


# ---------------------------------------------------------------- what is told


def _declined(live: Clearable, request: MicroRequest, policy: MicroPolicy, items: Sequence[Cleared]) -> Declined | None:
    """Why nothing is done, with the figures; None where something is."""
    match request.mode:
        case MicroMode.TOKENS:
            return _below_trigger(live, request, policy) or _too_little(_freed(live, items), policy)
        case MicroMode.AGE if not items:
            detail = (
                f"no large result but the newest {keep_of(request, policy)} is older than "
                f"{minutes_of(request, policy)} minutes"
            )
            return Declined(PATH, "nothing_old_enough", detail)
        case MicroMode.ALL if not items:
            detail = f"nothing but the newest {keep_of(request, policy)} results could be cleared with a gain"
            return Declined(PATH, "nothing_to_clear", detail)
        case _:
            return None


def _below_trigger(live: Clearable, request: MicroRequest, policy: MicroPolicy) -> Declined | None:
    trigger = request.trigger_tokens
    if trigger is None:
        trigger = policy.trigger_tokens or levels(live.context_window).warning
    tokens = request.context_tokens
    if tokens is None:
        tokens = live.family.tokens(live.live_weight) + live.overhead_tokens
    if tokens >= trigger:
        return None
    return Declined(PATH, "below_trigger", f"{tokens} tokens are in the context, {trigger} are the trigger")


def _too_little(freed: int, policy: MicroPolicy) -> Declined | None:
    if freed >= max(1, policy.clear_at_least):
        return None
    detail = f"{freed} tokens would be freed, {policy.clear_at_least} are the least that is worth the prompt cache"
    return Declined(PATH, "saves_too_little", detail)


def _by_tool(items: Sequence[Cleared], family: Family) -> tuple[tuple[str, int, int], ...]:
    freed: dict[str, list[Weight]] = {}
    for item in items:
        freed.setdefault(item.tool, []).append(item.freed)
    return tuple((tool, len(each), family.tokens(total_weight(each))) for tool, each in sorted(freed.items()))
