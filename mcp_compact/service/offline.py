"""Compacting a conversation without a store: a list of messages, or a transcript's bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_compact.compaction.attachments import read_back
from mcp_compact.compaction.attempt import target_of
from mcp_compact.compaction.in_memory import (
    Conversation,
    apply_plan,
    compact_in_memory,
    conversation,
    snapshot_of,
)
from mcp_compact.compaction.pipeline import NothingDone
from mcp_compact.compaction.plan import Declined, Loss, Span
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest, Surroundings
from mcp_compact.compaction.snapshot import Memory
from mcp_compact.compaction.wording import OPENING
from mcp_compact.messages.blocks import ToolResultBlock
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.markers import Marker
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CountUnits, Family
from mcp_compact.service.given import MESSAGE
from mcp_compact.service.left_out import named_places
from mcp_compact.service.results import Slice
from mcp_compact.service.status import slices_of
from mcp_compact.transcripts.beside import beside_of
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.native import (
    boundary_marker,
    clearing_marker,
    expand_preserved,
    native_boundary,
    native_clearing,
    summary_of,
)
from mcp_compact.transcripts.outs import finished, origin_of, out_of
from mcp_compact.transcripts.parsed import derived_uuid
from mcp_compact.transcripts.whole_answers import whole_turns

EVERYTHING_AFTER = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a compaction did. Tokens by the counter and family that were given."""

    status: str
    """`compacted`, or why not: `nothing_to_compact`, `no_progress`, `failed`."""
    strategy: str
    tokens_before: int
    tokens_after: int
    target_tokens: int
    declined: tuple[Declined, ...] = ()
    loss: Loss = field(default_factory=Loss)
    spans: tuple[Span, ...] = ()
    warnings: tuple[str, ...] = ()
    memory: str = ""
    """The text that stands for what left."""
    before: tuple[Slice, ...] = ()
    after: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Offline:
    """How to count and what the figures are."""

    family: Family
    count: CountUnits
    policy: Policy = field(default_factory=Policy)
    context_window: int | None = None
    overhead_tokens: int = 0
    slices: bool = True
    """Report what fills the context by kind (every text is counted once more)."""


def compact_records(
    records: Sequence[Record], request: CompactRequest, how: Offline, places: Sequence[int] = ()
) -> tuple[LiveContext, Report]:
    """The live context after compaction, and what was done; the one before where nothing was.

    With the `places` of the records in a list, those are named that were not live before.
    """
    around = Surroundings(how.count, ClearedText(hint=""))
    numbered = [replace(record, seq=at) for at, record in enumerate(records, 1)]
    talk = _conversation(numbered, how, around)
    gone = _not_live(numbered, talk.live, places)
    before = slices_of(talk.live, how.family, around) if how.slices else ()
    outcome = compact_in_memory(talk, request, how.policy, around)
    tokens = snapshot_of(talk).live_tokens
    if isinstance(outcome, NothingDone) and _is_too_long(outcome, tokens, request):
        # It would be too long where it is sent, so it is compacted as if that had been said already.
        again = compact_in_memory(talk, replace(request, trigger="reactive"), how.policy, around)
        outcome = outcome if isinstance(again, NothingDone) else again
    if isinstance(outcome, NothingDone):
        target = target_of(snapshot_of(talk), request, how.policy)
        report = Report(
            outcome.status, "", tokens, tokens, target, outcome.declined, warnings=gone, before=before, after=before
        )
        return talk.live, report
    plan = outcome.plan
    uuids = [derived_uuid("service", at, text.text.encode(errors="replace")) for at, text in enumerate(plan.service)]
    live = apply_plan(talk.live, plan, uuids)
    report = Report(
        status="compacted",
        strategy=plan.strategy,
        tokens_before=plan.tokens_before,
        tokens_after=plan.tokens_after,
        target_tokens=plan.target_tokens,
        declined=outcome.declined,
        loss=plan.loss,
        spans=plan.spans,
        warnings=(*gone, *plan.warnings),
        memory=next((text.text for text in plan.service if text.kind == "summary"), ""),
        before=before,
        after=slices_of(live, how.family, around) if how.slices else (),
    )
    return live, report


