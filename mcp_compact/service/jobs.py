"""A call of compact_session under way: what it works on, checked and read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anyio import to_thread

from mcp_compact.compaction.attempt import Attempt, NeedsRecords, target_of
from mcp_compact.compaction.overrun import Overrun, read_overrun
from mcp_compact.compaction.pipeline import Finished, NothingDone, start
from mcp_compact.compaction.policy import Policy, levels, tail_limits
from mcp_compact.compaction.reactive import target_after
from mcp_compact.compaction.request import CompactRequest, Loaded
from mcp_compact.compaction.snapshot import Base, Reach, Snapshot
from mcp_compact.compaction.summary import SummaryRequest, beside_material
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.masking import masked
from mcp_compact.ports.store import SessionKey, SessionRow
from mcp_compact.ports.summarizer import Summarizer
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.next_steps import Situation, next_step
from mcp_compact.service.results import CompactResult

TRIGGERS = ("agent", "manual", "auto", "reactive")
AGENT, SAMPLING = "agent", "sampling"
"""Writers that a call brings along, by the names of the setting."""
MAX_INSTRUCTIONS = 20_000
"""Characters; instructions stand in every request for a summary."""


@dataclass(frozen=True, slots=True)
class CompactCall:
    """One call of compact_session. `now_ms` None takes the clock's."""

    trigger: str = "agent"
    custom_instructions: str = ""
    target_tokens: int | None = None
    force: bool = False
    dry_run: bool = False
    now_ms: int | None = None
    error: str = ""
    """Of a reactive call: what the provider said."""
    keep_tail: bool = True
    agent_writes: bool = False
    """Can the caller hand in a summary (is submit_summary offered to it)?"""
    sampling: Summarizer | None = None
    """The client's own model, where the client lets it be asked."""

    def writers(self, deps: Deps) -> dict[str, Summarizer | None]:
        """Who can be asked for a summary, in the order of the settings; the calling agent is no Summarizer."""
        able: dict[str, Summarizer | None] = dict(deps.writers)
        if self.agent_writes:
            able[AGENT] = None
        if self.sampling is not None:
            able[SAMPLING] = self.sampling
        return {name: able[name] for name in deps.settings.summarizers if name in able}


@dataclass(frozen=True, slots=True)
class Job:
    """A call under way: the session as it was read, and what is asked."""

    deps: Deps
    key: SessionKey
    row: SessionRow
    call: CompactCall
    request: CompactRequest
    policy: Policy
    writers: Mapping[str, Summarizer | None]
    """Who can be asked for a summary, in this order; None for the calling agent."""
    started_ms: int
    """When the call came, by the clock."""

    @property
    def now_ms(self) -> int:
        return self.call.now_ms if self.call.now_ms is not None else self.deps.clock.now_ms()


async def job_of(deps: Deps, key: SessionKey, call: CompactCall) -> Job:
    """The call, checked. Where nobody writes summaries, instructions become lines that must be kept."""
    if call.trigger not in TRIGGERS:
        raise CallerError(
            "bad_trigger", f"trigger {call.trigger[:40]!r} is unknown.", f"Use one of {', '.join(TRIGGERS)}."
        )
    if call.target_tokens is not None and call.target_tokens < 1:
        raise CallerError("bad_target", "target_tokens must be positive.", "Leave it out for the threshold.")
    if len(call.custom_instructions) > MAX_INSTRUCTIONS:
        raise CallerError("too_long", f"The instructions exceed {MAX_INSTRUCTIONS} characters.", "Shorten them.")
    row = await deps.row(key)
    writers = call.writers(deps)
    # They go to whoever writes, or into what is kept: neither is told a key.
    asked = masked(call.custom_instructions)
    overrun = read_overrun(call.error) or Overrun() if call.trigger == "reactive" else None
    request = CompactRequest(
        trigger=call.trigger,
        custom_instructions=asked if writers else "",
        target_tokens=call.target_tokens,
        force=call.force,
        must_keep="" if writers else asked,
        overrun=overrun,
        keep_tail=call.keep_tail,
    )
    # The client that keeps its own history (Claude Code) shows files, plan and skills again by itself.
    policy = replace(deps.settings.policy, summaries=bool(writers), client_restores=row.owner == "client")
    return Job(deps, key, row, call, request, policy, writers, deps.clock.now_ms())


