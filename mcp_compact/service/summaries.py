"""Summaries whose answer comes with another call: the calling agent's, and that of the client's model.

A pending compaction is stored as its request and its base only. The same request on the same base makes
the same prompt and, with the summary, the same plan, also after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.in_memory import fingerprint
from mcp_compact.compaction.pipeline import Finished, NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import Pending, SessionKey
from mcp_compact.ports.summarizer import Summarizer
from mcp_compact.service import breaker
from mcp_compact.service.asking import Waiting, material_page, waiting_of
from mcp_compact.service.compacting import committed, ended
from mcp_compact.service.deps import Deps
from mcp_compact.service.dry_run import PLAN
from mcp_compact.service.jobs import SAMPLING, CompactCall, Job, job_of, nothing_done, planned, read_snapshot
from mcp_compact.service.results import CompactResult
from mcp_compact.service.writing import written

MAX_SUMMARY_CHARS = 400_000
TOO_MUCH = ("gain_too_small", "still_above_target", "too_large")
"""Reasons that say that a shorter summary would do."""


async def submit_summary(deps: Deps, namespace: str, compaction_id: str, summary: str) -> CompactResult:
    """Finish a compaction with its summary.

    Raises CallerError `unknown_compaction`, `compaction_used`, `compaction_expired` or `too_long`. A summary that
    is refused leaves everything as it was, and another one may be handed in.
    """
    if len(summary) > MAX_SUMMARY_CHARS:
        raise CallerError("too_long", f"The summary exceeds {MAX_SUMMARY_CHARS} characters.", "Shorten it.")
    pending = await usable_pending(deps, namespace, compaction_id)
    job, attempt = await resumed(deps, pending)
    if attempt.snapshot.base.marker_seq != pending.base.marker_seq:
        return _base_changed(job, attempt)
    outcome, attempt = await planned(job, replace(attempt, answer=SummaryAnswer(summary)))
    if isinstance(outcome, SummaryRequest):
        raise CallerError("no_summary", "The summary was not taken.", "Call compact_session again.")
    if isinstance(outcome, NothingDone):
        await breaker.came_to_nothing(job, outcome)
        refused = nothing_done(job, attempt.snapshot, replace(outcome, status="failed"))
        return replace(refused, compaction_id=compaction_id, next=_write_again(refused.declined))
    if not await deps.store.use_pending(namespace, compaction_id, deps.clock.now_ms()):
        raise _used()
    return await committed(job, attempt.snapshot, Finished(outcome.plan, outcome.declined, "agent"))


async def sampled(deps: Deps, namespace: str, compaction_id: str, call: CompactCall) -> CompactResult:
    """Go on with a compaction that the client's model was asked for; `call` is made again and has its answer.

    An answer that is refused or came too late is followed by the writers after it. Hooks do not run again.
    Raises CallerError as `submit_summary` does.
    """
    pending = await usable_pending(deps, namespace, compaction_id)
    if not await deps.store.use_pending(namespace, compaction_id, deps.clock.now_ms()):
        raise _used()
    waiting, begun = waiting_of(pending.request), await job_of(deps, pending.key, call)
    # The memory did not suffice when the model was asked; what it wrote counts, whatever the memory holds by now.
    policy = replace(begun.policy, sm_compact=False)
    job = replace(begun, request=waiting.request, policy=policy, started_ms=pending.created_ms)
    snapshot = await read_snapshot(begun, pending.base.last_seq)
    around = replace(await deps.surroundings(pending.key.session_id), warnings=waiting.warnings)
    attempt = Attempt(snapshot, waiting.request, policy, around)
    asked, attempt = await planned(job, attempt)
    if snapshot.base.marker_seq != pending.base.marker_seq or not isinstance(asked, SummaryRequest):
        return _base_changed(job, attempt)
    late = deps.clock.now_ms() - pending.created_ms > waiting.within_s * 1000
    declined = (*waiting.declined, _too_late(waiting)) if late else waiting.declined
    job = replace(job, writers=_from_sampling(job, late=late))
    done = await written(job, attempt, replace(asked, declined=declined))
    return await ended(job, attempt, done, fingerprint(snapshot, begun.request, begun.policy))


def _from_sampling(job: Job, *, late: bool) -> dict[str, Summarizer | None]:
    """The client's model and the writers after it; those after it alone where its answer does not count."""
    names = list(dropwhile(lambda name: name != SAMPLING, job.writers))
    return {name: job.writers[name] for name in (names[1:] if late else names)}


def _too_late(waiting: Waiting) -> Declined:
    return Declined("summary", "timeout", f"sampling: the client gave no summary within {waiting.within_s:g} s")


async def material(deps: Deps, key: SessionKey, cursor: str) -> CompactResult:
    """The next part of a pending compaction's material. Raises CallerError for a cursor of another session."""
    compaction_id, _, at = cursor.rpartition(":")
    pending = await usable_pending(deps, key.namespace, compaction_id)
    if pending.key != key or not at.isdigit():
        raise CallerError("bad_cursor", "The cursor is not one of this session.", "Call compact_session without it.")
    job, attempt = await resumed(deps, pending)
    outcome, attempt = await planned(job, attempt)
    if not isinstance(outcome, SummaryRequest):
        return _base_changed(job, attempt)
    return material_page(job, attempt, outcome, compaction_id, int(at))


async def usable_pending(deps: Deps, namespace: str, compaction_id: str) -> Pending:
    """The pending compaction of this id; CallerError where it cannot be finished."""
    asked = compaction_id.strip()
    pending = None if asked.startswith(PLAN) else await deps.store.pending(namespace, asked)
    if pending is None:
        raise CallerError(
            "unknown_compaction",
            "No compaction waits under this id.",
            "Call compact_session; it answers a compaction_id where a summary is needed.",
        )
    if pending.used:
        raise _used()
    if deps.clock.now_ms() > pending.expires_ms:
        raise CallerError("compaction_expired", "The compaction is older than an hour.", "Call compact_session again.")
    return pending


def _write_again(declined: Sequence[Declined]) -> str:
    """What to do with a summary that was not taken."""
    too_much = any(item.reason in TOO_MUCH for item in declined[-1:])
    return f"Write it {'much shorter' if too_much else 'anew'} and call submit_summary again with this compaction_id."


def _used() -> CallerError:
    return CallerError("compaction_used", "This summary was handed in already.", "Call compact_session for another.")


async def resumed(deps: Deps, pending: Pending) -> tuple[Job, Attempt]:
    """The attempt as it was when the summary was asked for."""
    waiting = waiting_of(pending.request)
    request = waiting.request
    call = CompactCall(
        trigger=request.trigger,
        custom_instructions=request.custom_instructions,
        target_tokens=request.target_tokens,
        force=True,
        keep_tail=request.keep_tail,
        agent_writes=True,
    )
    job = replace(await job_of(deps, pending.key, call), request=request)
    job = replace(job, policy=replace(job.policy, summaries=True))
    snapshot = await read_snapshot(job, pending.base.last_seq)
    around = await deps.surroundings(pending.key.session_id)
    return job, Attempt(snapshot, request, job.policy, around, room_tokens=waiting.room_tokens)


def _base_changed(job: Job, attempt: Attempt) -> CompactResult:
    reason = Declined("summary", "base_changed", "another compaction or an undo came in between")
    return nothing_done(job, attempt.snapshot, NothingDone("failed", (reason,)))
