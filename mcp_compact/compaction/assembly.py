"""From a window and a memory to a plan: the summary message, the instructions that it lacks, the honest figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, Window
from mcp_compact.compaction.cuts import total
from mcp_compact.compaction.plan import Cleared, CompactionPlan, Declined, Loss, MemoryUpdate, ServiceText, Span
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import clear_largest
from mcp_compact.compaction.wording import standing_instructions, summary_message
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import NOTHING, UNITS_PER_TOKEN, Weight

MEMORY_SHARE = 4
"""The memory gets at least a quarter of the target: the tail's results are cleared before it gets less."""
MOST_OF_LEAVING = 2
"""The memory takes at most half of what it stands for."""

WriteMemory = Callable[[int], str | Declined]
"""The text that stands for what leaves, in so many units; or why there is none."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The service records, and what of the user's instructions they hold."""

    summary: ServiceText
    loss: Loss
    extra: tuple[ServiceText, ...] = ()

    @property
    def service(self) -> tuple[ServiceText, ...]:
        return (self.summary, *self.extra)


def assemble(
    attempt: Attempt, window: Window, strategy: str, write: WriteMemory
) -> tuple[CompactionPlan, str] | Declined:
    """A plan and the memory text in it. Declines where it would not fit, or not gain enough."""
    snapshot, family = attempt.snapshot, attempt.snapshot.family
    room = window.target - max(FEWEST_MEMORY_TOKENS, window.target // MEMORY_SHARE)
    cleared, tail_weight = clear_largest(snapshot, window.kept, room, attempt.policy.micro.exclude_tools)
    leaving = family.tokens(snapshot.live_weight - total(window.kept))
    frame = family.tokens(_summary("", attempt, window).weight)
    if leaving // MOST_OF_LEAVING < frame + FEWEST_MEMORY_TOKENS // 2:
        detail = f"what could leave ({leaving} tokens) is hardly more than the notes that would stand for it"
        return Declined(strategy, "nothing_to_compact", detail)
    room = min(attempt.policy.memory.total_tokens, window.target - family.tokens(tail_weight))
    written = _written(attempt, window, min(room, leaving // MOST_OF_LEAVING), write)
    if isinstance(written, Declined):
        return Declined(strategy, written.reason, written.detail)
    after = sum((item.weight for item in written.service), tail_weight)
    before, tokens_after = snapshot.live_tokens, family.tokens(after)
    if tokens_after > window.target:
        detail = f"{tokens_after} tokens would remain, {window.target} are allowed"
        return Declined(strategy, "still_above_target", detail)
    if (before - tokens_after) * 100 < attempt.policy.min_gain_percent * before:
        return Declined(strategy, "gain_too_small", f"{before} tokens before, {tokens_after} after")
    return _plan(attempt, window, strategy, cleared, after, written), written.summary.text


def _plan(
    attempt: Attempt, window: Window, strategy: str, cleared: tuple[Cleared, ...], after: Weight, written: _Written
) -> CompactionPlan:
    snapshot = attempt.snapshot
    return CompactionPlan(
        strategy=strategy,
        trigger=attempt.request.trigger,
        base=snapshot.base,
        service=written.service,
        preserved=window.kept,
        cleared=cleared,
        memory=None,
        weight_before=snapshot.live_weight,
        weight_after=after,
        tokens_before=snapshot.live_tokens,
        tokens_after=snapshot.family.tokens(after),
        target_tokens=window.target,
        spans=_spans(snapshot, window, cleared),
        loss=written.loss,
        warnings=(
            *attempt.around.warnings,
            *(f"only in the archive now: {text[:100]}" for text in written.loss.instructions_missing),
        ),
        discovered_tools=snapshot.discovered_tools,
        last_message_uuid=snapshot.last_message_uuid,
        last_user_message_uuid=snapshot.last_user_message_uuid,
        pre_compact_token_count=snapshot.live_tokens + snapshot.overhead_tokens,
        custom_instructions=attempt.request.custom_instructions,
    )


def memory_update(snapshot: Snapshot, window: Window, text: str) -> MemoryUpdate:
    """A memory that covers what leaves."""
    last = window.last_leaving(snapshot)
    return MemoryUpdate(text, last.uuid if last else None, last.seq if last else None, "extractor")


def _written(attempt: Attempt, window: Window, memory_tokens: int, write: WriteMemory) -> _Written | Declined:
    """The summary with the memory, and the instructions that it lacks.

    Written at most twice: where instructions had to be added, the memory makes room for them.
    """
    given = _hook_result(attempt)
    first = _once(attempt, window, memory_tokens, write, given)
    if isinstance(first, Declined) or not first.loss.instructions_missing or not attempt.policy.require_instructions:
        return first
    extra = _attached(first.loss.instructions_missing, attempt, memory_tokens // 2)
    return _once(attempt, window, memory_tokens, write, (*extra, *given)) if extra else first


def _hook_result(attempt: Attempt) -> tuple[ServiceText, ...]:
    text = attempt.request.hook_context.strip()
    if not text:
        return ()
    weight = Weight(units=attempt.around.count([text])[0], messages=1)
    return (ServiceText("hook_result", "session_start", text, weight),)


def _once(
    attempt: Attempt, window: Window, memory_tokens: int, write: WriteMemory, extra: tuple[ServiceText, ...]
) -> _Written | Declined:
    family = attempt.snapshot.family
    budget = memory_tokens - sum(family.tokens(item.weight) for item in extra)
    units = family.units(budget - family.tokens(_summary("", attempt, window).weight))
    if units < FEWEST_MEMORY_TOKENS * UNITS_PER_TOKEN // 2:
        return Declined("", "still_above_target", "the messages that must stay leave no room for the memory")
    memory = write(units)
    if isinstance(memory, Declined):
        return memory
    summary = _summary(memory, attempt, window)
    shown = "\n".join(item.text for item in (summary, *extra))
    return _Written(summary, _loss(attempt.snapshot, window.kept, shown), extra)


def _summary(memory: str, attempt: Attempt, window: Window) -> ServiceText:
    around = attempt.around
    text = summary_message(
        memory, tail=bool(window.kept), session_id=around.session_id, must_keep=attempt.request.must_keep
    )
    return ServiceText("summary", "summary", text, Weight(units=around.count([text])[0], messages=1))


def _loss(snapshot: Snapshot, kept: Sequence[Entry], shown: str) -> Loss:
    """What left, and which standing instructions are neither in the written part nor in the tail."""
    seqs, text = {entry.seq for entry in kept}, folded(shown)
    missing = tuple(i.text for i in snapshot.instructions if i.seq not in seqs and folded(i.text) not in text)
    count = len(snapshot.instructions)
    return Loss(
        records=snapshot.live_count - len(kept),
        tokens=snapshot.family.tokens(snapshot.live_weight - snapshot.service_weight - total(kept)),
        instructions=count,
        instructions_kept=count - len(missing),
        instructions_missing=missing,
    )


def folded(text: str) -> str:
    """The text with white space and case evened out: two texts that fold alike say the same words."""
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


def _spans(snapshot: Snapshot, window: Window, cleared: Sequence[Cleared]) -> tuple[Span, ...]:
    family, kept = snapshot.family, window.kept
    gone = snapshot.live_weight - snapshot.service_weight - total(kept)
    freed = sum((item.freed for item in cleared), NOTHING)
    last = window.last_leaving(snapshot)
    number = snapshot.live_count - len(kept)
    spans = [Span("summarised", number, family.tokens(gone), None, last.uuid if last else None)]
    if cleared:
        spans.append(Span("cleared", len(cleared), family.tokens(freed)))
    if kept:
        spans.append(Span("kept", len(kept), family.tokens(total(kept) - freed), kept[0].uuid, kept[-1].uuid))
    return tuple(spans)
