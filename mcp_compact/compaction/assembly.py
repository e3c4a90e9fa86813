"""From a window and a memory to a plan: the summary message, the instructions that it lacks, the honest figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mcp_compact.compaction.attachments import Item
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, Window
from mcp_compact.compaction.cuts import total
from mcp_compact.compaction.plan import Cleared, CompactionPlan, Declined, Loss, MemoryUpdate, ServiceText, Span
from mcp_compact.compaction.restore import PinRoom, Put, Restorable, Rule, restorable
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.tail import MOST_OF_LEAVING, fitted_tail
from mcp_compact.compaction.wording import summary_message
from mcp_compact.messages.masking import masked
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import NOTHING, UNITS_PER_TOKEN, Weight

PINS_SHARE = 75
"""Per cent of the room before the tail that pinned things may take; pinned instructions may take more."""
WRITTEN_AT_MOST = 3

WriteMemory = Callable[[int], str | Declined]
"""The text that stands for what leaves, in so many units; or why there is none."""


@dataclass(frozen=True, slots=True)
class _Room:
    """Tokens for what stands before the tail."""

    total: int
    """As far as the target goes."""
    leaving: int
    """Of what leaves."""
    fair: int
    """Half of what leaves; of the memory that was there before, all."""
    frame: int
    """The summary message without a memory in it."""
    memory_limit: int

    @property
    def memory(self) -> int:
        """For the memory in its frame, where nothing must be put back."""
        return self.beside(0)

    def beside(self, put_tokens: int) -> int:
        """For the memory in its frame, beside what must be put back."""
        fair = max(self.fair - put_tokens, self.frame + FEWEST_MEMORY_TOKENS)
        return min(self.memory_limit, self.total - put_tokens, fair)

    @property
    def pins(self) -> PinRoom:
        """Pins come before the memory's size; of the user's own instructions the memory holds most already."""
        least = self.frame + FEWEST_MEMORY_TOKENS
        most = min(self.total, self.leaving) - least
        # By the target, not by what leaves: where they make the context no smaller, the gain rule declines.
        said = max(self.memory // 2, min(self.total - least, self.total // 4))
        return PinRoom(most, said, min(self.total * PINS_SHARE // 100, most))


@dataclass(frozen=True, slots=True)
class _Written:
    """The service records, and what of the user's instructions they hold."""

    summary: ServiceText
    put: Put
    given: tuple[ServiceText, ...]
    """What hooks added."""

    @property
    def service(self) -> tuple[ServiceText, ...]:
        return (self.summary, *self.put.texts, *self.given)

    @property
    def weight(self) -> Weight:
        return sum((item.weight for item in self.service), NOTHING)

    @property
    def shown(self) -> str:
        return "\n".join(item.text for item in self.service)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is settled before a memory is written."""

    cleared: tuple[Cleared, ...]
    tail: Weight
    leaving: int
    """Tokens of what leaves."""
    frame: Weight
    """The summary message without a memory in it."""

    def hopeless(self, attempt: Attempt, strategy: str) -> Declined | None:
        """Why no memory would do, not even an empty one."""
        snapshot, family = attempt.snapshot, attempt.snapshot.family
        if self.leaving // MOST_OF_LEAVING < family.tokens(self.frame) + FEWEST_MEMORY_TOKENS // 2:
            detail = f"what could leave ({self.leaving} tokens) is hardly more than the notes that would stand for it"
            return Declined(strategy, "nothing_to_compact", detail)
        before, least = snapshot.live_tokens, family.tokens(self.frame + self.tail)
        if _gains_too_little(attempt, least):
            detail = f"{before} tokens before, {least} after, the notes not yet counted"
            return Declined(strategy, "gain_too_small", detail)
        return None


def hopeless(attempt: Attempt, window: Window, strategy: str) -> Declined | None:
    """Why `assemble` would decline whatever were written: nobody need be asked to write."""
    return _known(attempt, window).hopeless(attempt, strategy)


def _known(attempt: Attempt, window: Window) -> _Known:
    snapshot = attempt.snapshot
    tail = fitted_tail(attempt, window)
    leaving = snapshot.family.tokens(snapshot.live_weight - total(window.kept))
    return _Known(tail.cleared, tail.weight, leaving, _summary("", attempt, window).weight)


def _gains_too_little(attempt: Attempt, tokens_after: int) -> bool:
    before = attempt.snapshot.live_tokens
    return (before - tokens_after) * 100 < attempt.policy.min_gain_percent * before


def assemble(
    attempt: Attempt, window: Window, strategy: str, write: WriteMemory
) -> tuple[CompactionPlan, str] | Declined:
    """A plan and the memory text in it. Declines where it would not fit, or not gain enough."""
    snapshot, family, known = attempt.snapshot, attempt.snapshot.family, _known(attempt, window)
    if (declined := known.hopeless(attempt, strategy)) is not None:
        return declined
    tail_weight, leaving, frame = known.tail, known.leaving, family.tokens(known.frame)
    # A target that was asked for is room to be used, so an older memory need not shrink to half each time.
    older = snapshot.service_weight if attempt.request.target_tokens else NOTHING
    fair = (leaving + family.tokens(older)) // MOST_OF_LEAVING
    total_room, limit = window.target - family.tokens(tail_weight), attempt.policy.memory.total_tokens
    within = _Room(total_room, leaving, fair, frame, limit)
    things = restorable(attempt, window)
    written = _written(attempt, window, things, within, write)
    if isinstance(written, Declined):
        return Declined(strategy, written.reason, written.detail)
    written = _with_found(written, things, tail_weight, window.target)
    before, tokens_after = snapshot.live_tokens, family.tokens(written.weight + tail_weight)
    if tokens_after > window.target:
        detail = f"{tokens_after} tokens would remain, {window.target} are allowed"
        return Declined(strategy, "still_above_target", detail)
    if _gains_too_little(attempt, tokens_after):
        return Declined(strategy, "gain_too_small", f"{before} tokens before, {tokens_after} after")
    return _plan(attempt, window, strategy, known.cleared, tail_weight, things, written), written.summary.text


def _with_found(written: _Written, things: Restorable, tail: Weight, target: int) -> _Written:
    """With what was found, in the room that is left: never more than half of the context there was."""
    snapshot = things.attempt.snapshot
    room = min(target, snapshot.live_tokens // 2) - snapshot.family.tokens(written.weight + tail)
    return replace(written, put=things.put_found(written.shown, written.put, room))


def _plan(  # noqa: PLR0913, PLR0917 - everything that a plan is made of
    attempt: Attempt,
    window: Window,
    strategy: str,
    cleared: tuple[Cleared, ...],
    tail_weight: Weight,
    things: Restorable,
    written: _Written,
) -> CompactionPlan:
    snapshot = attempt.snapshot
    after, loss = written.weight + tail_weight, _loss(snapshot, window.kept, things, written.shown)
    # Where there is no archive, whoever called keeps what was given.
    where = "only in the archive now" if attempt.around.session_id else "not in the new list, only in the old one"
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
        loss=loss,
        warnings=(
            *attempt.around.warnings,
            *(f"{where}: {masked(text)[:100]}" for text in loss.instructions_missing),
            *(f"no room for what was pinned: {masked(name)[:100]}" for name in written.put.left_out),
        ),
        discovered_tools=things.tools,
        last_message_uuid=snapshot.last_message_uuid,
        last_user_message_uuid=snapshot.last_user_message_uuid,
        pre_compact_token_count=snapshot.live_tokens + snapshot.overhead_tokens,
        custom_instructions=attempt.request.custom_instructions,
    )


def memory_update(snapshot: Snapshot, window: Window, text: str) -> MemoryUpdate:
    """A memory that covers what leaves."""
    last, before = window.last_leaving(snapshot), snapshot.memory
    if last is not None:
        return MemoryUpdate(text, last.uuid, last.seq, "extractor")
    # No message leaves, only an older memory becomes shorter: it covers what it covered.
    return MemoryUpdate(text, before.mark_uuid if before else None, before.mark_seq if before else None, "extractor")


def _written(
    attempt: Attempt, window: Window, things: Restorable, room: _Room, write: WriteMemory
) -> _Written | Declined:
    """The summary with the memory, and the pins and instructions that it lacks.

    Where something must be put back the memory makes room for it and is written again; a shorter memory may
    lack more, so this is repeated, but not without end.
    """
    given, put = _hook_result(attempt), Put()
    rules: dict[Rule, None] = {}
    items: dict[Item, None] = {}
    for _ in range(WRITTEN_AT_MOST):
        written = _once(attempt, window, room, write, put, given)
        if isinstance(written, Declined):
            return written
        lacking, absent = things.required("\n".join(text.text for text in (written.summary, *given)))
        if rules.keys() >= set(lacking) and items.keys() >= set(absent):
            return written
        rules |= dict.fromkeys(lacking)
        items |= dict.fromkeys(absent)
        # In their own order, whichever pass missed them.
        must = [rule for rule in things.rules if rule in rules], [item for item in things.pinned if item in items]
        put = things.put_required(*must, room.pins)
    return written


def _hook_result(attempt: Attempt) -> tuple[ServiceText, ...]:
    text = attempt.request.hook_context.strip()
    if not text:
        return ()
    weight = Weight(units=attempt.around.count([text])[0], messages=1)
    return (ServiceText("hook_result", "session_start", text, weight),)


def _once(
    attempt: Attempt, window: Window, room: _Room, write: WriteMemory, put: Put, given: tuple[ServiceText, ...]
) -> _Written | Declined:
    family = attempt.snapshot.family
    budget = room.beside(sum(family.tokens(item.weight) for item in (*put.texts, *given)))
    units = family.units(budget - room.frame)
    if units < FEWEST_MEMORY_TOKENS * UNITS_PER_TOKEN // 2:
        return Declined("", "still_above_target", "the messages that must stay leave no room for the memory")
    memory = write(units)
    if isinstance(memory, Declined):
        return memory
    return _Written(_summary(memory, attempt, window), put, given)


def _summary(memory: str, attempt: Attempt, window: Window) -> ServiceText:
    around = attempt.around
    text = summary_message(
        memory, tail=bool(window.kept), session_id=around.session_id, must_keep=attempt.request.must_keep
    )
    return ServiceText("summary", "summary", text, Weight(units=around.count([text])[0], messages=1))


def _loss(snapshot: Snapshot, kept: Sequence[Entry], things: Restorable, shown: str) -> Loss:
    """What left, and which instructions are neither in the written part nor in the tail."""
    missing = tuple(rule.text for rule in things.missing_rules(shown))
    count = len(things.rules)
    return Loss(
        records=snapshot.live_count - len(kept),
        tokens=snapshot.family.tokens(snapshot.live_weight - snapshot.service_weight - total(kept)),
        instructions=count,
        instructions_kept=count - len(missing),
        instructions_missing=missing,
    )


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
