"""What the use cases on whole sessions answer: lists, forks, boundaries, snips."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_compact.compaction.loss import KindLoss
from mcp_compact.service.results import SessionLine


@dataclass(frozen=True, slots=True)
class SessionMade:
    """A session that was made, or that was there already."""

    session_id: str
    status: str
    """`created` or `exists`."""
    owner: str
    model: str
    context_window: int
    window_known: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    session_id: str
    status: str
    """`deleted`."""
    records: int
    """So many were removed."""


@dataclass(frozen=True, slots=True)
class SessionForked:
    """A session that begins with the live context of another."""

    session_id: str
    parent_session_id: str
    status: str
    """`forked`."""
    live_messages: int
    tokens: int
    """Of the live context, overhead left out."""
    live_hash: str


@dataclass(frozen=True, slots=True)
class SessionsPage:
    sessions: tuple[SessionLine, ...]
    next_cursor: str
    """Empty at the end."""


@dataclass(frozen=True, slots=True)
class BoundaryLine:
    """A marker of a session."""

    uuid: str
    kind: str
    """`compact_boundary`, `microcompact_boundary`, `snip_boundary` or `undo`."""
    state: str
    """`current` (in effect), `earlier` (a later boundary stands upon it), `undone`, `rewound` (the client went back
    to before it), or `done` (an undo)."""
    native: bool
    """A client's own."""
    time: str
    trigger: str
    strategy: str
    tokens_before: int | None
    tokens_after: int | None
    preserved: int
    """Messages that it kept."""
    cleared: int
    snipped: int
    undone_uuid: str = ""
    """Of an undo: what was taken back."""


@dataclass(frozen=True, slots=True)
class BoundariesPage:
    session_id: str
    boundaries: tuple[BoundaryLine, ...]
    """The newest first."""
    total: int
    next_cursor: str


@dataclass(frozen=True, slots=True)
class Spared:
    """A message that was asked for, but is protected."""

    uuid: str
    reason: str


@dataclass(frozen=True, slots=True)
class SnipResult:
    session_id: str
    status: str
    """`compacted`, `prepared`, `nothing_to_compact` or `failed`."""
    executed: bool
    messages: tuple[str, ...]
    """Those that left, by uuid."""
    spared: tuple[Spared, ...]
    tokens_before: int
    tokens_after: int
    tokens_freed: int
    applies_to: str
    marker_uuid: str
    next: str = ""
    reason: str = ""
    """Why nothing left: `nothing_to_snip` or `base_changed`."""
    detail: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LossAudit:
    """What left the context, by kind: standing instructions, decisions, errors, names, figures."""

    session_id: str
    messages_left: int
    """Messages that are only in the archive."""
    kinds: tuple[KindLoss, ...]
    next: str = ""
