"""Session-memory compaction: the memory stands for what leaves, the newest messages stay. No model is called."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mcp_compact.compaction.assembly import assemble, memory_update
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, NeedsRecords, Window, target_of
from mcp_compact.compaction.cuts import (
    NOTHING_COVERED,
    calculate_messages_to_keep_index,
    index_of_mark,
    total,
)
from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.fitting import fit
from mcp_compact.compaction.notes import updated_memory
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import TailLimits, tail_limits
from mcp_compact.compaction.request import Bodies, CompactRequest
from mcp_compact.compaction.restore import records_to_look_through
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import fitted_tail, gone_results
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.memory_document import MemoryDocument, is_empty, parse

PATH = "session_memory"


def compact_by_memory(attempt: Attempt) -> CompactionPlan | NeedsRecords | Declined:
    """A plan, a reason why this path does not apply, or the records that the extractor needs."""
    if not attempt.policy.sm_compact:
        return Declined(PATH, "switched_off", "session-memory compaction is switched off")
    window = _window(attempt)
    if isinstance(window, Declined):
        return window
    bodies = window.bodies(attempt) if window.refresh else None
    if isinstance(bodies, NeedsRecords):
        return bodies
    if (needed := records_to_look_through(attempt, window)) is not None:
        return needed
    texts: list[str] = []
    gone = gone_results(attempt, window, fitted_tail(attempt, window))
    assembled = assemble(attempt, window, PATH, partial(write_memory, attempt, bodies, texts, gone))
    if isinstance(assembled, Declined):
        return assembled
    plan, _ = assembled
    # A memory that was up to date stays as it is; only a new one is written with the boundary.
    return replace(plan, memory=memory_update(attempt.snapshot, window, texts[-1])) if window.refresh else plan


def write_memory(
    attempt: Attempt, bodies: Bodies | None, written: list[str], gone: frozenset[ToolUseId], units: int
) -> str:
    """The memory in so many units, extracted where there are bodies, else cut to size; noted in `written`.

    `gone` results of the tail are not shown there.
    """
    written.append(_document(attempt, bodies, gone, units).render())
    return written[-1]


def _document(attempt: Attempt, bodies: Bodies | None, gone: frozenset[ToolUseId], units: int) -> MemoryDocument:
    snapshot, around = attempt.snapshot, attempt.around
    # A target that was asked for is room to be used: the limit of a section is for memories that last.
    section = None if attempt.request.target_tokens else snapshot.family.units(attempt.policy.memory.section_tokens)
    if bodies is None:
        text = snapshot.memory.text if snapshot.memory else ""
        return fit(parse(text) if text else MemoryDocument(), units, section, around.count, None)
    material = Material(bodies.leaving, bodies.kept, None, summaries_of(snapshot), gone)
    return updated_memory(snapshot.memory, material, units, section, around.count)


def summaries_of(snapshot: Snapshot) -> tuple[str, ...]:
    """What the last boundary said, where the memory does not say it already."""
    memory, mark = (snapshot.memory.text.strip(), snapshot.memory.mark_seq or 0) if snapshot.memory else ("", 0)
    # What was put back is put back again, and never summarised.
    beside = [i.text for i in snapshot.service if i.text and i.seq > mark and i.kind != "attachment"]
    return tuple(text for text in beside if not (memory and memory in text))


def _window(attempt: Attempt) -> Window | Declined:
    snapshot = attempt.snapshot
    target = target_of(snapshot, attempt.request, attempt.policy)
    if target < FEWEST_MEMORY_TOKENS:
        return Declined(PATH, "no_room", f"{snapshot.overhead_tokens} tokens of overhead leave {target} for messages")
    limits = tail_limits(attempt.policy.tail, target, capped=attempt.request.target_tokens is not None)
    mark = _mark(snapshot)
    if isinstance(mark, Declined):
        return mark
    refresh = _is_behind(snapshot, mark, limits)
    if refresh and not attempt.policy.session_memory:
        return _no_memory(snapshot, limits)
    index = calculate_messages_to_keep_index(snapshot.tail, None if refresh else mark, limits, snapshot.family)
    if index == 0 and snapshot.tail_is_all:
        if not _memory_is_too_long(snapshot, attempt.request):
            return Declined(PATH, "nothing_to_compact", "every live message belongs to the part that stays")
        refresh = attempt.policy.session_memory
    covered = snapshot.memory.mark_seq if refresh and mark != NOTHING_COVERED and snapshot.memory else 0
    return Window(target, index, snapshot.tail[index:], refresh, covered or 0)


def _memory_is_too_long(snapshot: Snapshot, request: CompactRequest) -> bool:
    """Is the context above a target that was asked for because of what the last compaction put before the tail?"""
    asked = request.target_tokens
    return asked is not None and bool(snapshot.service) and snapshot.live_tokens > asked


def _mark(snapshot: Snapshot) -> int | Declined | None:
    """Index of the last covered entry, None where the memory covers everything."""
    memory = snapshot.memory
    if memory is None:
        return NOTHING_COVERED
    if memory.covers_all:
        return None
    if memory.mark_uuid is not None and memory.mark_seq is None:
        return Declined(PATH, "mark_not_found", "the record that the memory was written up to is not in the archive")
    return index_of_mark(snapshot.tail, memory.mark_seq)


def _is_behind(snapshot: Snapshot, mark: int | None, limits: TailLimits) -> bool:
    """Must it be written first: missing, empty, too much of the list is newer, or a summary stands beside it?"""
    if snapshot.memory is None or is_empty(snapshot.memory.text) or summaries_of(snapshot):
        return True
    uncovered = () if mark is None else snapshot.tail[mark + 1 :]
    return snapshot.family.tokens(total(uncovered)) > limits.max_tokens


def _no_memory(snapshot: Snapshot, limits: TailLimits) -> Declined:
    if snapshot.memory is None:
        return Declined(PATH, "no_memory", "there is no session memory and the extractor is off")
    if is_empty(snapshot.memory.text):
        return Declined(PATH, "memory_empty", "the session memory holds nothing and the extractor is off")
    return Declined(
        PATH, "memory_behind", f"more than {limits.max_tokens} tokens are not covered and the extractor is off"
    )
