"""Compaction of a conversation that is held in memory: the snapshot of a live context, and a plan applied to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mcp_compact.compaction.attachments import PINS, instructions_in, read_back
from mcp_compact.compaction.attempt import Attempt, NeedsRecords
from mcp_compact.compaction.cuts import total
from mcp_compact.compaction.micro import Clearable
from mcp_compact.compaction.pipeline import Finished, NothingDone, start
from mcp_compact.compaction.plan import ClearingPlan, CompactionPlan
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import (
    Base,
    CallFacts,
    Instruction,
    Memory,
    Registered,
    ResultFacts,
    ServiceRecord,
    Snapshot,
)
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.compaction.weighing import Weighed, cleared_input, weigh_records
from mcp_compact.messages.blocks import ToolResultBlock, ToolUseBlock
from mcp_compact.messages.clearing import apply_clearings
from mcp_compact.messages.codec import body_hash, canonical, decode_message
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.live import LiveContext, live_hash, state_hash
from mcp_compact.messages.markers import ClearKind
from mcp_compact.messages.message import Entry, Record, entry_of
from mcp_compact.messages.repeats import counting_results
from mcp_compact.messages.valid import Turn
from mcp_compact.messages.weights import NOTHING, Family, Weight, total_weight
from mcp_compact.messages.words import standing_instructions, users_words


@dataclass(frozen=True, slots=True)
class Conversation:
    """A live context with the weights of its records (clearings applied)."""

    live: LiveContext
    family: Family
    weighed: dict[MessageUuid, Weighed]
    memory: Memory | None = None
    context_window: int | None = None
    overhead_tokens: int = 0
    instructions: tuple[Instruction, ...] = field(default=())
    registered: tuple[Registered, ...] = field(default=())


def conversation(  # noqa: PLR0913 - what is known beside the messages
    live: LiveContext,
    family: Family,
    around: Surroundings,
    *,
    memory: Memory | None = None,
    context_window: int | None = None,
    overhead_tokens: int = 0,
    registered: tuple[Registered, ...] = (),
) -> Conversation:
    """Weigh a live context and note the user's standing instructions in it."""
    shown = [with_clearings(record, live, around) for record in live.all]
    weighed = dict(zip((r.uuid for r in shown), weigh_records(shown, around.count, around.cleared), strict=True))
    said = instructions_of(live.records)
    kept = [Instruction(0, text) for text in kept_instructions(live.service) if text not in {i.text for i in said}]
    return Conversation(live, family, weighed, memory, context_window, overhead_tokens, (*kept, *said), registered)


def kept_instructions(service: Sequence[Record]) -> tuple[str, ...]:
    """The standing instructions that an earlier compaction put back."""
    items = [item for record in service if (item := read_back(record.text)) is not None]
    return tuple(text for item in items if item.kind == PINS for text in instructions_in(item))


def instructions_of(records: Sequence[Record]) -> tuple[Instruction, ...]:
    """The user's standing instructions, each once (the newest place counts), in order."""
    found: dict[str, Instruction] = {}
    for record in records:
        for text in standing_instructions(users_words(record)):
            found.pop(text, None)
            found[text] = Instruction(record.seq, text)
    return tuple(sorted(found.values(), key=lambda item: item.seq))


def with_clearings(record: Record, live: LiveContext, around: Surroundings) -> Record:
    """The record as the model is sent it."""
    clearings = live.clearings.get(record.uuid, ())
    if not clearings or record.message is None:
        return record
    blocks = apply_clearings(record.blocks, clearings, around.cleared)
    message = replace(record.message, blocks=blocks, content=[block.raw for block in blocks])
    return replace(record, message=message)


def entries(talk: Conversation) -> tuple[Entry, ...]:
    """The live records without service records, as the algorithms see them."""
    return tuple(entry_of(record, talk.weighed[record.uuid].best) for record in talk.live.records)


def snapshot_of(talk: Conversation) -> Snapshot:
    """One reading of the whole live context."""
    tail = entries(talk)
    service = tuple(_service(record, talk.weighed[record.uuid].best) for record in talk.live.service)
    newest_user = next((r.uuid for r in reversed(talk.live.records) if r.type == "user" and r.is_text_holding), None)
    return Snapshot(
        base=_base(talk.live),
        family=talk.family,
        tail=tail,
        tail_is_all=True,
        live_weight=total(tail) + sum((item.weight for item in service), NOTHING),
        live_count=len(tail),
        service=service,
        results=tuple(result_facts(talk)),
        memory=talk.memory,
        instructions=talk.instructions,
        discovered_tools=_told_tools(talk.live),
        registered=talk.registered,
        context_window=talk.context_window,
        overhead_tokens=talk.overhead_tokens,
        last_message_uuid=talk.live.records[-1].uuid if talk.live.records else None,
        last_user_message_uuid=newest_user,
    )