async def read_snapshot(job: Job, up_to_seq: int | None = None) -> Snapshot:
    """The live context as far back as any path may cut."""
    row, policy, request = job.row, job.policy, job.request
    probe = Snapshot(
        base=Base(row.last_seq, row.marker_seq, row.live_hash), family=family(row), tail=(), tail_is_all=False,
        live_weight=row.live_weight, live_count=row.live_count,
        context_window=job.deps.ladder(row).window, overhead_tokens=row.overhead_tokens,
    )  # fmt: skip
    target = max(1, target_of(probe, request, policy))
    if request.trigger == "reactive" or policy.reactive_only:
        asked = target_after(request.overrun or Overrun(), probe) if request.target_tokens is None else target
        reach = Reach(max(1, asked, target), 0, max(1, asked, target))
    else:
        limits = tail_limits(policy.tail, target, capped=request.target_tokens is not None)
        down_to = None if policy.session_memory else row.memory_mark_seq
        reach = Reach(limits.min_tokens, limits.min_text_block_messages, limits.max_tokens, down_to)
    snapshot = await job.deps.store.snapshot(job.key, reach, up_to_seq=up_to_seq)
    if snapshot is None:
        await job.deps.row(job.key)
        raise ServerError("session_gone", "The session was removed while it was read.", "Call again.")
    return snapshot


async def planned(job: Job, attempt: Attempt) -> tuple[Finished | SummaryRequest | NothingDone, Attempt]:
    """The pipeline's answer, with the bodies that it asked for loaded."""
    outcome = await to_thread.run_sync(start, attempt)
    for _ in range(3):
        # A later path may need older bodies than an earlier one asked for.
        if isinstance(outcome, NeedsRecords):
            records = await job.deps.store.records(
                job.key, after_seq=outcome.after_seq, up_to_seq=attempt.snapshot.base.last_seq, live_only=True
            )
            attempt = replace(attempt, loaded=Loaded(outcome.after_seq, tuple(records)))
            outcome = await to_thread.run_sync(start, attempt)
    if isinstance(outcome, NeedsRecords):
        raise ServerError("no_records", "The records of the session could not be read.", "Run `mcp-compact doctor`.")
    return outcome, attempt


def room_of_first(job: Job, attempt: Attempt) -> int | None:
    """The room of whoever is asked first, as `Attempt.room_tokens` has it."""
    agent_is_first = next(iter(job.writers), "") == AGENT
    return room_of_agent(attempt) if agent_is_first else None


def room_of_agent(attempt: Attempt) -> int:
    """Tokens of material that the session's own agent can read and write of before its context is at the hard level."""
    snapshot = attempt.snapshot
    hard = levels(snapshot.context_window, attempt.policy.compact_at).hard
    return max(0, hard - snapshot.live_tokens - snapshot.overhead_tokens - beside_material(attempt))


def applies_to(row: SessionRow) -> str:
    """Does a compaction change what the model is sent, or only our view of it?"""
    return "stored_view" if row.owner == "client" else "sent_context"


def nothing_done(job: Job, snapshot: Snapshot, outcome: NothingDone, warnings: tuple[str, ...] = ()) -> CompactResult:
    """The answer where nothing was written."""
    tokens = snapshot.live_tokens
    return CompactResult(
        session_id=job.key.session_id,
        status=outcome.status,
        strategy="",
        tokens_before=tokens,
        tokens_after=tokens,
        target_tokens=target_of(snapshot, job.request, job.policy),
        applies_to=applies_to(job.row),
        declined=outcome.declined,
        warnings=warnings,
        next=next_step(outcome, Situation(snapshot, job.request, job.policy, job.row.owner == "client")),
    )