def _not_live(records: Sequence[Record], live: LiveContext, places: Sequence[int]) -> tuple[str, ...]:
    """What is said of messages that a client's own compaction or a turn of the conversation left behind."""
    shown = {record.seq for record in live.all}
    gone = [
        place
        for record, place in zip(records, places, strict=False)
        if record.is_message and record.seq not in shown and record.blocks
    ]
    why = "a client's own compaction, another branch or a record of the same uuid stands in its place: left out"
    return (f"{named_places(MESSAGE, gone)}: {why}",) if gone else ()


def _is_too_long(outcome: NothingDone, tokens: int, request: CompactRequest) -> bool:
    """Is it above the target that was asked for, and only the size of what stays in the way?"""
    reasons = {declined.reason for declined in outcome.declined}
    return tokens > (request.target_tokens or tokens) and bool(reasons & {"still_above_target", "nothing_to_compact"})


def encode(
    live: LiveContext,
    format_name: str,
    archive: Sequence[Record] | None = None,
    facts: SessionFacts | None = None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The live context in an output format, valid, with open calls left open, and the repairs.

    With the `archive` that it comes from, system prompts and what only its provider reads go along where the format
    has a place for them, and the whole is made what the format's provider takes. `facts`: of the whole session, where
    the records that are left do not tell them.
    """
    turns, warnings = valid_turns(whole_turns(live, Surroundings(cleared=ClearedText(hint=""))))
    origin = origin_of(live, beside_of(archive, [record.uuid for record in live.all]) if archive is not None else None)
    origin = replace(origin, facts=facts or origin.facts)
    if archive is None:
        return out_of(format_name).encode(turns, origin), warnings
    done = finished(format_name, turns, origin)
    return done.messages, [*warnings, *(f"{change.path}: {change.text}" for change in done.changes)]


def _conversation(records: Sequence[Record], how: Offline, around: Surroundings) -> Conversation:
    live = live_context(records, native_markers(records))
    memory: Memory | None = None
    if live.records and not live.service and is_our_summary(live.records[0]):
        own = 1
        while own < len(live.records) and read_back(live.records[own].text):
            own += 1
        live = replace(live, service=live.records[:own], records=live.records[own:])
    if live.service and is_our_summary(live.service[0]):
        memory = Memory(memory_in(live.service[0].text), 1, mark_seq=EVERYTHING_AFTER, writer="extractor")
    return conversation(
        live,
        how.family,
        around,
        memory=memory,
        context_window=how.context_window,
        overhead_tokens=how.overhead_tokens,
    )


def is_our_summary(record: Record) -> bool:
    """Is it a summary message that an earlier compaction of ours wrote?"""
    return record.type == "user" and record.text.startswith(OPENING)


def memory_in(summary: str) -> str:
    """The memory document in a summary message of ours."""
    at = summary.find("\n\n# ")
    return summary[at + 2 :] if at >= 0 else ""


def native_markers(records: Sequence[Record]) -> list[Marker]:
    """Markers for the client's own compactions in a transcript; `records` are numbered by seq."""
    markers: list[Marker] = []
    places = {
        block.tool_use_id: (record.uuid, index)
        for record in records
        for index, block in enumerate(record.blocks)
        if isinstance(block, ToolResultBlock)
    }
    for at, record in enumerate(records):
        parent = markers[-1].seq if markers else None
        if (boundary := native_boundary(record, summary_of(record, records[at + 1 :]))) is not None:
            kept = expand_preserved(boundary, records[:at])
            markers.append(boundary_marker(boundary, record.seq, parent, kept))
        elif (clearing := native_clearing(record)) is not None:
            markers.append(clearing_marker(clearing, record.seq, parent, places))
    return markers
