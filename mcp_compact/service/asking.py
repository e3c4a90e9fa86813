"""Asking the calling agent for a summary: what it is given, page by page."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import Pending
from mcp_compact.service.jobs import Job, applies_to
from mcp_compact.service.results import CompactResult

PENDING_MS = 3_600_000
MATERIAL_CHARS = 40_000
"""A page of the material: about 12,000 tokens."""
WRITE_IT = "Write the notes that `prompt` asks for and hand them to submit_summary with this compaction_id."
READ_ON = "The material goes on: call compact_session with cursor=next_cursor, or write from what you know. "


async def ask_agent(job: Job, attempt: Attempt, asked: SummaryRequest) -> CompactResult:
    """Remember the compaction and ask the caller for the summary."""
    now = job.deps.clock.now_ms()
    compaction_id = job.deps.clock.new_uuid()
    pending = Pending(
        compaction_id, job.key, pending_request(attempt.request), attempt.snapshot.base, now, now + PENDING_MS
    )
    await job.deps.store.put_pending(pending)
    return material_page(job, attempt, asked, compaction_id, 0)


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


def request_of(text: str) -> CompactRequest:
    """The request that was stored. What held it back when it was asked for does not hold it back again."""
    fields = json.loads(text)
    overrun = fields.pop("overrun", None)
    return replace(CompactRequest(**fields), overrun=Overrun(**overrun) if overrun else None, force=True)
