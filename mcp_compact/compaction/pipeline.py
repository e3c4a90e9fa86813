"""The chain of compaction paths: the only file that knows their order.

Sans-IO: `start` answers with a plan, with what it needs to go on, or with why nothing is done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp_compact.compaction.attempt import Attempt, NeedsRecords
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import Policy, levels
from mcp_compact.compaction.reactive import compact_reactively
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.compaction.session_memory import compact_by_memory
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.summary import SummaryRequest, compact_by_summary

SESSION_MEMORY = "session_memory"
REACTIVE = "reactive"
SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Finished:
    """A plan that could be applied, and why earlier paths did not give one."""

    plan: CompactionPlan
    declined: tuple[Declined, ...] = ()
    writer: str = ""
    """Who wrote the summary, where one was written."""


@dataclass(frozen=True, slots=True)
class NothingDone:
    """No path compacted. `status` is what the caller is told."""

    status: str
    declined: tuple[Declined, ...] = ()


def start(attempt: Attempt) -> Finished | NeedsRecords | SummaryRequest | NothingDone:
    """Try the paths in order.

    `NeedsRecords` asks for bodies, `SummaryRequest` for a summary: call again with them. A written
    summary is asked for only where `attempt.policy.summaries` says that there is a writer.
    """
    if (held_back := _held_back(attempt.snapshot, attempt.request, attempt.policy)) is not None:
        return held_back
    if attempt.snapshot.live_count == 0:
        return NothingDone("nothing_to_compact", (Declined(SESSION_MEMORY, "nothing_to_compact", "no live messages"),))
    declined: list[Declined] = []
    for path in (_by_memory, _reactively, _by_summary):
        outcome = path(attempt)
        if isinstance(outcome, CompactionPlan):
            return Finished(outcome, tuple(declined))
        if isinstance(outcome, SummaryRequest):
            return replace(outcome, declined=tuple(declined))
        if not isinstance(outcome, Declined):
            return outcome
        declined.append(outcome)
    return NothingDone(_status(declined), tuple(declined))


def _by_memory(attempt: Attempt) -> CompactionPlan | NeedsRecords | Declined:
    if attempt.answer is not None:
        return Declined(SESSION_MEMORY, "summary_given", "a written summary was handed in")
    if attempt.request.trigger == "reactive":
        return Declined(SESSION_MEMORY, "reactive", "the prompt was too long: the oldest rounds are peeled off instead")
    if attempt.request.custom_instructions.strip():
        return Declined(SESSION_MEMORY, "custom_instructions", "instructions need a written summary")
    return compact_by_memory(attempt)


def _reactively(attempt: Attempt) -> CompactionPlan | NeedsRecords | Declined:
    asked = attempt.request.trigger == "reactive" or attempt.policy.reactive_only
    if not asked or attempt.answer is not None:
        return Declined(REACTIVE, "not_configured", "this path is for prompts that were too long")
    return compact_reactively(attempt)


def _by_summary(attempt: Attempt) -> CompactionPlan | NeedsRecords | SummaryRequest | Declined:
    if not attempt.policy.summaries:
        return Declined(SUMMARY, "not_configured", "no summary writer is configured")
    return compact_by_summary(attempt)


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
    if "too_long" in reasons:
        return "failed"
    if "nothing_to_compact" in reasons:
        return "nothing_to_compact"
    return "no_progress" if reasons and all(reason == "gain_too_small" for reason in reasons) else "failed"
