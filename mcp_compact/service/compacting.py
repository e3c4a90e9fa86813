"""Compacting a stored session: read, plan (pure), commit. Every answer says what was done and what was not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anyio import to_thread

from mcp_compact.compaction.attempt import Attempt, NeedsRecords, target_of
from mcp_compact.compaction.in_memory import fingerprint
from mcp_compact.compaction.micro import MicroRequest, plan_clearing
from mcp_compact.compaction.pipeline import Finished, NothingDone, start
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import Policy, tail_limits
from mcp_compact.compaction.request import CompactRequest, Loaded
from mcp_compact.compaction.snapshot import Base, Reach, Snapshot
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.ports.store import Committed, SessionKey, SessionRow, Stamp
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.results import CompactResult, MicroResult, UndoResult

TRIGGERS = ("agent", "manual", "auto", "reactive")
SHRINKS_CLIENT = (
    "This client keeps its own history, so nothing that it sends shrank. Its own /compact shrinks it; "
    "what was kept here can be read with get_session_memory and get_messages_after_boundary."
)
SEND_LIVE = "Send what get_messages_after_boundary gives instead of the old messages."


@dataclass(frozen=True, slots=True)
class CompactCall:
    """One call of compact_session. `now_ms` None takes the clock's."""

    trigger: str = "agent"
    custom_instructions: str = ""
    target_tokens: int | None = None
    force: bool = False
    dry_run: bool = False
    now_ms: int | None = None


async def compact(deps: Deps, key: SessionKey, call: CompactCall) -> CompactResult:
    """Compact a session, or say why not. Raises CallerError for a bad call or an unknown session."""
    request = _request(call)
    row = await deps.row(key)
    policy = deps.settings.policy
    snapshot = await _snapshot(deps, key, row, request, policy)
    print_ = fingerprint(snapshot, request, policy)
    if not call.force and not call.dry_run and row.last_attempt == print_:
        again = Declined("all", "same_attempt", "nothing changed since the last attempt that came to nothing")
        return _nothing(row, snapshot, NothingDone(_last_status(row), (again,)), target_of(snapshot, request, policy))
    outcome = await _outcome(deps, key, snapshot, request, policy)
    if isinstance(outcome, NothingDone):
        if not call.dry_run and outcome.status != "below_threshold":
            for declined in outcome.declined[:1]:
                await deps.store.note(key, decline=declined.reason, attempt=print_)
        return _nothing(row, snapshot, outcome, target_of(snapshot, request, policy))
    if call.dry_run:
        return _result(row, outcome, status="dry_run", plan_id=print_)
    committed = await deps.store.commit(key, outcome.plan, _stamp(deps, outcome.plan, call.now_ms))
    if committed.marker is None:
        return _changed(row, snapshot, committed, outcome.plan)
    return _result(row, outcome, status=_done(row), boundary_uuid=committed.marker.uuid)


def _request(call: CompactCall) -> CompactRequest:
    if call.trigger not in TRIGGERS:
        raise CallerError(
            "bad_trigger", f"trigger {call.trigger[:40]!r} is unknown.", f"Use one of {', '.join(TRIGGERS)}."
        )
    if call.target_tokens is not None and call.target_tokens < 1:
        raise CallerError("bad_target", "target_tokens must be positive.", "Leave it out for the threshold.")
    return CompactRequest(call.trigger, call.custom_instructions, call.target_tokens, call.force)


async def _snapshot(deps: Deps, key: SessionKey, row: SessionRow, request: CompactRequest, policy: Policy) -> Snapshot:
    kind = family(row)
    probe = Snapshot(
        base=Base(row.last_seq, row.marker_seq, row.live_hash), family=kind, tail=(), tail_is_all=False,
        live_weight=row.live_weight, live_count=row.live_count,
        context_window=deps.ladder(row).window, overhead_tokens=row.overhead_tokens,
    )  # fmt: skip
    target = max(1, target_of(probe, request, policy))
    limits = tail_limits(policy.tail, target, capped=request.target_tokens is not None)
    down_to = None if policy.session_memory else row.memory_mark_seq
    reach = Reach(limits.min_tokens, limits.min_text_block_messages, limits.max_tokens, down_to)
    snapshot = await deps.store.snapshot(key, reach)
    if snapshot is None:
        await deps.row(key)
        raise ServerError("session_gone", "The session was removed while it was read.", "Call again.")
    return snapshot


