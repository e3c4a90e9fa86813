"""Every figure of the algorithms, as frozen values with their defaults. Counts are tokens unless a unit is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from mcp_compact.errors import CallerError

COMPACTABLE_TOOLS = ("Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write")
UNKNOWN_WINDOW = 200_000
COMPACT_RESERVE = 33_000
WARNING_RESERVE = 20_000
HARD_RESERVE = 3_000
MOST_TOKENS = 10**12
BELOW = "window-"
"""Begins a threshold that lies so many tokens below the window."""


@dataclass(frozen=True, slots=True)
class SessionMemoryCompactConfig:
    """Limits of the kept tail: it reaches back until both minima or the maximum are met."""

    min_tokens: int = 10_000
    min_text_block_messages: int = 5
    max_tokens: int = 40_000


@dataclass(frozen=True, slots=True)
class TailLimits:
    """The limits of one call. A `capped` maximum is a real one: only the last round may exceed it."""

    min_tokens: int
    min_text_block_messages: int
    max_tokens: int
    capped: bool = False


@dataclass(frozen=True, slots=True)
class MicroPolicy:
    """What micro-compaction may clear, and when.

    The switches are off by default: each takes something out that may still be looked back at (what a file
    was before an edit, how a command's output changed), and any clearing costs the provider's cached prefix.
    """

    tools: tuple[str, ...] = COMPACTABLE_TOOLS
    """Names or globs of tools whose results may be cleared."""
    exclude_tools: tuple[str, ...] = ()
    older_than_minutes: int = 60
    """Of mode `age`."""
    keep_recent: int = 5
    """So many newest compactable results stay; at least one unless 0 is asked for."""
    media_tokens: int = 2_000
    """Media of at least so many tokens may be cleared."""
    trigger_tokens: int = 0
    """Of mode `tokens`: below a context of so many tokens nothing happens; 0 is the window's warning level."""
    protect_tokens: int = 40_000
    """Of mode `tokens`: the newest compactable results up to this sum stay."""
    clear_at_least: int = 20_000
    """Of mode `tokens`: what frees less is not done, since clearing breaks the provider's prompt cache."""
    max_result_tokens: int = 0
    """A result above this is cleared once an answer has followed it, in every mode; 0 is off."""
    clear_tool_inputs: bool = False
    """The inputs of cleared calls go too."""
    clear_outdated_reads: bool = False
    """A read of a file that was read again (every line of it) or written since is cleared, in every mode."""
    clear_repeated_calls: bool = False
    """The older result of two equal calls of one tool is cleared, in every mode."""
    clear_failed_inputs: bool = False
    """The input of a failed call is cleared, in every mode."""


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """Size of the session memory, and when it is due."""

    total_tokens: int = 12_000
    section_tokens: int = 2_000
    first_at_tokens: int = 10_000
    then_each_tokens: int = 5_000
    then_each_calls: int = 3


@dataclass(frozen=True, slots=True)
class RestorePolicy:
    """What is put back after a compaction, where memory, summary and tail lack it."""

    total_tokens: int = 50_000
    """All of it together."""
    skill_tokens: int = 5_000
    """Of one skill; the rest is cut."""
    skills_tokens: int = 25_000
    """All skills together."""
    file_tokens: int = 5_000
    """Of one file; the rest is cut."""
    files: int = 5
    """So many files last read or written."""


@dataclass(frozen=True, slots=True)
class Policy:
    """All figures of one compaction."""

    session_memory: bool = True
    """Is the extractor on? The agent's own notes work without it."""
    sm_compact: bool = True
    """Is session-memory compaction on?"""
    tail: SessionMemoryCompactConfig = field(default_factory=SessionMemoryCompactConfig)
    micro: MicroPolicy = field(default_factory=MicroPolicy)
    memory: MemoryPolicy = field(default_factory=MemoryPolicy)
    restore: RestorePolicy = field(default_factory=RestorePolicy)
    client_restores: bool = False
    """Does the client put back files, plan, to-dos and skills by itself? Then only pins and tools' names are ours."""
    min_gain_percent: int = 5
    require_instructions: bool = True
    reactive_only: bool = False
    """Peel oldest rounds instead of asking for a summary."""
    summaries: bool = False
    """Is there somebody who writes summaries?"""
    compact_at: str = ""
    """Where compaction is due: `60%` of the window or a number of tokens; empty for the ladder."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Thresholds of a context window: warn, compact, hard stop. `known` is False for an assumed window."""

    window: int
    warning: int
    compact: int
    hard: int
    known: bool = True

    def level(self, tokens: int) -> str:
        """`ok`, `warning`, `compact` or `hard` for a context of so many tokens, overhead included."""
        if tokens >= self.hard:
            return "hard"
        if tokens >= self.compact:
            return "compact"
        return "warning" if tokens >= self.warning else "ok"


@lru_cache(maxsize=256)
def levels(window: int | None, compact_at: str = "") -> Levels:
    """The ladder for a window of so many tokens (unknown: 200,000): 0 < warning <= compact < hard <= window.

    Raises CallerError where `compact_at` is neither a share nor a number of tokens.
    """
    known = window is not None and window > 0
    size = window if window is not None and window > 0 else UNKNOWN_WINDOW
    compact = asked_tokens(compact_at, size) or max(size - COMPACT_RESERVE, size // 2)
    compact = max(1, min(compact, size - 1))
    return Levels(
        window=size,
        warning=max(compact - WARNING_RESERVE, compact * 4 // 5, 1),
        compact=compact,
        hard=max(size - HARD_RESERVE, (compact + size) // 2, compact + 1),
        known=known,
    )


def asked_tokens(compact_at: str, window: int) -> int:
    """Tokens of a `60%`, `180000` or `window-20000` setting; 0 where it says nothing.

    What is to be kept free is never more than half of the window. Raises CallerError for nonsense.
    """
    text = compact_at.strip().lower()
    if text.startswith("window"):
        text = "".join(text.split())
    if not text:
        return 0
    share, reserve = text.endswith("%"), text.startswith(BELOW)
    try:
        number = float(text.removeprefix(BELOW).removesuffix("%"))
    except ValueError:
        number = 0
    if (share and reserve) or not (0 < number < 100 if share else 1 <= number < MOST_TOKENS):  # noqa: PLR2004 - per cent
        raise CallerError(
            "bad_compact_at",
            f"{text[:40]!r} is neither like 60% nor like window-33000 nor a number of tokens.",
            "Leave it empty for the ladder.",
        )
    if reserve:
        return max(window - int(number), window // 2)
    return max(1, int(number * window / 100 if share else number))


def tail_limits(config: SessionMemoryCompactConfig, target_tokens: int, *, capped: bool) -> TailLimits:
    """Limits of the tail for a target that memory and tail share: a quarter at least, a half at most."""
    return TailLimits(
        min(config.min_tokens, target_tokens // 4),
        config.min_text_block_messages,
        min(config.max_tokens, target_tokens // 2),
        capped,
    )
