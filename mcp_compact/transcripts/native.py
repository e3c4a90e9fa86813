"""A client's own compactions, as its transcript holds them, and the markers that they become.

Two records make one compaction: a `compact_boundary` (system) and, as its child, the summary. Older
clients write trigger and size only; newer ones say which earlier messages they kept. A
`microcompact_boundary` names the calls whose results were cleared; the file keeps the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Clearing, ClearKind, Marker, MarkerKind
from mcp_compact.messages.message import Record
from mcp_compact.transcripts.fields import count_of, first, object_of, text_of, texts_of, uuid_of, uuids_of
from mcp_compact.transcripts.kinds import BOUNDARY, MICRO_BOUNDARY

NATIVE = "native"
SUMMARY_WITHIN = 50
"""How many records may stand between a boundary and its summary."""


@dataclass(frozen=True, slots=True)
class NativeBoundary:
    """What a `compact_boundary` of the client says. Token counts are the client's own."""

    uuid: MessageUuid
    trigger: str | None
    pre_tokens: int | None
    post_tokens: int | None
    preserved: tuple[MessageUuid, ...]
    """Earlier records that the client kept, in their order; empty where they are named by head and tail only."""
    head: MessageUuid | None
    tail: MessageUuid | None
    anchor: MessageUuid | None
    discovered_tools: tuple[str, ...]
    service: MessageUuid | None
    """The summary's record, once it is there."""


@dataclass(frozen=True, slots=True)
class NativeClearing:
    """What a `microcompact_boundary` of the client says."""

    uuid: MessageUuid
    trigger: str | None
    pre_tokens: int | None
    tokens_saved: int | None
    tool_use_ids: tuple[ToolUseId, ...]


def native_boundary(record: Record, following: Record | None = None) -> NativeBoundary | None:
    """The boundary in a record, None if it is none. `following`: its summary (see `summary_of`)."""
    if record.type != "system" or record.subtype != BOUNDARY:
        return None
    meta = object_of(record.raw, "compactMetadata", "compact_metadata")
    segment = object_of(meta, "preservedSegment", "preserved_segment")
    kept = object_of(meta, "preservedMessages", "preserved_messages")
    preserved = (
        uuids_of(kept, "uuids")
        or uuids_of(kept, "allUuids", "all_uuids")
        or uuids_of(segment, "preservedMessageUuids", "preserved_message_uuids")
    )
    summary = following.uuid if following is not None and following.is_summary else None
    return NativeBoundary(
        uuid=record.uuid,
        trigger=text_of(meta, "trigger"),
        pre_tokens=count_of(meta, "preTokens", "pre_tokens"),
        post_tokens=count_of(meta, "postTokens", "post_tokens"),
        preserved=preserved,
        head=uuid_of(first(segment, "headUuid", "head_uuid")),
        tail=uuid_of(first(segment, "tailUuid", "tail_uuid")),
        anchor=uuid_of(first(segment, "anchorUuid", "anchor_uuid") or first(kept, "anchorUuid", "anchor_uuid")),
        discovered_tools=tuple(sorted({*texts_of(meta, "preCompactDiscoveredTools", "pre_compact_discovered_tools")})),
        service=summary or uuid_of(first(segment, "summaryMessageUuid", "summary_message_uuid")),
    )


def summary_of(boundary: Record, following: Iterable[Record]) -> Record | None:
    """The summary that belongs to a boundary, among the records that follow it.

    It is the boundary's child, else the first summary before the next boundary: progress and hook
    records may stand between them, in the file and in the chain of parents.
    """
    nearest: Record | None = None
    for record in islice(following, SUMMARY_WITHIN):
        if record.subtype == BOUNDARY:
            break
        if record.is_summary and record.parent_uuid == boundary.uuid:
            return record
        if record.is_summary and nearest is None:
            nearest = record
    return nearest


def expand_preserved(boundary: NativeBoundary, records: Sequence[Record]) -> tuple[MessageUuid, ...]:
    """The kept records by name: as listed, or all that belongs to the branch from the head to the tail.

    `records` is the archive up to the boundary, in order. Nothing is kept where the head or the tail
    is unknown, or the tail's branch does not pass the head.
    """
    if boundary.preserved or boundary.head is None or boundary.tail is None:
        return boundary.preserved
    at = {record.uuid: index for index, record in enumerate(records)}
    head, tail = at.get(boundary.head), at.get(boundary.tail)
    if head is None or tail is None or head > tail:
        return ()
    segment = records[head : tail + 1]
    active = active_positions([link_of(record) for record in segment])
    if 0 not in active:
        return ()
    return tuple(segment[index].uuid for index in sorted(active) if segment[index].is_message)


def native_clearing(record: Record) -> NativeClearing | None:
    """The clearing in a record, None if it is none."""
    if record.type != "system" or record.subtype != MICRO_BOUNDARY:
        return None
    meta = object_of(record.raw, "microcompactMetadata", "microcompact_metadata")
    return NativeClearing(
        uuid=record.uuid,
        trigger=text_of(meta, "trigger"),
        pre_tokens=count_of(meta, "preTokens", "pre_tokens"),
        tokens_saved=count_of(meta, "tokensSaved", "tokens_saved"),
        tool_use_ids=tuple(ToolUseId(t) for t in texts_of(meta, "compactedToolIds", "compacted_tool_ids")),
    )


def boundary_marker(
    boundary: NativeBoundary,
    seq: int,
    parent_seq: int | None,
    preserved: Sequence[MessageUuid] | None = None,
) -> Marker:
    """The marker of a client's boundary that is the record `seq`; `preserved` as expanded, else as listed."""
    metadata = {
        "strategy": NATIVE,
        "trigger": boundary.trigger,
        "preTokens": boundary.pre_tokens,
        "postTokens": boundary.post_tokens,
        "preCompactDiscoveredTools": list(boundary.discovered_tools) or None,
    }
    return Marker(
        uuid=boundary.uuid,
        seq=seq,
        kind=MarkerKind.COMPACT,
        parent_seq=parent_seq,
        base_seq=seq,
        service=(boundary.service,) if boundary.service else (),
        preserved=tuple(boundary.preserved if preserved is None else preserved),
        metadata={key: value for key, value in metadata.items() if value is not None},
    )


def clearing_marker(
    clearing: NativeClearing,
    seq: int,
    parent_seq: int | None,
    places: Mapping[ToolUseId, tuple[MessageUuid, int]],
) -> Marker:
    """The marker of a client's clearing that is the record `seq`.

    `places` says where each result stands: its record and the index of its block. A result that
    was not imported is left out.
    """
    metadata = {
        "strategy": NATIVE,
        "trigger": clearing.trigger,
        "preTokens": clearing.pre_tokens,
        "tokensSaved": clearing.tokens_saved,
    }
    return Marker(
        uuid=clearing.uuid,
        seq=seq,
        kind=MarkerKind.MICRO,
        parent_seq=parent_seq,
        base_seq=seq,
        cleared=tuple(
            Clearing(ClearKind.RESULT, places[call][0], places[call][1], tool_use_id=call)
            for call in clearing.tool_use_ids
            if call in places
        ),
        metadata={key: value for key, value in metadata.items() if value is not None},
    )
