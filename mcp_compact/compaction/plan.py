"""Plans: what a compaction would do. Dry run, commit, report and undo are the same plan, used differently."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_compact.compaction.snapshot import Base
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, MarkerKind
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import Weight


@dataclass(frozen=True, slots=True)
class Declined:
    """A path that did not compact, and why: an expected answer, not an error."""

    path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cleared:
    """A clearing and what it frees of the live context."""

    clearing: Clearing
    freed: Weight
    tool: str = ""


@dataclass(frozen=True, slots=True)
class ServiceText:
    """A service record to be written. `kind`: `summary`, `attachment` or `hook_result`; `name` says what it carries."""

    kind: str
    name: str
    text: str
    weight: Weight


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """A memory version that is written with the boundary, and the record it covers up to."""

    text: str
    mark_uuid: MessageUuid | None
    mark_seq: int | None
    writer: str


@dataclass(frozen=True, slots=True)
class Span:
    """A run of live records and what becomes of them: `kept`, `cleared` or `summarised`."""

    fate: str
    records: int
    tokens: int
    first_uuid: MessageUuid | None = None
    last_uuid: MessageUuid | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """What left the context, and what of it is still there word for word."""

    records: int = 0
    tokens: int = 0
    instructions: int = 0
    instructions_kept: int = 0
    instructions_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A compact boundary that could be written."""

    strategy: str
    trigger: str
    base: Base
    service: tuple[ServiceText, ...]
    preserved: tuple[Entry, ...]
    cleared: tuple[Cleared, ...]
    memory: MemoryUpdate | None
    weight_before: Weight
    weight_after: Weight
    tokens_before: int
    tokens_after: int
    target_tokens: int
    spans: tuple[Span, ...] = ()
    loss: Loss = field(default_factory=Loss)
    warnings: tuple[str, ...] = ()
    discovered_tools: tuple[str, ...] = ()
    last_message_uuid: MessageUuid | None = None
    last_user_message_uuid: MessageUuid | None = None
    pre_compact_token_count: int = 0
    """Of the whole request, overhead included."""
    custom_instructions: str = ""

    @property
    def kind(self) -> MarkerKind:
        return MarkerKind.COMPACT


@dataclass(frozen=True, slots=True)
class ClearingPlan:
    """A micro-compaction that could be written."""

    base: Base
    cleared: tuple[Cleared, ...]
    tokens_before: int
    tokens_after: int
    by_tool: tuple[tuple[str, int, int], ...] = ()
    """Tool, results cleared, tokens freed."""
    first_changed: MessageUuid | None = None
    """The provider's cached prefix stays valid up to (not including) this record."""
    declined: Declined | None = None
    """Why nothing is cleared, or nothing but the media that were asked for."""

    @property
    def kind(self) -> MarkerKind:
        return MarkerKind.MICRO
