"""Micro-compaction of a stored session: read what could be cleared, plan (pure), commit."""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.micro import MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.ports.store import SessionKey, SessionRow, Stamp
from mcp_compact.service.compacting import SEND_LIVE, SHRINKS_CLIENT
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.results import MicroResult
from mcp_compact.service.status import used_tokens

NEXT = {
    "nothing_old_enough": "Go on working; a smaller older_than_minutes or keep, or mode=all, would clear more.",
    "below_trigger": "Go on working; force=true clears now all the same, if it is worth the prompt cache.",
    "saves_too_little": "Go on working; mode=all clears without a least saving.",
    "nothing_to_clear": "Go on working; a smaller keep would clear more.",
}
"""What to do, by the reason for which nothing was done."""


async def microcompact(deps: Deps, key: SessionKey, request: MicroRequest) -> MicroResult:
    """Clear old tool results and large media from the live context, or say why not."""
    row = await deps.row(key)
    live = await deps.store.clearable(key)
    if live is None:
        raise ServerError("session_gone", "The session was removed while it was read.", "Call again.")
    policy = deps.settings.policy.micro
    plan = plan_clearing(live, _with_figures(deps, row, request), policy)
    if not plan.cleared:
        return _nothing(row, plan)
    committed = await deps.store.commit(key, plan, Stamp(deps.clock.now_ms(), (deps.clock.new_uuid(),)))
    if committed.marker is None:
        raise CallerError("base_changed", "The context was compacted at the same moment.", "Call again.")
    of_client = row.owner == "client"
    return MicroResult(
        session_id=row.key.session_id,
        status="prepared" if of_client else "compacted",
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        tokens_freed=plan.tokens_before - plan.tokens_after,
        cleared=plan.by_tool,
        marker_uuid=committed.marker.uuid,
        first_changed_uuid=plan.first_changed or "",
        next=SHRINKS_CLIENT if of_client else SEND_LIVE,
        reason=plan.declined.reason if plan.declined else "",
        detail=plan.declined.detail if plan.declined else "",
    )


def _with_figures(deps: Deps, row: SessionRow, request: MicroRequest) -> MicroRequest:
    """The request with the trigger and the context's size, as status reports them."""
    if request.mode is not MicroMode.TOKENS:
        return request
    trigger = request.trigger_tokens
    if trigger is None:
        trigger = deps.settings.policy.micro.trigger_tokens or deps.ladder(row).warning
    tokens = used_tokens(row, family(row)) if request.context_tokens is None else request.context_tokens
    return replace(request, trigger_tokens=trigger, context_tokens=tokens)


def _nothing(row: SessionRow, plan: ClearingPlan) -> MicroResult:
    reason = plan.declined.reason if plan.declined else ""
    return MicroResult(
        session_id=row.key.session_id,
        status="nothing_to_compact",
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_before,
        tokens_freed=0,
        cleared=(),
        marker_uuid="",
        first_changed_uuid="",
        next=NEXT.get(reason, ""),
        reason=reason,
        detail=plan.declined.detail if plan.declined else "",
    )
