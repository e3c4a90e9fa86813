"""What a micro-compaction is asked to do, and what it is asked of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.snapshot import Base, MediaFacts, ResultFacts
from mcp_compact.messages.tool_kinds import usual_name
from mcp_compact.messages.weights import Family, Weight


class MicroMode(StrEnum):
    AGE = "age"
    TOKENS = "tokens"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class MicroRequest:
    """One call. None takes the policy's figure."""

    mode: MicroMode = MicroMode.AGE
    now_ms: int | None = None
    """None measures age against the newest assistant message."""
    older_than_minutes: int | None = None
    """Of mode `age`."""
    keep: int | None = None
    """So many newest compactable results stay; 0 is obeyed."""
    all_media: bool = False
    """Clear every image and document, whatever its size (the newest one aside), even where the mode declines."""
    trigger_tokens: int | None = None
    """Of mode `tokens`; 0 acts at any size."""
    context_tokens: int | None = None
    """What the next request takes, where that is known better than from the live context and its overhead."""


@dataclass(frozen=True, slots=True)
class Clearable:
    """What of a live context could be cleared, old to new."""

    base: Base
    family: Family
    live_weight: Weight
    results: Sequence[ResultFacts]
    media: Sequence[MediaFacts]
    newest_answer_ms: int | None
    """Time of the newest assistant message."""
    newest_answer_seq: int
    """Its first record's seq: what follows it has not been seen by the model yet."""
    overhead_tokens: int = 0
    context_window: int | None = None


def is_compactable(tool: str, policy: MicroPolicy) -> bool:
    """May results of this tool be cleared? Names and globs, exclusions first.

    Other harnesses' tools count as what they are of: what is said of `Read` holds for `read_file` too.
    """
    names = {tool, usual_name(tool)}
    excluded = any(matches(name, policy.exclude_tools) for name in names)
    return not excluded and any(matches(name, policy.tools) for name in names)


def matches(tool: str, patterns: Iterable[str]) -> bool:
    """Is the tool one of these names and globs?"""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def keep_of(request: MicroRequest, policy: MicroPolicy) -> int:
    """So many newest results stay: the policy's number is at least one, what was asked for is obeyed."""
    return max(1, policy.keep_recent) if request.keep is None else max(0, request.keep)


def minutes_of(request: MicroRequest, policy: MicroPolicy) -> int:
    """The age from which a result is old."""
    return policy.older_than_minutes if request.older_than_minutes is None else request.older_than_minutes
