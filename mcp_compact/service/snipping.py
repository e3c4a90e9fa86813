"""Snipping in a stored session: read the live context with its bodies, plan (pure), commit."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.policy import MOST_TOKENS
from mcp_compact.compaction.restore import folded
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.compaction.snip import NUDGE_PERCENT, Snippable, SnipPlan, SnipRequest, could_snip_tokens, plan_snip
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Registered, SessionKey, SessionRow, Stamp
from mcp_compact.service.compacting import SEND_LIVE, SHRINKS_CLIENT
from mcp_compact.service.deps import Deps
from mcp_compact.service.jobs import applies_to
from mcp_compact.service.session_results import SnipResult, Spared

READINGS = 3
MAX_DETAIL_CHARS = 500
EVERYTHING = Reach(MOST_TOKENS, 0, MOST_TOKENS)
MISTAKES = {
    "not_live": "get_messages_after_boundary lists the messages that are; search_messages finds the others.",
    "unknown_rule": "Nothing was changed.",
}
"""Declines that are the caller's mistake, and what to do."""


async def snip(deps: Deps, key: SessionKey, request: SnipRequest) -> SnipResult:
    """Take messages out of the live context, calls with their results; the archive keeps them.

    Raises CallerError: `nothing_named`, `not_live`, `unknown_rule`, `unknown_session`.
    """
    if not (request.uuids or request.ranges or request.rules):
        raise CallerError(
            "nothing_named", "No message is named.", "Pass uuids, ranges, or rules (errors, stale_reads, tool:GLOB)."
        )
    row = await deps.row(key)
    live = await snippable(deps, key)
    plan = await to_thread.run_sync(plan_snip, live, request)
    if isinstance(plan, Declined):
        return _nothing(row, live, plan)
    committed = await deps.store.commit(key, plan, Stamp(deps.clock.now_ms(), (deps.clock.new_uuid(),)))
    if committed.marker is None:
        why = "another compaction or an undo came in between; call again"
        return _nothing(row, live, Declined("snip", committed.reason, why))
    return _done(row, live, plan, committed.marker.uuid, committed.marker.snipped)


async def snippable(deps: Deps, key: SessionKey) -> Snippable:
    """The whole live context with bodies and weights, as one reading."""
    for _ in range(READINGS):
        snapshot = await deps.store.snapshot(key, EVERYTHING)
        if snapshot is None:
            await deps.row(key)
            raise ServerError("session_gone", "The session was removed while it was read.", "Call again.")
        records = await deps.store.records(key, after_seq=0, up_to_seq=snapshot.base.last_seq, live_only=True)
        if [entry.uuid for entry in snapshot.tail] == [record.uuid for record in records]:
            pinned = _pinned(records, await deps.store.registered(key))
            return Snippable(
                snapshot.base, snapshot.family, snapshot.live_weight, snapshot.tail, tuple(records), pinned
            )
    raise CallerError("base_changed", "The context changed while it was read.", "Call again.")


async def snippable_note(deps: Deps, key: SessionKey) -> tuple[int, str]:
    """Tokens that the rules `errors` and `stale_reads` would free, and a note where that is much."""
    live = await snippable(deps, key)
    tokens = await to_thread.run_sync(could_snip_tokens, live)
    whole = live.family.tokens(live.live_weight)
    if not tokens or tokens * 100 < NUDGE_PERCENT * whole:
        return tokens, ""
    share = round(100 * tokens / whole)
    return tokens, (
        f"{tokens} tokens ({share} % of the live context) are failed calls and outdated reads: "
        "snip_messages (profile full) with rules errors, stale_reads takes them out"
    )


def _pinned(records: Sequence[Record], pins: Sequence[Registered]) -> frozenset[MessageUuid]:
    """The messages in which the text of a pin stands."""
    texts = [text for pin in pins if (text := folded(pin.text))]
    if not texts:
        return frozenset()
    return frozenset(
        record.uuid for record in records for said in (folded(record.text),) if any(text in said for text in texts)
    )


def _done(
    row: SessionRow, live: Snippable, plan: SnipPlan, marker_uuid: str, snipped: Sequence[MessageUuid]
) -> SnipResult:
    """The figures of what really left: what had left already is not counted again."""
    weights = {entry.uuid: entry.weight for entry in live.entries}
    before, after = plan.tokens_before, plan.tokens_after
    if len(snipped) != len(plan.snipped):
        left = live.live_weight
        for uuid in snipped:
            left -= weights[uuid]
        after = live.family.tokens(left)
    of_client = row.owner == "client"
    return SnipResult(
        session_id=row.key.session_id,
        status="prepared" if of_client else "compacted",
        executed=True,
        messages=tuple(snipped),
        spared=tuple(Spared(uuid, why) for uuid, why in plan.spared),
        tokens_before=before,
        tokens_after=after,
        tokens_freed=before - after,
        applies_to=applies_to(row),
        marker_uuid=marker_uuid,
        next=SHRINKS_CLIENT if of_client else SEND_LIVE,
    )


def _nothing(row: SessionRow, live: Snippable, why: Declined) -> SnipResult:
    if why.reason in MISTAKES:
        raise CallerError(why.reason, f"{why.detail[:MAX_DETAIL_CHARS]}.", MISTAKES[why.reason])
    tokens = live.family.tokens(live.live_weight)
    changed = why.reason == "base_changed"
    return SnipResult(
        session_id=row.key.session_id,
        status="failed" if changed else "nothing_to_compact",
        executed=False,
        messages=(),
        spared=(),
        tokens_before=tokens,
        tokens_after=tokens,
        tokens_freed=0,
        applies_to=applies_to(row),
        marker_uuid="",
        next="Call again." if changed else "Go on working; force=true takes also what is protected, but an open call.",
        reason=why.reason,
        detail=why.detail,
    )
