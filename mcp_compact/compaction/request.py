"""What a compaction is asked to do, and the outside helpers that it is given as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_compact.compaction.overrun import Overrun
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CountUnits, estimate_all


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """One call. `trigger`: `agent`, `manual`, `auto` or `reactive`."""

    trigger: str = "agent"
    custom_instructions: str = ""
    target_tokens: int | None = None
    """Memory, tail and restored context together; None leaves it to the threshold."""
    force: bool = False
    """Waives the level, the repeat rule, the breaker and a blocking hook."""
    must_keep: str = ""
    """Lines of hooks that must stand in the new context word for word."""
    hook_context: str = ""
    """Context that the start hooks add; stored as a hook result."""
    overrun: Overrun | None = None
    """What the provider said when the prompt was too long."""
    keep_tail: bool = True
    """False: a written summary stands for everything but an open call."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Bodies: all live records after `after_seq`, old to new."""

    after_seq: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Bodies:
    """Bodies parted at a cut: what leaves and what stays."""

    leaving: tuple[Record, ...]
    kept: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How text is counted and named here."""

    count: CountUnits = estimate_all
    cleared: ClearedText = field(default_factory=ClearedText)
    session_id: str = ""
    """Named in the summary so that the agent can search; empty where there is no server."""
    warnings: tuple[str, ...] = ()
    """What hooks had to say; told with the plan."""
