"""Carrying out the plan that a dry run answered: exactly it, or the answer what has changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.pipeline import Finished, NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.errors import CallerError
from mcp_compact.messages.markers import Marker, MarkerKind
from mcp_compact.ports.store import Pending, SessionKey
from mcp_compact.service.compacting import committed, with_hooks
from mcp_compact.service.deps import Deps
from mcp_compact.service.dry_run import PLAN, KeptPlan, digest_of, kept_plan, made_of
from mcp_compact.service.jobs import CompactCall, Job, job_of, nothing_done, planned, read_snapshot
from mcp_compact.service.results import CompactResult

PATH = "plan"
PLAN_ANEW = "Call compact_session with dry_run=true for a plan of the context as it is now."
HOOK_LINES = "hooks add lines, which no dry run shows (hooks do not run for one): call compact_session without dry_run"
KINDS = {
    MarkerKind.COMPACT: "a compaction",
    MarkerKind.MICRO: "a clearing of tool results",
    MarkerKind.SNIP: "a snip",
    MarkerKind.UNDO: "an undo",
}


async def apply_plan(deps: Deps, key: SessionKey, plan_id: str) -> CompactResult:
    """Carry out a plan; `failed` with the reason `plan_changed`, and what changed, where it cannot be exactly it.

    What was appended since follows it. Raises CallerError: `unknown_session`, `unknown_plan`, `plan_expired`.
    """
    await deps.row(key)
    pending = await _pending(deps, key, plan_id.strip())
    kept = kept_plan(pending.request)
    job = await _job(deps, key, kept)
    snapshot = await read_snapshot(job, pending.base.last_seq)
    snapshot = replace(snapshot, overhead_tokens=kept.overhead_tokens)
    changed = await _changes(job, kept, pending, snapshot)
    if changed:
        return _void(job, snapshot, changed)
    attempt = Attempt(snapshot, kept.request, job.policy, await deps.surroundings(key.session_id))
    outcome, attempt = await planned(job, attempt)
    if not isinstance(outcome, Finished) or digest_of(outcome.plan) != kept.digest:
        return _void(job, snapshot, ("the plan itself: instructions, pins, tools, or this program",))
    return replace(await _carried_out(job, attempt, outcome), plan_id=pending.compaction_id)


async def _pending(deps: Deps, key: SessionKey, plan_id: str) -> Pending:
    pending = await deps.store.pending(key.namespace, plan_id) if plan_id.startswith(PLAN) else None
    if pending is None:
        raise CallerError("unknown_plan", "There is no plan of this id.", PLAN_ANEW)
    if pending.key != key:
        raise CallerError(
            "unknown_plan", "The plan is one of another session.", "Pass the session_id of the dry run's answer."
        )
    if deps.clock.now_ms() > pending.expires_ms:
        raise CallerError("plan_expired", "The plan is older than an hour.", PLAN_ANEW)
    return pending


async def _job(deps: Deps, key: SessionKey, kept: KeptPlan) -> Job:
    """The call as it was made, on the session as it is now."""
    asked = kept.request
    call = CompactCall(asked.trigger, target_tokens=asked.target_tokens, force=asked.force, keep_tail=asked.keep_tail)
    job = await job_of(deps, key, call)
    return replace(
        job,
        request=asked,
        policy=replace(job.policy, summaries=kept.summaries),
        row=replace(job.row, overhead_tokens=kept.overhead_tokens),
    )


async def _changes(job: Job, kept: KeptPlan, pending: Pending, snapshot: Snapshot) -> Sequence[str]:
    """What of all that the plan was made of is not as it was, in words."""
    since = [marker for marker in await job.deps.store.markers(job.key) if marker.seq > pending.base.last_seq]
    if since:
        return [_came(since)]
    now = made_of(job, snapshot)
    return [name for name, value in kept.made_of.items() if now.get(name) != value]


def _came(markers: Sequence[Marker]) -> str:
    counts = Counter(KINDS[marker.kind] for marker in markers)
    return "the live context, by " + ", ".join(
        name if number == 1 else f"{name} ({number} times)" for name, number in counts.items()
    )


async def _carried_out(job: Job, attempt: Attempt, outcome: Finished) -> CompactResult:
    """Hooks once, then the commit. Hooks that add lines change the plan, so that nothing is written."""
    hooked = await with_hooks(job, attempt)
    if isinstance(hooked, CompactResult):
        return hooked
    if hooked.request != attempt.request:
        return _void(job, attempt.snapshot, (HOOK_LINES,))
    plan = replace(outcome.plan, warnings=(*hooked.around.warnings, *outcome.plan.warnings))
    result = await committed(job, attempt.snapshot, replace(outcome, plan=plan))
    if any(declined.reason == "base_changed" for declined in result.declined):
        return _void(job, attempt.snapshot, ("the live context, at this very moment",))
    return result


def _void(job: Job, snapshot: Snapshot, changed: Sequence[str]) -> CompactResult:
    reason = Declined(PATH, "plan_changed", f"changed since the dry run: {'; '.join(changed)}")
    return replace(nothing_done(job, snapshot, NothingDone("failed", (reason,))), next=PLAN_ANEW)
