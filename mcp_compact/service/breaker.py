"""The circuit breaker: automatic compactions pause after three in a row that came to nothing.

A loop whose threshold cannot be reached (the overhead alone exceeds it) would otherwise compact before every
request. The count is the session's own, stored with it; any compaction that is done begins it anew.
"""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.pipeline import NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.ports.store import SessionRow
from mcp_compact.service.jobs import Job, nothing_done
from mcp_compact.service.results import CompactResult

OPENS_AFTER = 3
"""Automatic compactions in a row that came to nothing."""
AUTO = "auto"
COUNTED = ("failed", "no_progress", "nothing_to_compact")
"""What a context below the threshold and a hook that forbids answer is no failure."""
NEXT = (
    "Go on without automatic compaction; force=true tries once more and begins the count anew. "
    "What helps: a smaller overhead, a larger window or target, microcompact_tool_results, snip_messages."
)


def is_open(row: SessionRow) -> bool:
    """Do automatic compactions of the session pause?"""
    return row.auto_failures >= OPENS_AFTER


async def held(job: Job, snapshot: Snapshot) -> CompactResult | None:
    """The answer while the breaker is open; None where the call may go on. A forced call begins the count anew."""
    if job.call.dry_run:
        return None
    if job.call.force:
        if job.row.auto_failures:
            await job.deps.store.note(job.key, auto_failed=False)
        return None
    if job.request.trigger != AUTO or not is_open(job.row):
        return None
    tokens = snapshot.live_tokens + snapshot.overhead_tokens
    ladder = job.deps.ladder(job.row)
    detail = (
        f"{job.row.auto_failures} automatic compactions in a row came to nothing: {tokens} tokens "
        f"({snapshot.overhead_tokens} of them overhead), compaction is due at {ladder.compact} of {ladder.window}"
    )
    declined = Declined("all", "breaker_open", detail)
    return replace(nothing_done(job, snapshot, NothingDone("no_progress", (declined,))), next=NEXT)


async def came_to_nothing(job: Job, outcome: NothingDone) -> None:
    """Count an automatic compaction that came to nothing."""
    if job.request.trigger == AUTO and outcome.status in COUNTED:
        await job.deps.store.note(job.key, auto_failed=True)
