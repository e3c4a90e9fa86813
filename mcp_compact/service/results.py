"""What the use cases answer. Faces (server, command line, library) show these, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_compact.compaction.plan import Declined, Loss, Span
from mcp_compact.messages.values import value


@value
class Status:
    """How full a session's context is. Tokens by the model's family; `level`: `ok`, `warning`, `compact`, `hard`."""

    session_id: str
    owner: str
    model: str
    family: str
    tokens: int
    """Live messages and overhead: what the next request would hold."""
    message_tokens: int
    overhead_tokens: int
    overhead_source: str
    context_window: int
    window_known: bool
    percent: int
    level: str
    should_compact: bool
    warning_at: int
    compact_at: int
    hard_at: int
    live_messages: int
    """Stored messages that are live; what a compaction put before them is not counted. What is given out has that
    too, leaves out what is empty and joins neighbours where the format wants it."""
    archived_records: int
    archived_bytes: int
    live_hash: str
    compactions: int
    last_compaction: str | None
    memory_version: int
    memory_tokens: int
    uncovered_messages: int
    """Live messages that the memory does not cover."""
    declines: Mapping[str, int]
    counter: str
    """How tokens were counted: `o200k`, or `estimate` with the reason."""
    warnings: tuple[str, ...] = ()
    auto_failures: int = 0
    """Automatic compactions in a row that came to nothing."""
    breaker_open: bool = False
    """Do automatic compactions pause, since too many in a row came to nothing?"""
    snippable_tokens: int | None = None
    """What snipping failed calls and outdated reads would free; None where it was not asked for."""
    bytes: int = 0
    """About what the live messages take in a request: media to the byte, texts by their tokens."""
    media_count: int = 0
    media_bytes: int = 0
    next: str = ""
    """What to do where a limit of the provider is near that tokens do not tell."""


@value
class AppendResult:
    session_id: str
    uuids: tuple[str, ...]
    stored: int
    known: int
    conflicts: tuple[str, ...]
    warnings: tuple[str, ...]
    status: Status
    compacted: bool = False
    """Did the server compact by itself? Then the messages to send are others now."""
    note: str = ""
    """What came of that, or why nothing did; empty where it did not try."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    session_id: str
    format: str
    records: int
    messages: int
    stored: int
    known: int
    children: tuple[str, ...]
    """Sessions of sub-agents."""
    conflicts: int
    problems: tuple[str, ...]
    """Lines that were not understood: number and reason; the first 20."""
    problem_count: int
    not_understood: Mapping[str, int]
    """Kinds of records, and of parts of messages, that are kept but mean nothing to us."""
    warnings: tuple[str, ...]
    status: Status


@dataclass(frozen=True, slots=True)
class CompactResult:
    session_id: str
    status: str
    strategy: str
    tokens_before: int
    tokens_after: int
    target_tokens: int
    applies_to: str
    declined: tuple[Declined, ...] = ()
    boundary_uuid: str = ""
    plan_id: str = ""
    loss: Loss = field(default_factory=Loss)
    spans: tuple[Span, ...] = ()
    memory_tokens: int = 0
    warnings: tuple[str, ...] = ()
    next: str = ""
    verified: bool = True
    """False where a post hook did not like the result."""
    writer: str = ""
    """Who wrote the summary, where one was written."""
    compaction_id: str = ""
    """Of `summary_required`: what submit_summary takes."""
    prompt: str = ""
    material: str = ""
    """What the summary is to be written of, or a part of it."""
    next_cursor: str = ""
    """Gives the next part of the material; empty at its end."""


@dataclass(frozen=True, slots=True)
class MicroResult:
    session_id: str
    status: str
    """`compacted`, `prepared` or `nothing_to_compact`."""
    tokens_before: int
    tokens_after: int
    tokens_freed: int
    cleared: tuple[tuple[str, int, int], ...]
    """Tool (or `image`, `document`), how many, tokens freed."""
    marker_uuid: str
    first_changed_uuid: str
    """The provider's cached prefix stays valid up to this record."""
    next: str = ""
    reason: str = ""
    """Why nothing was cleared, or nothing but media: `nothing_old_enough`, `below_trigger`, `saves_too_little`, ..."""
    detail: str = ""
    """The figures of the reason."""


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """Some of the live context, ready for the provider; all pages together are the whole and valid."""

    session_id: str
    format: str
    messages: tuple[Mapping[str, Any], ...]
    next_cursor: str
    """Empty at the end."""
    warnings: tuple[str, ...]
    """Repairs of the view."""
    boundary_uuid: str
    tokens: int
    """Of the whole live context."""


@dataclass(frozen=True, slots=True)
class MemoryResult:
    session_id: str
    content: str
    version: int
    tokens: int
    last_summarized_uuid: str
    uncovered_messages: int
    is_empty: bool
    warnings: tuple[str, ...] = ()


@value
class SearchHit:
    session_id: str
    uuid: str
    role: str
    time: str
    tool: str
    snippet: str
    in_context: bool


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[SearchHit, ...]
    next_cursor: str
    complete: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class OriginalPart:
    """A piece of what was stored: of a message or a tool result."""

    session_id: str
    uuid: str
    tool_use_id: str
    tool: str
    is_error: bool
    text: str
    part: int
    parts: int
    next_cursor: str
    blocks: tuple[Mapping[str, Any], ...] = ()
    """Media of a result, whole, where they were asked for."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    session_id: str
    status: str
    """`undone` or `nothing_to_undo`."""
    tokens_before: int
    tokens_after: int
    live_hash: str
    marker_uuid: str


@dataclass(frozen=True, slots=True)
class SessionLine:
    session_id: str
    title: str
    model: str
    owner: str
    cwd: str
    updated: str
    """When it was last at work, by its newest record."""
    messages: int
    tokens: int
    level: str
    compactions: int
    parent_session_id: str
    is_fork: bool = False
    """Then the parent is the session that it began from, and it is no sub-agent's."""
    stored: str = ""
    """When something was last stored of it: later for what was imported long after."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A share of the live context, for a picture of it. `kind` is e.g. `your words`, `assistant`, `Read results`."""

    kind: str
    tokens: int
    messages: int


@dataclass(frozen=True, slots=True)
class Picture:
    session_id: str
    tokens: int
    window: int
    slices: tuple[Slice, ...]