async def _outcome(
    deps: Deps, key: SessionKey, snapshot: Snapshot, request: CompactRequest, policy: Policy
) -> Finished | NothingDone:
    attempt = Attempt(snapshot, request, policy, await deps.surroundings(key.session_id))
    outcome = start(attempt)
    for _ in range(2):
        # A later path may need older bodies than an earlier one asked for.
        if isinstance(outcome, NeedsRecords):
            after = outcome.after_seq
            records = await deps.store.records(key, after_seq=after, up_to_seq=snapshot.base.last_seq, live_only=True)
            attempt = replace(attempt, loaded=Loaded(after, tuple(records)))
            outcome = await to_thread.run_sync(start, attempt)
    if isinstance(outcome, NeedsRecords | SummaryRequest):
        raise ServerError("no_records", "The records of the session could not be read.", "Run `mcp-compact doctor`.")
    return outcome


def _stamp(deps: Deps, plan: CompactionPlan, now_ms: int | None) -> Stamp:
    uuids = tuple(deps.clock.new_uuid() for _ in range(1 + len(plan.service)))
    return Stamp(now_ms if now_ms is not None else deps.clock.now_ms(), uuids)


def applies_to(row: SessionRow) -> str:
    """Does a compaction change what the model is sent, or only our view of it?"""
    return "stored_view" if row.owner == "client" else "sent_context"


def _done(row: SessionRow) -> str:
    return "prepared" if row.owner == "client" else "compacted"


def _last_status(row: SessionRow) -> str:
    return "nothing_to_compact" if row.live_count == 0 else "no_progress"


def _nothing(row: SessionRow, snapshot: Snapshot, outcome: NothingDone, target: int) -> CompactResult:
    tokens = snapshot.live_tokens
    return CompactResult(
        session_id=row.key.session_id,
        status=outcome.status,
        strategy="",
        tokens_before=tokens,
        tokens_after=tokens,
        target_tokens=target,
        applies_to=applies_to(row),
        declined=outcome.declined,
        next=_next_step(outcome),
    )


def _next_step(outcome: NothingDone) -> str:
    match outcome.status:
        case "below_threshold":
            return "Go on working; pass force=true to compact now all the same."
        case "nothing_to_compact":
            return "Go on working; a smaller target_tokens (with force=true) would let more leave."
        case _:
            return "Pass a larger target_tokens, or take large results out with microcompact_tool_results."


def _changed(row: SessionRow, snapshot: Snapshot, committed: Committed, plan: CompactionPlan) -> CompactResult:
    reason = Declined(plan.strategy, committed.reason, "another compaction or an undo came in between")
    outcome = NothingDone("failed", (reason,))
    return _nothing(row, snapshot, outcome, plan.target_tokens)


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
        next=SHRINKS_CLIENT if row.owner == "client" else SEND_LIVE,
    )


async def microcompact(deps: Deps, key: SessionKey, request: MicroRequest) -> MicroResult:
    """Clear old tool results and large media from the live context."""
    row = await deps.row(key)
    live = await deps.store.clearable(key)
    if live is None:
        raise ServerError("session_gone", "The session was removed while it was read.", "Call again.")
    plan = plan_clearing(live, request, deps.settings.policy.micro)
    if not plan.cleared:
        return MicroResult(
            row.key.session_id, "nothing_to_compact", plan.tokens_before, plan.tokens_before, 0, (), "", "",
            "No result is old enough and large enough; keep and older_than_minutes change what counts.",
        )  # fmt: skip
    committed = await deps.store.commit(key, plan, Stamp(deps.clock.now_ms(), (deps.clock.new_uuid(),)))
    if committed.marker is None:
        raise CallerError("base_changed", "The context was compacted at the same moment.", "Call again.")
    return MicroResult(
        session_id=row.key.session_id,
        status=_done(row),
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        tokens_freed=plan.tokens_before - plan.tokens_after,
        cleared=plan.by_tool,
        marker_uuid=committed.marker.uuid,
        first_changed_uuid=plan.first_changed or "",
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
