"""Session-memory compaction: the memory stands for what leaves, the newest messages stay. No model is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_compact.compaction.cuts import (
    calculate_messages_to_keep_index,
    index_of_mark,
    last_round_index,
    total,
)
from mcp_compact.compaction.extract import Material, extract
from mcp_compact.compaction.plan import Cleared, CompactionPlan, Declined, Loss, MemoryUpdate, ServiceText, Span
from mcp_compact.compaction.policy import Policy, TailLimits, levels, tail_limits
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.wording import standing_instructions, summary_message
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.memory_document import MemoryDocument, fit, is_empty, parse
from mcp_compact.messages.message import Entry, Record
from mcp_compact.messages.weights import NOTHING, UNITS_PER_TOKEN, Weight

PATH = "session_memory"
MEMORY_SHARE = 4
"""The memory gets at least a quarter of the target: the tail's results are cleared before it gets less."""
FEWEST_MEMORY_TOKENS = 60


@dataclass(frozen=True, slots=True)
class NeedsRecords:
    """The memory must be brought up to date: load the live records after `after_seq`, then call again."""

    after_seq: int
    cut_seq: int
    """First record that stays."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The cut of one call: what leaves, what stays, and whether the memory must be written anew first."""

    target: int
    index: int
    kept: tuple[Entry, ...]
    refresh: bool
    covered_seq: int
    """The memory covers the list up to here; 0 for nothing."""


def compact_by_memory(
    snapshot: Snapshot, request: CompactRequest, policy: Policy, around: Surroundings, loaded: Loaded | None = None
) -> CompactionPlan | NeedsRecords | Declined:
    """A plan, a reason why this path does not apply, or the records that the extractor needs."""
    if not policy.sm_compact:
        return Declined(PATH, "switched_off", "session-memory compaction is switched off")
    window = _window(snapshot, request, policy)
    if isinstance(window, Declined):
        return window
    if window.refresh and loaded is None:
        first = window.kept[0].seq if window.kept else snapshot.base.last_seq + 1
        return NeedsRecords(window.covered_seq, first)
    return _plan(snapshot, request, policy, around, window, loaded)


def target_of(snapshot: Snapshot, request: CompactRequest, policy: Policy) -> int:
    """Tokens that memory, tail and restored context may take together."""
    if request.target_tokens is not None:
        return request.target_tokens
    return levels(snapshot.context_window, policy.compact_at).compact - 1 - snapshot.overhead_tokens


def _window(snapshot: Snapshot, request: CompactRequest, policy: Policy) -> _Window | Declined:
    target = target_of(snapshot, request, policy)
    if target < FEWEST_MEMORY_TOKENS:
        return Declined(PATH, "no_room", f"{snapshot.overhead_tokens} tokens of overhead leave {target} for messages")
    limits = tail_limits(policy.tail, target, capped=request.target_tokens is not None)
    mark = _mark(snapshot)
    if isinstance(mark, Declined):
        return mark
    if _must_refresh(snapshot, mark, limits):
        if not policy.session_memory:
            return _no_memory(snapshot, limits)
        index = calculate_messages_to_keep_index(snapshot.tail, None, limits, snapshot.family)
        covered = snapshot.memory.mark_seq if snapshot.memory and mark != -1 else None
        window = _Window(target, index, snapshot.tail[index:], refresh=True, covered_seq=covered or 0)
    else:
        index = calculate_messages_to_keep_index(snapshot.tail, mark, limits, snapshot.family)
        window = _Window(target, index, snapshot.tail[index:], refresh=False, covered_seq=0)
    if window.index == 0 and snapshot.tail_is_all:
        return Declined(PATH, "nothing_to_compact", "every live message belongs to the part that stays")
    return window


def _mark(snapshot: Snapshot) -> int | None | Declined:
    """Index of the last covered entry, None where the memory covers everything."""
    memory = snapshot.memory
    if memory is None or memory.covers_all:
        return None if memory else -1
    if memory.mark_uuid is not None and memory.mark_seq is None:
        return Declined(PATH, "mark_not_found", "the record that the memory was written up to is not in the archive")
    return index_of_mark(snapshot.tail, memory.mark_seq)


def _must_refresh(snapshot: Snapshot, mark: int | None, limits: TailLimits) -> bool:
    if snapshot.memory is None or is_empty(snapshot.memory.text):
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


