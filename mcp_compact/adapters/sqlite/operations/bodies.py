"""Bodies of the records that we append, in the spelling of transcripts (camelCase)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.compaction.plan import ClearingPlan, CompactionPlan, ServiceText
from mcp_compact.messages.codec import format_time
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, ClearKind, Marker, MarkerKind
from mcp_compact.messages.weights import Weight, family_of
from mcp_compact.ports.store import Stamp

SUMMARY = "summary"
_CONTENT = {
    MarkerKind.COMPACT: "Conversation compacted",
    MarkerKind.MICRO: "Context microcompacted",
    MarkerKind.SNIP: "Context snipped",
    MarkerKind.UNDO: "Compaction undone",
}
_METADATA = {
    MarkerKind.COMPACT: "compactMetadata",
    MarkerKind.MICRO: "microcompactMetadata",
    MarkerKind.SNIP: "snipMetadata",
    MarkerKind.UNDO: "undoMetadata",
}


def boundary_metadata(session: Session, plan: CompactionPlan, marker: Marker, stamp: Stamp) -> dict[str, Any]:
    """What a compact boundary says of itself; counts are tokens of whole requests, overhead included."""
    metadata: dict[str, Any] = {
        "trigger": plan.trigger,
        "strategy": plan.strategy,
        # A client that keeps its own history goes on sending all of it.
        "appliesTo": "stored_view" if session.owner == "client" else "sent_context",
        "preCompactTokenCount": plan.pre_compact_token_count,
        "postCompactTokenCount": plan.tokens_after + session.overhead_tokens,
        "lastMessageUuid": plan.last_message_uuid,
        "lastUserMessageUuid": plan.last_user_message_uuid,
        "durationMs": stamp.duration_ms,
        "liveHash": session.live_hash.hex(),
    }
    if plan.discovered_tools:
        metadata["preCompactDiscoveredTools"] = list(plan.discovered_tools)
    if plan.custom_instructions:
        metadata["customInstructions"] = plan.custom_instructions
    if marker.preserved:
        metadata["preservedSegment"] = _segment(plan.service, marker)
    return metadata


def _segment(service: Sequence[ServiceText], marker: Marker) -> dict[str, Any]:
    """The preserved records: the list is authoritative; head, anchor (what they follow) and tail inform."""
    pairs = zip(service, marker.service, strict=True)
    summary = next((uuid for item, uuid in pairs if item.kind == SUMMARY), None)
    return {
        "summaryMessageUuid": summary,
        "preservedMessageUuids": list(marker.preserved),
        "headUuid": marker.preserved[0],
        "anchorUuid": summary if summary is not None else marker.uuid,
        "tailUuid": marker.preserved[-1],
    }


def micro_metadata(session: Session, plan: ClearingPlan, cleared: Sequence[Clearing]) -> dict[str, Any]:
    """What a micro-compaction says of itself."""
    results = dict.fromkeys(item.tool_use_id for item in cleared if item.kind is ClearKind.RESULT)
    media = dict.fromkeys(item.uuid for item in cleared if item.kind is ClearKind.MEDIA)
    return {
        "preTokens": plan.tokens_before,
        "postTokens": plan.tokens_after,
        "tokensSaved": plan.tokens_before - plan.tokens_after,
        "compactedToolIds": [call for call in results if call is not None],
        "clearedAttachmentUUIDs": list(media),
        "liveHash": session.live_hash.hex(),
    }


def snip_metadata(session: Session, marker: Marker, before: Weight) -> dict[str, Any]:
    """What a snip says of itself; tokens of the live context without overhead."""
    tokens = family_of(session.model).tokens
    return {
        "snippedUuids": list(marker.snipped),
        "tokensBefore": tokens(before),
        "tokensAfter": tokens(session.totals.weight),
        "liveHash": session.live_hash.hex(),
    }


def undo_metadata(session: Session, undone: Marker, restored: Marker | None) -> dict[str, Any]:
    """What was taken back, and which marker is current again."""
    return {
        "undoneUuid": undone.uuid,
        "undoneKind": undone.kind.value,
        "restoredUuid": restored.uuid if restored else None,
        "liveHash": session.live_hash.hex(),
    }


def marker_body(session: Session, marker: Marker, now_ms: int) -> dict[str, Any]:
    """The marker as a system record. A boundary starts a chain of its own and names what came before it."""
    is_boundary = marker.kind is MarkerKind.COMPACT
    before = session.head_uuid or None
    return {
        **_envelope(session, marker.uuid, None if is_boundary else before, now_ms),
        **({"logicalParentUuid": before} if is_boundary else {}),
        "type": "system",
        "subtype": marker.kind.value,
        "content": _CONTENT[marker.kind],
        "isMeta": False,
        "level": "info",
        _METADATA[marker.kind]: marker.metadata,
    }


def service_body(
    session: Session, uuid: MessageUuid, parent: MessageUuid, service: ServiceText, now_ms: int
) -> dict[str, Any]:
    """A service record as a user message; only the summary is marked as one."""
    is_summary = service.kind == SUMMARY
    flags: Mapping[str, Any] = (
        {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        if is_summary
        else {"isMeta": True, "subtype": service.kind, "serviceName": service.name}
    )
    return {
        **_envelope(session, uuid, parent, now_ms),
        "type": "user",
        **flags,
        "message": {"role": "user", "content": service.text},
    }


def _envelope(session: Session, uuid: MessageUuid, parent: str | None, now_ms: int) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": session.session_id,
        "uuid": uuid,
        "timestamp": format_time(now_ms),
    }
