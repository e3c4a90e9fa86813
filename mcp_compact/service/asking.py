"""Asking whoever answers with another call: the calling agent, page by page, or the client's model.

A pending compaction is stored as its request and its base, and what was said of the writers before.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.pipeline import NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import Pending
from mcp_compact.service.jobs import Job, applies_to, nothing_done
from mcp_compact.service.results import CompactResult

PENDING_MS = 3_600_000
SAMPLING_REQUIRED = "sampling_required"
"""The status while the client's model is awaited; the server asks it, so that no caller sees this."""
MATERIAL_CHARS = 40_000
"""A page of the material: about 12,000 tokens."""
WRITE_IT = "Write the notes that `prompt` asks for and hand them to submit_summary with this compaction_id."
READ_ON = "The material goes on: call compact_session with cursor=next_cursor, or write from what you know. "


@dataclass(frozen=True, slots=True)
class Waiting:
    """A compaction whose summary somebody was asked for."""

    request: CompactRequest
    declined: tuple[Declined, ...] = ()
    """Of the paths and the writers before."""
    warnings: tuple[str, ...] = ()
    """Of the hooks, where the caller has not read them yet."""
    within_s: float = 0
    """Where not 0: an answer that took longer does not count."""
    room_tokens: int | None = None
    """What the material was fitted into: every page of it is made anew, and all are of one and the same."""


async def ask_agent(job: Job, attempt: Attempt, asked: SummaryRequest) -> CompactResult:
    """Remember the compaction and ask the caller for the summary."""
    compaction_id = await _remembered(
        job, attempt, Waiting(attempt.request, asked.declined, room_tokens=attempt.room_tokens)
    )
    return material_page(job, attempt, asked, compaction_id, 0)


async def ask_client(job: Job, attempt: Attempt, asked: SummaryRequest, within_s: float) -> CompactResult:
    """Remember the compaction that the client's model was asked for; `status` says that its answer is awaited."""
    waiting = Waiting(attempt.request, asked.declined, attempt.around.warnings, within_s)
    compaction_id = await _remembered(job, attempt, waiting)
    waits = nothing_done(job, attempt.snapshot, NothingDone(SAMPLING_REQUIRED, asked.declined))
    return replace(waits, compaction_id=compaction_id)


async def _remembered(job: Job, attempt: Attempt, waiting: Waiting) -> str:
    now, compaction_id = job.deps.clock.now_ms(), job.deps.clock.new_uuid()
    base = attempt.snapshot.base
    await job.deps.store.put_pending(
        Pending(compaction_id, job.key, waiting_text(waiting), base, now, now + PENDING_MS)
    )
    return compaction_id


def material_page(job: Job, attempt: Attempt, asked: SummaryRequest, compaction_id: str, page: int) -> CompactResult:
    """The answer `summary_required`: the prompt, and one page of the material."""
    pages = max(1, -(-len(asked.material) // MATERIAL_CHARS))
    if page >= pages:
        raise CallerError("bad_cursor", f"The material has {pages} pages.", "Write the summary.")
    tokens, more = attempt.snapshot.live_tokens, page + 1 < pages
    return CompactResult(
        session_id=job.key.session_id,
        status="summary_required",
        strategy="summary",
        tokens_before=tokens,
        tokens_after=tokens,
        target_tokens=0,
        applies_to=applies_to(job.row),
        declined=asked.declined,
        warnings=attempt.around.warnings,
        next=(READ_ON if more else "") + WRITE_IT,
        compaction_id=compaction_id,
        prompt=asked.prompt if page == 0 else "",
        material=asked.material[page * MATERIAL_CHARS : (page + 1) * MATERIAL_CHARS],
        next_cursor=f"{compaction_id}:{page + 1}" if more else "",
    )


def pending_request(request: CompactRequest) -> str:
    """A request as it is stored."""
    return json.dumps(asdict(request))


def waiting_text(waiting: Waiting) -> str:
    """A waiting compaction as it is stored."""
    return json.dumps(asdict(waiting))


def waiting_of(text: str) -> Waiting:
    """The waiting compaction that was stored."""
    fields = json.loads(text)
    declined = tuple(Declined(**item) for item in fields["declined"])
    # Those that were stored by an older version name no room.
    room, warnings = fields.get("room_tokens"), tuple(fields["warnings"])
    return Waiting(_request_of(fields["request"]), declined, warnings, fields["within_s"], room)


def _request_of(fields: dict[str, Any]) -> CompactRequest:
    # What held it back when it was asked for does not hold it back again.
    overrun = fields.pop("overrun", None)
    return replace(CompactRequest(**fields), overrun=Overrun(**overrun) if overrun else None, force=True)
