"""Session-memory compaction: the memory stands for what leaves, the newest messages stay. No model is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_compact.compaction.cuts import NOTHING_COVERED, calculate_messages_to_keep_index, index_of_mark, total
from mcp_compact.compaction.extract import Material, extract
from mcp_compact.compaction.fitting import fit
from mcp_compact.compaction.plan import Cleared, CompactionPlan, Declined, Loss, MemoryUpdate, ServiceText, Span
from mcp_compact.compaction.policy import Policy, TailLimits, levels, tail_limits
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import clear_largest
from mcp_compact.compaction.wording import standing_instructions, summary_message
from mcp_compact.messages.memory_document import MemoryDocument, is_empty, parse
from mcp_compact.messages.message import Entry, Record
from mcp_compact.messages.weights import NOTHING, UNITS_PER_TOKEN, Weight

PATH = "session_memory"
MEMORY_SHARE = 4
"""The memory gets at least a quarter of the target: the tail's results are cleared before it gets less."""
FEWEST_MEMORY_TOKENS = 60
MOST_OF_LEAVING = 2
"""The memory takes at most half of what it stands for."""


@dataclass(frozen=True, slots=True)
class NeedsRecords:
    """The memory must be brought up to date: load the live records after `after_seq`, then call again."""

    after_seq: int
    cut_seq: int
    """First record that stays."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call: what is to be compacted, how, and (where they were asked for) the bodies."""

    snapshot: Snapshot
    request: CompactRequest
    policy: Policy
    around: Surroundings
    loaded: Loaded | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """What leaves and what stays, and whether the memory must be written anew first."""

    target: int
    index: int
    kept: tuple[Entry, ...]
    refresh: bool
    covered_seq: int
    """The memory covers the list up to here; 0 for nothing."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The service records, the memory in them, and what of the user's instructions they hold."""

    summary: ServiceText
    document: MemoryDocument
    loss: Loss
    extra: tuple[ServiceText, ...] = ()

    @property
    def service(self) -> tuple[ServiceText, ...]:
        return (self.summary, *self.extra)


def compact_by_memory(attempt: Attempt) -> CompactionPlan | NeedsRecords | Declined:
    """A plan, a reason why this path does not apply, or the records that the extractor needs."""
    if not attempt.policy.sm_compact:
        return Declined(PATH, "switched_off", "session-memory compaction is switched off")
    window = _window(attempt)
    if isinstance(window, Declined):
        return window
    if window.refresh and attempt.loaded is None:
        first = window.kept[0].seq if window.kept else attempt.snapshot.base.last_seq + 1
        return NeedsRecords(window.covered_seq, first)
    return _plan(attempt, window)


def target_of(snapshot: Snapshot, request: CompactRequest, policy: Policy) -> int:
    """Tokens that memory, tail and restored context may take together."""
    if request.target_tokens is not None:
        return request.target_tokens
    return levels(snapshot.context_window, policy.compact_at).compact - 1 - snapshot.overhead_tokens


def leaving_records(records: Sequence[Record], cut_seq: int) -> Loaded:
    """Split loaded records at the cut."""
    return Loaded(tuple(r for r in records if r.seq < cut_seq), tuple(r for r in records if r.seq >= cut_seq))


def _window(attempt: Attempt) -> _Window | Declined:
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
        return Declined(PATH, "nothing_to_compact", "every live message belongs to the part that stays")
    covers_something = refresh and mark != NOTHING_COVERED and snapshot.memory is not None
    covered = (snapshot.memory.mark_seq or 0) if covers_something and snapshot.memory else 0
    return _Window(target, index, snapshot.tail[index:], refresh, covered)


def _mark(snapshot: Snapshot) -> int | None | Declined:
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
    """Must the memory be written first: missing, empty, or too much of the list is newer?"""
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


