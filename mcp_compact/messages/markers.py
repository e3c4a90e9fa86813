"""Markers: what compaction appends to the archive instead of changing it.

Markers form a chain by parent. A clearing or a snip counts while its marker is on the chain of
the current marker; an `undo` makes an older marker current again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.values import value


class MarkerKind(StrEnum):
    COMPACT = "compact_boundary"
    MICRO = "microcompact_boundary"
    SNIP = "snip_boundary"
    UNDO = "undo"


class ClearKind(StrEnum):
    RESULT = "result"
    MEDIA = "media"
    INPUT = "input"


@value
class Clearing:
    """One place whose content is left out of the live context; the archive keeps it.

    `part` is the index inside a result's content, None for the block itself.
    """

    kind: ClearKind
    uuid: MessageUuid
    block: int
    part: int | None = None
    tool_use_id: ToolUseId | None = None


@value
class Marker:
    """A system record of ours (or a client's own compaction, strategy `native`).

    A compact boundary replaces everything up to `base_seq` by its service records and the
    preserved records; what the active branch appended after `base_seq` follows.
    """

    uuid: MessageUuid
    seq: int
    kind: MarkerKind
    parent_seq: int | None
    """The marker that was current before; None for the first."""
    base_seq: int
    """Newest record that the marker knew of."""
    service: tuple[MessageUuid, ...] = ()
    preserved: tuple[MessageUuid, ...] = ()
    cleared: tuple[Clearing, ...] = ()
    snipped: tuple[MessageUuid, ...] = ()
    restores_seq: int | None = None
    """Of an undo: the marker that is current again; None for none."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    at_ms: int | None = None
    """When it was written; None where a client's own boundary has no time."""

    @property
    def native(self) -> bool:
        """Is it a client's own boundary, a record of the transcript itself?"""
        return self.metadata.get("strategy") == "native"


def current_marker(markers: Sequence[Marker]) -> Marker | None:
    """The current marker of an archive's markers, in the order of their seq."""
    by_seq = {marker.seq: marker for marker in markers}
    current: Marker | None = None
    for marker in markers:
        if marker.kind is MarkerKind.UNDO:
            current = by_seq.get(marker.restores_seq) if marker.restores_seq is not None else None
        else:
            current = marker
    return current


def chain(current: Marker | None, by_seq: Mapping[int, Marker]) -> Iterator[Marker]:
    """The current marker and its ancestors, newest first."""
    while current is not None:
        yield current
        current = by_seq.get(current.parent_seq) if current.parent_seq is not None else None


def last_boundary(markers: Iterable[Marker]) -> Marker | None:
    """The first compact boundary of a chain (newest first)."""
    return next((marker for marker in markers if marker.kind is MarkerKind.COMPACT), None)


def marker_to_undo(current: Marker | None, by_seq: Mapping[int, Marker]) -> Marker | None:
    """What an undo takes back: the last compact boundary, or the last clearing or snip where there is none.

    Clearings and snips that came with or after the boundary go with it.
    """
    return last_boundary(chain(current, by_seq)) or current
