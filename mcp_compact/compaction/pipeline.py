"""The chain of compaction paths: the only file that knows their order.

Sans-IO: `start` answers with a plan, with what it needs to go on, or with why nothing is done.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcp_compact.compaction.attempt import Attempt, NeedsRecords
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import Policy, levels
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.compaction.session_memory import compact_by_memory
from mcp_compact.compaction.snapshot import Snapshot

SESSION_MEMORY = "session_memory"
REACTIVE = "reactive"
SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Finished:
    """A plan that could be applied, and why earlier paths did not give one."""

    plan: CompactionPlan
    declined: tuple[Declined, ...] = ()


@dataclass(frozen=True, slots=True)
class NothingDone:
    """No path compacted. `status` is what the caller is told."""

    status: str
    declined: tuple[Declined, ...] = ()


def start(attempt: Attempt) -> Finished | NeedsRecords | NothingDone:
    """Try the paths in order. `NeedsRecords` asks for bodies; call again with them."""
    snapshot, request, policy = attempt.snapshot, attempt.request, attempt.policy
    if (held_back := _held_back(snapshot, request, policy)) is not None:
        return held_back
    if snapshot.live_count == 0:
        return NothingDone("nothing_to_compact", (Declined(SESSION_MEMORY, "nothing_to_compact", "no live messages"),))
    declined: list[Declined] = []
    if request.custom_instructions.strip():
        declined.append(Declined(SESSION_MEMORY, "custom_instructions", "instructions need a written summary"))
    else:
        outcome = compact_by_memory(attempt)
        if isinstance(outcome, NeedsRecords):
            return outcome
        if isinstance(outcome, CompactionPlan):
            return Finished(outcome)
        declined.append(outcome)
    declined.append(Declined(REACTIVE, "not_configured", "reactive compaction is not configured"))
    declined.append(Declined(SUMMARY, "not_configured", "no summary writer is configured"))
    return NothingDone(_status(declined), tuple(declined))


def _held_back(snapshot: Snapshot, request: CompactRequest, policy: Policy) -> NothingDone | None:
    """`auto` waits for the threshold and `agent` for the warning level; a person and `force` do not wait."""
    if request.force or request.trigger not in ("auto", "agent"):
        return None
    ladder = levels(snapshot.context_window, policy.compact_at)
    needed = ladder.compact if request.trigger == "auto" else ladder.warning
    tokens = snapshot.live_tokens + snapshot.overhead_tokens
    if tokens >= needed:
        return None
    detail = f"{tokens} tokens of {ladder.window}; trigger `{request.trigger}` waits for {needed}"
    return NothingDone("below_threshold", (Declined("all", "below_threshold", detail),))


def _status(declined: list[Declined]) -> str:
    reasons = [item.reason for item in declined if item.reason != "not_configured"]
    if "nothing_to_compact" in reasons:
        return "nothing_to_compact"
    return "no_progress" if reasons and all(reason == "gain_too_small" for reason in reasons) else "failed"