def _plan(attempt: Attempt, window: _Window) -> CompactionPlan | Declined:
    snapshot, family = attempt.snapshot, attempt.snapshot.family
    room = window.target - max(FEWEST_MEMORY_TOKENS, window.target // MEMORY_SHARE)
    cleared, tail_weight = clear_largest(snapshot, window.kept, room)
    leaving = family.tokens(snapshot.live_weight - total(window.kept))
    frame = family.tokens(_summary("", attempt, window).weight)
    if leaving // MOST_OF_LEAVING < frame + FEWEST_MEMORY_TOKENS // 2:
        detail = f"what could leave ({leaving} tokens) is hardly more than the notes that would stand for it"
        return Declined(PATH, "nothing_to_compact", detail)
    room = min(attempt.policy.memory.total_tokens, window.target - family.tokens(tail_weight))
    memory_tokens = min(room, leaving // MOST_OF_LEAVING)
    written = _written(attempt, window, memory_tokens)
    if isinstance(written, Declined):
        return written
    after = sum((item.weight for item in written.service), tail_weight)
    before, tokens_after = snapshot.live_tokens, family.tokens(after)
    if tokens_after > window.target:
        detail = f"{tokens_after} tokens would remain, {window.target} are allowed"
        return Declined(PATH, "still_above_target", detail)
    if (before - tokens_after) * 100 < attempt.policy.min_gain_percent * before:
        return Declined(PATH, "gain_too_small", f"{before} tokens before, {tokens_after} after")
    return CompactionPlan(
        strategy=PATH,
        trigger=attempt.request.trigger,
        base=snapshot.base,
        service=written.service,
        preserved=window.kept,
        cleared=cleared,
        memory=_memory_update(snapshot, window, written.document),
        weight_before=snapshot.live_weight,
        weight_after=after,
        tokens_before=before,
        tokens_after=tokens_after,
        target_tokens=window.target,
        spans=_spans(snapshot, window.kept, cleared),
        loss=written.loss,
        warnings=tuple(f"only in the archive now: {text[:100]}" for text in written.loss.instructions_missing),
        discovered_tools=snapshot.discovered_tools,
        last_message_uuid=snapshot.last_message_uuid,
        last_user_message_uuid=snapshot.last_user_message_uuid,
        pre_compact_token_count=before + snapshot.overhead_tokens,
        custom_instructions=attempt.request.custom_instructions,
    )


def _written(attempt: Attempt, window: _Window, memory_tokens: int) -> _Written | Declined:
    """The summary with the memory, and the instructions that it lacks.

    Written at most twice: where instructions had to be added, the memory makes room for them.
    """
    first = _once(attempt, window, memory_tokens, ())
    if isinstance(first, Declined) or not first.loss.instructions_missing or not attempt.policy.require_instructions:
        return first
    extra = _attached(first.loss.instructions_missing, attempt, memory_tokens // 2)
    return _once(attempt, window, memory_tokens, extra) if extra else first


def _once(
    attempt: Attempt, window: _Window, memory_tokens: int, extra: tuple[ServiceText, ...]
) -> _Written | Declined:
    family = attempt.snapshot.family
    budget = memory_tokens - sum(family.tokens(item.weight) for item in extra)
    frame = family.tokens(_summary("", attempt, window).weight)
    units = family.units(budget - frame)
    if units < FEWEST_MEMORY_TOKENS * UNITS_PER_TOKEN // 2:
        return Declined(PATH, "still_above_target", "the messages that must stay leave no room for the memory")
    document = _document(attempt, units)
    summary = _summary(document.render(), attempt, window)
    shown = "\n".join(item.text for item in (summary, *extra))
    return _Written(summary, document, _loss(attempt.snapshot, window.kept, shown), extra)


def _document(attempt: Attempt, units: int) -> MemoryDocument:
    snapshot, around, loaded = attempt.snapshot, attempt.around, attempt.loaded
    previous = parse(snapshot.memory.text) if snapshot.memory and not is_empty(snapshot.memory.text) else None
    section = snapshot.family.units(attempt.policy.memory.section_tokens)
    if loaded is None:
        return fit(previous or MemoryDocument(), units, section, around.count, None)
    summaries = tuple(item.text for item in snapshot.service if item.text) if previous is None else ()
    return extract(Material(loaded.records, loaded.kept, previous, summaries), units, section, around.count)


def _summary(memory: str, attempt: Attempt, window: _Window) -> ServiceText:
    around = attempt.around
    text = summary_message(
        memory, tail=bool(window.kept), session_id=around.session_id, must_keep=attempt.request.must_keep
    )
    return ServiceText("summary", "summary", text, Weight(units=around.count([text])[0], messages=1))


def _loss(snapshot: Snapshot, kept: Sequence[Entry], shown: str) -> Loss:
    """What left, and which standing instructions are neither in the written part nor in the tail."""
    seqs, text = {entry.seq for entry in kept}, _folded(shown)
    missing = tuple(i.text for i in snapshot.instructions if i.seq not in seqs and _folded(i.text) not in text)
    count = len(snapshot.instructions)
    return Loss(
        records=snapshot.live_count - len(kept),
        tokens=snapshot.family.tokens(snapshot.live_weight - snapshot.service_weight - total(kept)),
        instructions=count,
        instructions_kept=count - len(missing),
        instructions_missing=missing,
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).lower()


def _attached(missing: Sequence[str], attempt: Attempt, allowed_tokens: int) -> tuple[ServiceText, ...]:
    """The missing instructions as an attachment; the oldest go where they do not all fit."""
    texts = tuple(missing)
    while texts:
        text = standing_instructions(texts)
        weight = Weight(units=attempt.around.count([text])[0], messages=1)
        if attempt.snapshot.family.tokens(weight) <= allowed_tokens:
            return (ServiceText("attachment", "standing_instructions", text, weight),)
        texts = texts[(len(texts) + 1) // 2 :]
    return ()


def _memory_update(snapshot: Snapshot, window: _Window, document: MemoryDocument) -> MemoryUpdate | None:
    """A refreshed memory covers what left; one that was up to date stays as it is."""
    if not window.refresh:
        return None
    last = _last_leaving(snapshot, window.kept)
    return MemoryUpdate(
        document.render(), last.uuid if last else None, last.seq if last else None, "extractor"
    )


def _last_leaving(snapshot: Snapshot, kept: Sequence[Entry]) -> Entry | None:
    at = len(snapshot.tail) - len(kept) - 1
    return snapshot.tail[at] if at >= 0 else None


def _spans(snapshot: Snapshot, kept: Sequence[Entry], cleared: Sequence[Cleared]) -> tuple[Span, ...]:
    family = snapshot.family
    gone = snapshot.live_weight - snapshot.service_weight - total(kept)
    freed = sum((item.freed for item in cleared), NOTHING)
    last = _last_leaving(snapshot, kept)
    spans = [Span("summarised", snapshot.live_count - len(kept), family.tokens(gone), None, last.uuid if last else None)]
    if cleared:
        spans.append(Span("cleared", len(cleared), family.tokens(freed)))
    if kept:
        spans.append(Span("kept", len(kept), family.tokens(total(kept) - freed), kept[0].uuid, kept[-1].uuid))
    return tuple(spans)
