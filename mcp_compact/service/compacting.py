"""Compacting a stored session: read, plan (pure), commit. Every answer says what was done and what was not."""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.in_memory import fingerprint
from mcp_compact.compaction.pipeline import Finished, NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.errors import ServerError
from mcp_compact.ports.hooks import HookDetails
from mcp_compact.ports.store import SessionKey, SessionRow, Stamp
from mcp_compact.service import breaker
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.dry_run import keep_plan
from mcp_compact.service.jobs import (
    CompactCall,
    Job,
    applies_to,
    job_of,
    nothing_done,
    planned,
    read_snapshot,
    room_of_first,
)
from mcp_compact.service.results import CompactResult, UndoResult
from mcp_compact.service.writing import written

SHRINKS_CLIENT = (
    "This client keeps its own history, so nothing that it sends shrank. What shrinks it: its own /compact; "
    "`mcp-compact resume`, a new session with this context; `mcp-compact handoff`, a brief for a fresh one. "
    "What was kept here can be read with get_session_memory and get_messages_after_boundary."
)
WRITE_FIRST = "Without dry_run you are given the prompt and the material for the summary."
APPLY = "Nothing was changed. For an hour apply_plan (profile full) does exactly this; compact_session plans anew."
UNWRITABLE = ("disk_full", "store_read_only")
NOT_KEPT = "Nothing was changed. The plan is shown only, without a plan_id, since it could not be kept:"
SEND_LIVE = "Send what get_messages_after_boundary gives instead of the old messages."


async def compact(deps: Deps, key: SessionKey, call: CompactCall) -> CompactResult:
    """Compact a session, or say why not. Raises CallerError for a bad call or an unknown session.

    An update of its memory that is under way is waited for, for a while.
    """
    late = await deps.extractions.settled(key) if deps.extractions is not None else ""
    result = await _compacted(deps, key, call)
    return replace(result, warnings=(*result.warnings, late)) if late else result


async def _compacted(deps: Deps, key: SessionKey, call: CompactCall) -> CompactResult:
    job = await job_of(deps, key, call)
    snapshot = await read_snapshot(job)
    print_ = fingerprint(snapshot, job.request, job.policy)
    if (refused := await breaker.held(job, snapshot)) is not None:
        return refused
    if not call.force and not call.dry_run and job.row.last_attempt == print_:
        again = Declined("all", "same_attempt", "nothing changed since the last attempt that came to nothing")
        repeated = NothingDone(_last_status(job.row), (again,))
        await breaker.came_to_nothing(job, repeated)
        return nothing_done(job, snapshot, repeated)
    attempt = Attempt(snapshot, job.request, job.policy, await deps.surroundings(key.session_id))
    attempt = replace(attempt, room_tokens=room_of_first(job, attempt))
    outcome, attempt = await planned(job, attempt)
    if isinstance(outcome, NothingDone):
        return await _declined(job, attempt, outcome, print_)
    if call.dry_run:
        return await _dry_run(job, snapshot, outcome)
    return await _carried_out(job, attempt, outcome, print_)


async def _carried_out(job: Job, attempt: Attempt, outcome: Finished | SummaryRequest, print_: str) -> CompactResult:
    """Hooks once, the summary where one is needed, the commit."""
    hooked = await with_hooks(job, attempt)
    if isinstance(hooked, CompactResult):
        return hooked
    again: Finished | SummaryRequest | NothingDone = outcome
    if hooked is not attempt:
        again, hooked = await planned(job, hooked)
    done = await written(job, hooked, again) if isinstance(again, SummaryRequest) else again
    return await ended(job, hooked, done, print_)


async def ended(job: Job, attempt: Attempt, done: Finished | NothingDone | CompactResult, print_: str) -> CompactResult:
    """The plan written; or why there is none, told and counted. `print_` names the attempt as it was begun."""
    if isinstance(done, CompactResult):
        return done
    if isinstance(done, NothingDone):
        return await _declined(job, attempt, done, print_)
    return await committed(job, attempt.snapshot, done)


async def _declined(job: Job, attempt: Attempt, outcome: NothingDone, print_: str) -> CompactResult:
    """Nothing was done: counted, and remembered so that the same attempt is not made again."""
    if not job.call.dry_run and outcome.status != "below_threshold":
        for declined in outcome.declined[:1]:
            await job.deps.store.note(job.key, decline=declined.reason, attempt=print_)
        await breaker.came_to_nothing(job, outcome)
    return nothing_done(job, attempt.snapshot, outcome)