def _plan(
    snapshot: Snapshot,
    request: CompactRequest,
    policy: Policy,
    around: Surroundings,
    window: _Window,
    loaded: Loaded | None,
) -> CompactionPlan | Declined:
    family = snapshot.family
    room = window.target - max(FEWEST_MEMORY_TOKENS, window.target // MEMORY_SHARE)
    cleared, tail_weight = clear_largest(snapshot, window.kept, room, around)
    memory_tokens = min(policy.memory.total_tokens, window.target - family.tokens(tail_weight))
    built = _service(snapshot, request, policy, around, window, loaded, memory_tokens)
    if isinstance(built, Declined):
        return built
    service, document, loss, warnings = built
    after = sum((item.weight for item in service), tail_weight)
    tokens_after = family.tokens(after)
    if tokens_after > window.target:
        detail = f"{tokens_after} tokens would remain, {window.target} are allowed"
        return Declined(PATH, "still_above_target", detail)
    before = snapshot.live_tokens
    if (before - tokens_after) * 100 < policy.min_gain_percent * before:
        return Declined(PATH, "gain_too_small", f"{before} tokens before, {tokens_after} after")
    return CompactionPlan(
        strategy=PATH,
        trigger=request.trigger,
        base=snapshot.base,
        service=service,
        preserved=window.kept,
        cleared=cleared,
        memory=_memory_update(snapshot, window, document),
        weight_before=snapshot.live_weight,
        weight_after=after,
        tokens_before=before,
        tokens_after=tokens_after,
        target_tokens=window.target,
        spans=_spans(snapshot, window.kept, cleared),
        loss=loss,
        warnings=warnings,
        discovered_tools=snapshot.discovered_tools,
        last_message_uuid=snapshot.last_message_uuid,
        last_user_message_uuid=snapshot.last_user_message_uuid,
        pre_compact_token_count=before + snapshot.overhead_tokens,
        custom_instructions=request.custom_instructions,
    )


def _service(
    snapshot: Snapshot,
    request: CompactRequest,
    policy: Policy,
    around: Surroundings,
    window: _Window,
    loaded: Loaded | None,
    memory_tokens: int,
) -> tuple[tuple[ServiceText, ...], MemoryDocument, Loss, tuple[str, ...]] | Declined:
    """The service records: the summary with the memory, and the instructions that it lacks.

    Written at most twice: if instructions had to be added, the memory makes room for them.
    """
    extra: tuple[ServiceText, ...] = ()
    for _ in range(2):
        budget = memory_tokens - sum(snapshot.family.tokens(item.weight) for item in extra)
        frame = _summary("", request, around, window)
        units = snapshot.family.units(budget) - frame.weight.units - snapshot.family.units(snapshot.family.per_message)
        if units < FEWEST_MEMORY_TOKENS * UNITS_PER_TOKEN // 2:
            return Declined(PATH, "still_above_target", "the messages that must stay leave no room for the memory")
        document = _document(snapshot, policy, around, loaded, units)
        summary = _summary(document.render(), request, around, window)
        missing, loss = _instructions(snapshot, window.kept, summary.text)
        if not missing or not policy.require_instructions or extra:
            break
        extra = _attached(missing, snapshot, around, memory_tokens // 2)
    loss = _after_attaching(loss, extra)
    warnings = tuple(f"a standing instruction is only in the archive: {text[:80]}" for text in loss.instructions_missing)
    leaving = snapshot.live_count - len(window.kept)
    left = snapshot.family.tokens(snapshot.live_weight - snapshot.service_weight - total(window.kept))
    return (summary, *extra), document, replace(loss, records=leaving, tokens=left), warnings


def _document(
    snapshot: Snapshot, policy: Policy, around: Surroundings, loaded: Loaded | None, units: int
) -> MemoryDocument:
    previous = parse(snapshot.memory.text) if snapshot.memory and not is_empty(snapshot.memory.text) else None
    section = snapshot.family.units(policy.memory.section_tokens)
    if loaded is None and previous is not None:
        return fit(previous, units, section, around.count, None)
    records = loaded.records if loaded else ()
    kept = loaded.kept if loaded else ()
    summaries = tuple(item.text for item in snapshot.service if item.text and previous is None)
    return extract(Material(records, kept, previous, summaries), units, section, around.count)


def _summary(memory: str, request: CompactRequest, around: Surroundings, window: _Window) -> ServiceText:
    text = summary_message(
        memory, tail=bool(window.kept), session_id=around.session_id, must_keep=request.must_keep
    )
    return ServiceText("summary", "summary", text, Weight(units=around.count([text])[0], messages=1))


def _instructions(snapshot: Snapshot, kept: Sequence[Entry], summary: str) -> tuple[tuple[str, ...], Loss]:
    """Which standing instructions are in neither summary nor tail."""
    seqs = {entry.seq for entry in kept}
    text = _folded(summary)
    missing = tuple(i.text for i in snapshot.instructions if i.seq not in seqs and _folded(i.text) not in text)
    count = len(snapshot.instructions)
    return missing, Loss(
        instructions=count, instructions_kept=count - len(missing), instructions_missing=missing
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).lower()


def _attached(
    missing: Sequence[str], snapshot: Snapshot, around: Surroundings, allowed_tokens: int
) -> tuple[ServiceText, ...]:
    """The missing instructions, newest first to be kept, as far as they fit."""
    texts = tuple(missing)
    while texts:
        text = standing_instructions(texts)
        weight = Weight(units=around.count([text])[0], messages=1)
        if snapshot.family.tokens(weight) <= allowed_tokens:
            return (ServiceText("attachment", "standing_instructions", text, weight),)
        texts = texts[(len(texts) + 1) // 2 :]
    return ()


def _after_attaching(loss: Loss, extra: Sequence[ServiceText]) -> Loss:
    added = "\n".join(_folded(item.text) for item in extra)
    missing = tuple(text for text in loss.instructions_missing if _folded(text) not in added)
    return replace(loss, instructions_missing=missing, instructions_kept=loss.instructions - len(missing))


def clear_largest(
    snapshot: Snapshot, kept: Sequence[Entry], allowed_tokens: int, around: Surroundings
) -> tuple[tuple[Cleared, ...], Weight]:
    """Clear the tail's largest results until it fits; those that no answer has followed yet come last."""
    family, weight = snapshot.family, total(kept)
    seqs = {entry.seq for entry in kept}
    unseen_from = kept[last_round_index(kept)].seq if kept else 0
    candidates = [r for r in snapshot.results if r.seq in seqs and not r.cleared]
    candidates.sort(key=lambda r: (r.seq >= unseen_from, -(r.weight.units + r.weight.media * UNITS_PER_TOKEN), r.seq))
    cleared: list[Cleared] = []
    for result in candidates:
        if family.tokens(weight) <= allowed_tokens:
            break
        freed = result.weight - result.cleared_weight
        if freed.units <= 0 and freed.media <= 0:
            continue
        place = Clearing(ClearKind.RESULT, result.uuid, result.block, None, result.tool_use_id)
        cleared.append(Cleared(place, freed, result.tool))
        weight -= freed
    return tuple(cleared), weight


def _memory_update(snapshot: Snapshot, window: _Window, document: MemoryDocument) -> MemoryUpdate | None:
    """A refreshed memory covers what left; an old one stays as it is."""
    if not window.refresh:
        return None
    before = [entry for entry in snapshot.tail if not window.kept or entry.seq < window.kept[0].seq]
    last = before[-1] if before else None
    return MemoryUpdate(document.render(), last.uuid if last else None, last.seq if last else None, "extractor")


def _spans(snapshot: Snapshot, kept: Sequence[Entry], cleared: Sequence[Cleared]) -> tuple[Span, ...]:
    family = snapshot.family
    gone = snapshot.live_weight - snapshot.service_weight - total(kept)
    freed = sum((item.freed for item in cleared), NOTHING)
    before = [e for e in snapshot.tail if not kept or e.seq < kept[0].seq]
    spans = [Span("summarised", snapshot.live_count - len(kept), family.tokens(gone), None, before[-1].uuid if before else None)]
    if cleared:
        spans.append(Span("cleared", len(cleared), family.tokens(freed)))
    if kept:
        spans.append(Span("kept", len(kept), family.tokens(total(kept) - freed), kept[0].uuid, kept[-1].uuid))
    return tuple(spans)


def leaving_records(records: Sequence[Record], cut_seq: int) -> Loaded:
    """Split loaded records at the cut."""
    return Loaded(tuple(r for r in records if r.seq < cut_seq), tuple(r for r in records if r.seq >= cut_seq))