def _service(record: Record, weight: Weight) -> ServiceRecord:
    kind = "attachment" if read_back(record.text) else ("hook_result" if record.is_meta else "summary")
    return ServiceRecord(record.uuid, record.seq, weight, record.text, kind)


def _told_tools(live: LiveContext) -> tuple[str, ...]:
    """Names of tools that the last boundary told of."""
    told = live.boundary.metadata.get("preCompactDiscoveredTools") if live.boundary else None
    return tuple(sorted({name for name in told if isinstance(name, str)})) if isinstance(told, list) else ()


def result_facts(talk: Conversation) -> list[ResultFacts]:
    """The tool results of the live records that count and are not cleared, with their tools' names."""
    calls = _calls(talk)
    found: list[_Answer] = [answer for record in talk.live.records for answer in _answers(record, talk, calls)]
    # What stands before its call answers nothing and counts by itself.
    named = (((a.result.tool_use_id, a.call is not None), a.result.is_error, (a.record.seq, a.block)) for a in found)
    counting = set(counting_results(named).values())
    return [
        _facts(answer, talk) for answer in found if not answer.cleared and (answer.record.seq, answer.block) in counting
    ]


@dataclass(frozen=True, slots=True)
class _Answer:
    """A result, where it stands, and the call that it answers, with its tool's name."""

    record: Record
    block: int
    number: int
    result: ToolResultBlock
    cleared: bool
    call: tuple[str, CallFacts] | None


def _answers(record: Record, talk: Conversation, calls: dict[ToolUseId, list[tuple[str, CallFacts]]]) -> list[_Answer]:
    at = [i for i, b in enumerate(record.blocks) if isinstance(b, ToolResultBlock) and not b.server]
    gone = {c.block for c in talk.live.clearings.get(record.uuid, ()) if c.part is None}
    return [
        _Answer(
            record,
            block,
            number,
            result,
            block in gone or result.cleared,
            next((call for call in calls.get(result.tool_use_id, ()) if call[1].seq < record.seq), None),
        )
        for number, (block, result) in enumerate(zip(at, record.results, strict=True))
    ]


def clearable_of(talk: Conversation) -> Clearable:
    """What of the live records micro-compaction could clear."""
    records = talk.live.records
    answer = next((record for record in reversed(records) if record.type == "assistant"), None)
    same = [record.seq for record in records if answer and _message_id(record) == _message_id(answer) is not None]
    return Clearable(
        base=_base(talk.live),
        family=talk.family,
        live_weight=total_weight([talk.weighed[record.uuid].best for record in talk.live.all]),
        results=result_facts(talk),
        media=[media for record in records for media in talk.weighed[record.uuid].media],
        newest_answer_ms=answer.at_ms if answer else None,
        newest_answer_seq=min([answer.seq, *same]) if answer else 0,
        overhead_tokens=talk.overhead_tokens,
        context_window=talk.context_window,
    )


def _message_id(record: Record) -> str | None:
    return record.message.id if record.message else None


def _facts(answer: _Answer, talk: Conversation) -> ResultFacts:
    tool, call = answer.call or ("", None)
    weighed = talk.weighed[answer.record.uuid]
    return ResultFacts(
        tool_use_id=answer.result.tool_use_id,
        tool=tool,
        uuid=answer.record.uuid,
        seq=answer.record.seq,
        block=answer.block,
        weight=weighed.results[answer.number],
        cleared_weight=weighed.cleared[answer.number],
        at_ms=answer.record.at_ms,
        is_error=answer.result.is_error,
        call=call,
    )


def _calls(talk: Conversation) -> dict[ToolUseId, list[tuple[str, CallFacts]]]:
    """Every live call by its id, with its tool's name: of repeated ids the newest first, in one record the first."""
    records = talk.live.records
    thinking = {record.message.id for record in records if record.message and record.has_thinking} - {None}
    found: dict[ToolUseId, list[tuple[str, CallFacts]]] = {}
    for record in reversed(records):
        places = [(at, b) for at, b in enumerate(record.blocks) if isinstance(b, ToolUseBlock) and not b.server]
        if not places:
            continue
        thinks = record.has_thinking or (record.message is not None and record.message.id in thinking)
        gone = {c.block for c in talk.live.clearings.get(record.uuid, ()) if c.kind is ClearKind.INPUT}
        for (at, call), given in zip(places, talk.weighed[record.uuid].inputs, strict=True):
            facts = cleared_input(call.input) if at in gone else given
            made = CallFacts(record.uuid, record.seq, at, facts, thinks, at in gone)
            found.setdefault(call.id, []).append((call.name, made))
    return found


