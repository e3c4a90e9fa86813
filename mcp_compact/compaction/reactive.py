"""When a prompt was too long: the oldest rounds go until the rest fits, with the memory in their place.

If that is not enough the head is cut with a note only. Where the last round alone is too long and nothing waits for an
answer, it leaves as the newest of the peeled ones. What waits (an open call, the user's newest words) never leaves:
then it is said how much too long it is and which messages are the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mcp_compact.compaction.assembly import assemble, memory_update
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, NeedsRecords, Window, target_of
from mcp_compact.compaction.cuts import calculate_messages_to_keep_index, last_round_index, open_call_index
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import TailLimits
from mcp_compact.compaction.restore import records_to_look_through
from mcp_compact.compaction.session_memory import write_memory
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import fitted_tail, gone_results
from mcp_compact.messages.message import Entry

PATH = "reactive"
MEMORY_SHARE = 4
SHOWN_MESSAGES = 3
UNKNOWN_GAP_PERCENT = 20
"""Where an error names no figure, this much of the context leaves."""
HEAD_CUT = "# Session memory\n\nThe oldest messages were cut without notes: even those did not fit."
NO_LIMIT = 1 << 60
SIZE = ("still_above_target", "nothing_to_compact")
"""Reasons that say that the size of what stays is in the way."""


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
        return _everything(attempt, target, stays)
    peeled = _peeled(attempt, window)
    if isinstance(peeled, Declined) and peeled.reason in SIZE:
        cut = assemble(attempt, _window(snapshot, target, 0), PATH, lambda _: HEAD_CUT)
        return _everything(attempt, target, cut) if isinstance(cut, Declined) else cut[0]
    return _given_up(snapshot, peeled, target) if isinstance(peeled, Declined) else peeled


def _everything(attempt: Attempt, target: int, why: Declined) -> CompactionPlan | NeedsRecords | Declined:
    """All of it leaves, the memory in its place, where nothing waits for an answer; else the largest are named."""
    snapshot = attempt.snapshot
    is_over = snapshot.family.tokens(snapshot.live_weight) > target
    if is_over and snapshot.tail_is_all and not _waits_for_an_answer(snapshot.tail):
        peeled = _peeled(attempt, Window(target, len(snapshot.tail), (), refresh=True))
        if not isinstance(peeled, Declined):
            return peeled
    return _given_up(snapshot, why, target)


def _peeled(attempt: Attempt, window: Window) -> CompactionPlan | NeedsRecords | Declined:
    """What leaves by this window with the memory in its place."""
    bodies = window.bodies(attempt) if attempt.policy.session_memory else None
    if isinstance(bodies, NeedsRecords):
        return bodies
    if (needed := records_to_look_through(attempt, window)) is not None:
        return needed
    texts: list[str] = []
    gone = gone_results(attempt, window, fitted_tail(attempt, window))
    assembled = assemble(attempt, window, PATH, partial(write_memory, attempt, bodies, texts, gone))
    if isinstance(assembled, Declined):
        return assembled
    update = memory_update(attempt.snapshot, window, texts[-1]) if bodies else None
    return replace(assembled[0], memory=update) if update else assembled[0]


def _waits_for_an_answer(messages: Sequence[Entry]) -> bool:
    """Is a call open, or are the newest words the user's?"""
    if open_call_index(messages) is not None:
        return True
    last = messages[last_round_index(messages) :]
    return not last or any(entry.role == "user" and entry.text_holding for entry in last)


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
    if declined.reason not in SIZE or not is_over:
        return declined
    largest = sorted(snapshot.tail, key=lambda e: -snapshot.family.tokens(e.weight))[:SHOWN_MESSAGES]
    named = ", ".join(f"{e.uuid} ({e.role}, {snapshot.family.tokens(e.weight)} tokens)" for e in largest)
    over = max(1, snapshot.family.tokens(snapshot.live_weight) - target)
    return Declined(PATH, "too_long", f"{over} tokens too many and no more can leave; the largest messages: {named}")