async def with_hooks(job: Job, attempt: Attempt) -> Attempt | CompactResult:
    """The attempt with what the pre and start hooks say; the same one where they say nothing; blocked by one."""
    hooks = job.deps.hooks
    if hooks is None:
        return attempt
    details = HookDetails(
        "pre_compact",
        job.key.session_id,
        job.request.trigger,
        cwd=job.row.cwd,
        custom_instructions=job.call.custom_instructions,
        tokens_before=attempt.snapshot.live_tokens,
    )
    before = await hooks.run(details)
    if before.blocked and not job.call.force:
        blocked = NothingDone("blocked_by_hook", (Declined("all", "blocked_by_hook", before.blocked),))
        return nothing_done(job, attempt.snapshot, blocked, before.warnings)
    begun = await hooks.run(replace(details, event="session_start"))
    lines = "\n".join(filter(None, [job.request.must_keep, before.text]))
    around = replace(attempt.around, warnings=(*before.warnings, *begun.warnings))
    if not before.text and not begun.text and not around.warnings:
        return attempt
    request = replace(attempt.request, must_keep=lines, hook_context=begun.text)
    return replace(attempt, request=request, around=around)


async def committed(job: Job, snapshot: Snapshot, outcome: Finished) -> CompactResult:
    """Write the plan, then let the post hooks look at it."""
    plan = outcome.plan
    uuids = tuple(job.deps.clock.new_uuid() for _ in range(1 + len(plan.service)))
    took_ms = max(0, job.deps.clock.now_ms() - job.started_ms)
    done = await job.deps.store.commit(job.key, plan, Stamp(job.now_ms, uuids, took_ms))
    if done.marker is None:
        reason = Declined(plan.strategy, done.reason, "another compaction or an undo came in between")
        return nothing_done(job, snapshot, NothingDone("failed", (reason,)))
    result = _result(job.row, outcome, status=_done(job.row), boundary_uuid=done.marker.uuid)
    if job.deps.hooks is None:
        return result
    details = HookDetails(
        "post_compact",
        job.key.session_id,
        job.request.trigger,
        cwd=job.row.cwd,
        strategy=plan.strategy,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        summary=plan.service[0].text,
    )
    verdict = await job.deps.hooks.run(details)
    return replace(result, verified=verdict.verified, warnings=(*result.warnings, *verdict.warnings))


def _done(row: SessionRow) -> str:
    return "prepared" if row.owner == "client" else "compacted"


def _last_status(row: SessionRow) -> str:
    return "nothing_to_compact" if row.live_count == 0 else "no_progress"


async def _dry_run(job: Job, snapshot: Snapshot, outcome: Finished | SummaryRequest) -> CompactResult:
    if isinstance(outcome, Finished):
        plan_id, step = await _kept(job, snapshot, outcome)
        return replace(_result(job.row, outcome, status="dry_run", plan_id=plan_id), next=step)
    waits = NothingDone("dry_run", (Declined("summary", "summary_required", "a summary would have to be written"),))
    return replace(nothing_done(job, snapshot, waits), next=WRITE_FIRST)


async def _kept(job: Job, snapshot: Snapshot, outcome: Finished) -> tuple[str, str]:
    """The id of the plan that is kept, and what can be done with it; a plan is shown also where none can be kept."""
    try:
        return await keep_plan(job, snapshot, outcome.plan), APPLY
    except ServerError as error:
        if error.code not in UNWRITABLE:
            raise
        return "", f"{NOT_KEPT} {error.message} {error.hint}"


def _result(
    row: SessionRow, outcome: Finished, *, status: str, boundary_uuid: str = "", plan_id: str = ""
) -> CompactResult:
    plan = outcome.plan
    memory = next((item for item in plan.service if item.kind == "summary"), None)
    return CompactResult(
        session_id=row.key.session_id,
        status=status,
        strategy=plan.strategy,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        target_tokens=plan.target_tokens,
        applies_to=applies_to(row),
        declined=outcome.declined,
        boundary_uuid=boundary_uuid,
        plan_id=plan_id,
        loss=plan.loss,
        spans=plan.spans,
        memory_tokens=family(row).tokens(memory.weight) if memory else 0,
        warnings=plan.warnings,
        writer=outcome.writer,
        next=SHRINKS_CLIENT if row.owner == "client" else SEND_LIVE,
    )


async def undo(deps: Deps, key: SessionKey) -> UndoResult:
    """Take back the last compaction: the former live context, and what was appended since."""
    row = await deps.row(key)
    before = family(row).tokens(row.live_weight)
    committed = await deps.store.undo(key, Stamp(deps.clock.now_ms(), (deps.clock.new_uuid(),)))
    if committed.marker is None:
        return UndoResult(key.session_id, "nothing_to_undo", before, before, row.live_hash, "")
    after = family(row).tokens(committed.live_weight)
    return UndoResult(key.session_id, "undone", before, after, committed.live_hash, committed.marker.uuid)
