"""When a prompt was too long: the oldest rounds go until the rest fits, with the memory in their place.

If that is not enough the head is cut with a note only; if even the last round is too long, it is
said how much too long and which messages are the largest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mcp_compact.compaction.assembly import assemble, memory_update
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, NeedsRecords, Window, target_of
from mcp_compact.compaction.cuts import calculate_messages_to_keep_index
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import TailLimits
from mcp_compact.compaction.restore import records_to_look_through
from mcp_compact.compaction.session_memory import write_memory
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import fitted_tail, gone_results

PATH = "reactive"
MEMORY_SHARE = 4
SHOWN_MESSAGES = 3
UNKNOWN_GAP_PERCENT = 20
"""Where an error names no figure, this much of the context leaves."""
HEAD_CUT = "# Session memory\n\nThe oldest messages were cut without notes: even those did not fit."
NO_LIMIT = 1 << 60


def target_after(overrun: Overrun, snapshot: Snapshot) -> int:
    """Tokens of live messages, by our count, that will fit after this error.

    The provider's own figures set the scale: it may count more than we do.
    """
    ours = snapshot.live_tokens + snapshot.overhead_tokens
    if overrun.actual and overrun.limit and overrun.over:
        return ours * overrun.limit // overrun.actual - snapshot.overhead_tokens
    if overrun.limit and overrun.limit < ours:
        return overrun.limit - snapshot.overhead_tokens
    return snapshot.live_tokens * (100 - UNKNOWN_GAP_PERCENT) // 100


def compact_reactively(attempt: Attempt) -> CompactionPlan | NeedsRecords | Declined:
    """Peel, then cut, then give up with figures."""
    snapshot = attempt.snapshot
    target = _target(attempt)
    if target < FEWEST_MEMORY_TOKENS:
        return Declined(PATH, "no_room", f"{snapshot.overhead_tokens} tokens of overhead leave {target} for messages")
    window = _window(snapshot, target, target - max(FEWEST_MEMORY_TOKENS, target // MEMORY_SHARE))
    if window.index == 0 and snapshot.tail_is_all:
        stays = Declined(PATH, "nothing_to_compact", "every live message belongs to the last round, or fits")
        return _given_up(snapshot, stays, target)
    bodies = window.bodies(attempt) if attempt.policy.session_memory else None
    if isinstance(bodies, NeedsRecords):
        return bodies
    if (needed := records_to_look_through(attempt, window)) is not None:
        return needed
    texts: list[str] = []
    gone = gone_results(attempt, window, fitted_tail(attempt, window))
    assembled = assemble(attempt, window, PATH, partial(write_memory, attempt, bodies, texts, gone))
    if isinstance(assembled, Declined) and assembled.reason == "still_above_target":
        assembled = assemble(attempt, _window(snapshot, target, 0), PATH, lambda _: HEAD_CUT)
        texts = []
    if isinstance(assembled, Declined):
        return _given_up(snapshot, assembled, target)
    plan, _ = assembled
    return replace(plan, memory=memory_update(snapshot, window, texts[-1])) if texts and bodies else plan


def _target(attempt: Attempt) -> int:
    """As asked, else by the provider's error where there was one, else below the threshold."""
    asked = attempt.request
    if asked.target_tokens is None and asked.trigger == "reactive":
        return target_after(asked.overrun or Overrun(), attempt.snapshot)
    return target_of(attempt.snapshot, asked, attempt.policy)


def _window(snapshot: Snapshot, target: int, most_tokens: int) -> Window:
    """As many of the newest rounds as fit."""
    limits = TailLimits(NO_LIMIT, 0, most_tokens, capped=True)
    index = calculate_messages_to_keep_index(snapshot.tail, None, limits, snapshot.family)
    return Window(target, index, snapshot.tail[index:], refresh=True)


def _given_up(snapshot: Snapshot, declined: Declined, target: int) -> Declined:
    """With figures, where it is the size that stands in the way."""
    is_over = snapshot.family.tokens(snapshot.live_weight) > target
    if declined.reason not in ("still_above_target", "nothing_to_compact") or not is_over:
        return declined
    largest = sorted(snapshot.tail, key=lambda e: -snapshot.family.tokens(e.weight))[:SHOWN_MESSAGES]
    named = ", ".join(f"{e.uuid} ({e.role}, {snapshot.family.tokens(e.weight)} tokens)" for e in largest)
    over = max(1, snapshot.family.tokens(snapshot.live_weight) - target)
    return Declined(PATH, "too_long", f"{over} tokens too many and no more can leave; the largest messages: {named}")
