"""What a new session of a client begins with: the live context, compacted; and what the archive hands on to it.

Nothing is written to the old session, in the archive or elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from anyio import to_thread

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.in_memory import apply_plan, turns_of
from mcp_compact.compaction.pipeline import Finished
from mcp_compact.compaction.plan import CompactionPlan
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.rules import DROPPED
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn, valid_turns
from mcp_compact.messages.words import users_words
from mcp_compact.ports.store import Batch, SessionFacts, SessionKey
from mcp_compact.service.deps import Deps
from mcp_compact.service.jobs import CompactCall, Job, job_of, planned, read_snapshot
from mcp_compact.service.prepare import prepare
from mcp_compact.service.reading import load_live
from mcp_compact.transcripts.codex import ITEM
from mcp_compact.transcripts.facts import SessionFacts as TranscriptFacts
from mcp_compact.transcripts.facts import facts_of
from mcp_compact.transcripts.media_out import sendable_media
from mcp_compact.transcripts.registry import CLAUDE_CODE, CODEX

READINGS = 3


@dataclass(frozen=True, slots=True)
class NewContext:
    """The turns of a new session, valid, every call answered, and where they come from."""

    session_id: str
    turns: tuple[Turn, ...]
    records: Mapping[MessageUuid, Record]
    """Those that the turns were made from."""
    facts: TranscriptFacts
    client: str
    """The format of the client that the newest records come from; empty for a loop's."""
    status: str
    """`compacted`, or why the live context is handed on as it is: `nothing_to_compact`, `no_progress`, `failed`."""
    strategy: str
    tokens_before: int
    tokens_after: int
    overhead_tokens: int
    last_uuid: MessageUuid | None
    warnings: tuple[str, ...]
    has_boundary: bool = True
    """Does the format that it is written in mark where it begins?"""


async def new_context(deps: Deps, key: SessionKey, target_tokens: int | None = None) -> NewContext:
    """The live context as a new session takes it, with a target as `compact` takes it.

    Calls without a result get a short error result, and media that an API refuses are left out, so that
    also a session opens again that its client can no longer send or compact.
    Raises CallerError `unknown_session`, `bad_target`, `nothing_to_resume`.
    """
    job, live, outcome, before = await _read(deps, key, target_tokens)
    if not live.all:
        raise CallerError("nothing_to_resume", "The session holds no message.", "Name another session.")
    plan = outcome if isinstance(outcome, CompactionPlan) else None
    shown = _applied(deps, live, plan) if plan else live
    # In the new session a result's first words are in the old one's archive, so that is named.
    around = Surroundings(session_id=key.session_id)
    turns, repairs = await to_thread.run_sync(partial(_turns, shown, around))
    turns, left_out = sendable_media(turns)
    after = plan.tokens_after if plan else before
    warnings = (*repairs, *left_out, *(plan.warnings if plan else ()), *_too_long(job, after))
    return NewContext(
        session_id=key.session_id,
        turns=tuple(turns),
        records={record.uuid: record for record in shown.all},
        facts=_facts(job, live),
        client=_client(job, live),
        status="compacted" if plan else str(outcome),
        strategy=plan.strategy if plan else "",
        tokens_before=before,
        tokens_after=after,
        overhead_tokens=job.row.overhead_tokens,
        last_uuid=live.records[-1].uuid if live.records else None,
        warnings=warnings,
    )


async def hand_on(deps: Deps, old: NewContext, old_key: SessionKey, new_key: SessionKey) -> int:
    """Give a new session the old one's pins and its user's earlier words, for rules hold on; the number of pins.

    The old one is named as its parent. Called before the new session's transcript is imported.
    """
    facts = SessionFacts(
        title=old.facts.title,
        model=old.facts.model,
        cwd=old.facts.cwd,
        owner="client",
        parent_session_id=old_key.session_id,
    )
    now_ms = deps.clock.now_ms()
    await deps.store.create_session(new_key, facts, now_ms)
    pins = await deps.store.registered(old_key)
    for pin in pins:
        await deps.store.register(new_key, pin, now_ms)
    words = await _earlier_words(deps, old, old_key)
    if words:
        prepared = await to_thread.run_sync(partial(prepare, words, deps.tokenizer, with_content_hash=False))
        await deps.store.append(new_key, Batch(tuple(prepared), facts), now_ms)
    return sum(pin.kind != DROPPED for pin in pins)


async def _earlier_words(deps: Deps, old: NewContext, old_key: SessionKey) -> list[Record]:
    """Messages with words of the user that are not in the new context; they go before its boundary, so none is live.

    None where there is no boundary: then nothing left either, or the client's format has no place for one.
    """
    first = old.records.get(old.turns[0].uuid) if old.turns and old.turns[0].uuid else None
    if first is None or not first.is_summary or not old.has_boundary:
        return []
    row = await deps.row(old_key)
    records = await deps.store.records(old_key, after_seq=0, up_to_seq=row.last_seq, live_only=False)
    left = [record for record in records if record.uuid not in old.records and users_words(record)]
    return [replace(record, parent_uuid=None, is_root=False, seq=0) for record in left]


async def _read(
    deps: Deps, key: SessionKey, target_tokens: int | None
) -> tuple[Job, LiveContext, CompactionPlan | str, int]:
    """The live context, the plan made of exactly that (or why there is none), and its tokens."""
    for _ in range(READINGS):
        job = await _job(deps, key, target_tokens)
        live, _ = await load_live(deps, key)
        snapshot = await read_snapshot(job)
        attempt = Attempt(snapshot, job.request, job.policy, await deps.surroundings(key.session_id))
        outcome, _ = await planned(job, attempt)
        row = await deps.row(key)
        if (row.last_seq, row.marker_seq) == (job.row.last_seq, job.row.marker_seq):
            found = outcome.plan if isinstance(outcome, Finished) else getattr(outcome, "status", "no_progress")
            return job, live, found, snapshot.live_tokens
    raise CallerError("still_written", "The session is being written to.", "Wait until its client is idle.")


async def _job(deps: Deps, key: SessionKey, target_tokens: int | None) -> Job:
    job = await job_of(deps, key, CompactCall("manual", target_tokens=target_tokens, force=True))
    # A client shows files, plan and skills again after its own compaction, not after reading a file of ours.
    return replace(job, policy=replace(job.policy, summaries=False, client_restores=False))


def _applied(deps: Deps, live: LiveContext, plan: CompactionPlan) -> LiveContext:
    return apply_plan(live, plan, [deps.clock.new_uuid() for _ in plan.service])


def _turns(live: LiveContext, around: Surroundings) -> tuple[list[Turn], list[str]]:
    return valid_turns(turns_of(live, around), close_open_calls=True)


def _facts(job: Job, live: LiveContext) -> TranscriptFacts:
    own, row = facts_of(live.all), job.row
    return replace(
        own,
        cwd=row.cwd or own.cwd,
        model=row.model or own.model,
        title=row.title or own.title,
    )


def _client(job: Job, live: LiveContext) -> str:
    if job.row.owner != "client":
        return ""
    newest = live.all[-1].raw
    return CODEX if newest.get("type") == ITEM and "payload" in newest else CLAUDE_CODE


def _too_long(job: Job, tokens: int) -> tuple[str, ...]:
    ladder = job.deps.ladder(job.row)
    if tokens + job.row.overhead_tokens < ladder.hard:
        return ()
    return (f"{tokens:,} tokens and {job.row.overhead_tokens:,} of the client's own do not fit the context window",)
