"""The compactions that a client made by itself, read from the records of its transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from mcp_compact.compaction.extract import Material
from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import live_context
from mcp_compact.messages.markers import MarkerKind
from mcp_compact.messages.message import Record
from mcp_compact.service.offline import native_markers
from mcp_compact.transcripts.kinds import BOUNDARY
from mcp_compact.transcripts.native import native_boundary, summary_of

MARKER_KINDS = frozenset(kind.value for kind in MarkerKind)


@dataclass(frozen=True, slots=True)
class NativeCompaction:
    """One compaction of a client: what was there before, and what its summary made of it."""

    uuid: MessageUuid
    """Of the boundary."""
    at_ms: int | None
    trigger: str
    """`manual`, `auto`, or empty where the transcript does not say."""
    pre_tokens: int | None
    """The context before it, as the client counted."""
    summary: str
    session: tuple[Record, ...]
    """Everything on the branch before it, from the session's start."""
    material: Material
    """What was live, and so was compacted: message records, and the summary before this one."""
    following: tuple[Record, ...]
    """The records after it, up to the next compaction; the summary is among them."""


def native_compactions(records: Sequence[Record]) -> tuple[NativeCompaction, ...]:
    """All compactions in the records of one session (no sub-agents), old to new.

    One whose summary is missing (the client was ended) is left out: nothing can be said of it.
    """
    numbered = [replace(record, seq=at) for at, record in enumerate(records, 1)]
    made = []
    for at, record in enumerate(numbered):
        boundary = native_boundary(record)
        summary = summary_of(record, numbered[at + 1 :]) if boundary is not None else None
        if boundary is None or summary is None:
            continue
        before = numbered[:at]
        live = live_context(before, native_markers(before))
        made.append(
            NativeCompaction(
                boundary.uuid,
                record.at_ms,
                boundary.trigger or "",
                boundary.pre_tokens,
                summary.text,
                branch(before),
                Material(live.records, summaries=tuple(item.text for item in live.service if item.text)),
                tuple(takewhile(lambda record: record.subtype != BOUNDARY, numbered[at + 1 :])),
            )
        )
    return tuple(made)


def branch(records: Sequence[Record]) -> tuple[Record, ...]:
    """The records of the active branch, over all compactions: what was rewound is not said any more.

    Our own markers stand in the archive as roots, where a chain would end: they are left out.
    """
    said = [record for record in records if not _is_own_marker(record)]
    active = active_positions([link_of(record) for record in said]) if said else set()
    return tuple(said[position] for position in sorted(active))


def _is_own_marker(record: Record) -> bool:
    return record.is_root and record.type == "system" and record.subtype in MARKER_KINDS