def _base(live: LiveContext) -> Base:
    return Base(max((record.seq for record in live.all), default=0), _marker_seq(live), hash_of(live))


def _marker_seq(live: LiveContext) -> int:
    return live.boundary.seq if live.boundary else 0


def hash_of(live: LiveContext) -> str:
    """The hash of a live context."""
    return live_hash([state_hash(r.seq, body_hash(r.body), live.clearings.get(r.uuid, ())) for r in live.all])


def compact_in_memory(
    talk: Conversation, request: CompactRequest, policy: Policy, around: Surroundings
) -> Finished | NothingDone:
    """The pipeline on a conversation whose bodies are all at hand. Nobody is here to write a summary."""
    attempt = Attempt(snapshot_of(talk), request, replace(policy, summaries=False), around)
    outcome = start(attempt)
    if isinstance(outcome, NeedsRecords):
        outcome = start(replace(attempt, loaded=Loaded(0, talk.live.records)))
    if isinstance(outcome, NeedsRecords | SummaryRequest):
        msg = "the pipeline asked for what it was given, or for a writer that there is not"
        raise AssertionError(msg)  # noqa: TRY004 - a defect of the pipeline, no wrong argument
    return outcome


def apply_plan(live: LiveContext, plan: CompactionPlan, uuids: Sequence[str]) -> LiveContext:
    """The live context after a plan: its service records (named by `uuids`), then what it preserves."""
    kept = {entry.uuid for entry in plan.preserved}
    records = tuple(record for record in live.records if record.uuid in kept)
    clearings = {uuid: items for uuid, items in live.clearings.items() if uuid in kept}
    for item in plan.cleared:
        clearings[item.clearing.uuid] = (*clearings.get(item.clearing.uuid, ()), item.clearing)
    service = tuple(
        service_record(text.text, uuid, is_summary=text.kind == "summary")
        for text, uuid in zip(plan.service, uuids, strict=True)
    )
    return LiveContext(service, records, clearings)


def apply_clearing_plan(live: LiveContext, plan: ClearingPlan) -> LiveContext:
    """The live context after a micro-compaction."""
    clearings = dict(live.clearings)
    for item in plan.cleared:
        clearings[item.clearing.uuid] = (*clearings.get(item.clearing.uuid, ()), item.clearing)
    return replace(live, clearings=clearings)


def service_record(text: str, uuid: str, *, is_summary: bool) -> Record:
    """A user message that compaction brings."""
    raw = service_json(text, uuid, is_summary=is_summary)
    message = decode_message(raw["message"], "user")
    return Record(
        MessageUuid(uuid), "user", canonical(raw), raw, message, is_meta=not is_summary, is_summary=is_summary
    )


def service_json(text: str, uuid: str, *, is_summary: bool) -> dict[str, object]:
    """A service record's body in the transcript's own spelling."""
    flags = {"isCompactSummary": True} if is_summary else {"isMeta": True}
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": uuid, **flags, "isVisibleInTranscriptOnly": is_summary, "message": message}


def turns_of(live: LiveContext, around: Surroundings) -> list[Turn]:
    """The live context as turns, clearings applied, not yet repaired."""
    turns = []
    for record in live.all:
        shown = with_clearings(record, live, around)
        message = shown.message
        if message is not None:
            turns.append(Turn(message.role, message.blocks, record.uuid, message.id, whole=shown is record))
    return turns


def fingerprint(snapshot: Snapshot, request: CompactRequest, policy: Policy) -> str:
    """Names an attempt: the same live context, memory, request and settings give the same text."""
    memory = snapshot.memory.version if snapshot.memory else 0
    pins = [[pin.kind, pin.name, pin.text] for pin in snapshot.registered]
    asked = [request.target_tokens, request.custom_instructions, request.must_keep, pins]
    parts = [snapshot.base.live_hash, memory, asked, repr(policy), snapshot.context_window, snapshot.overhead_tokens]
    return body_hash(json.dumps(parts).encode()).hex()
