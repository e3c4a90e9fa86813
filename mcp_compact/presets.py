"""The thresholds of known harnesses, to be taken by name; and settings that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mcp_compact.compaction.policy import MicroPolicy, Policy, asked_tokens, levels


@dataclass(frozen=True, slots=True)
class Preset:
    """Where a harness compacts. None leaves the own default; a variable of the figure itself always wins."""

    name: str
    compact_at: str
    source: str
    """Whose figures these are, in words."""
    min_gain_percent: int | None = None
    protect_tokens: int | None = None
    clear_at_least: int | None = None

    def micro(self, own: MicroPolicy) -> MicroPolicy:
        """The policy of clearing, with the preset's figures as its defaults."""
        return replace(
            own,
            protect_tokens=self.protect_tokens or own.protect_tokens,
            clear_at_least=self.clear_at_least or own.clear_at_least,
        )


PRESETS: tuple[Preset, ...] = (
    Preset(
        "claude-code",
        "window-33000",
        "13,000 tokens before what is left once 20,000 are kept for the answer; our default too",
    ),
    Preset("codex", "90%", "its limit where the configuration names no lower one"),
    Preset(
        "gemini-cli",
        "50%",
        "half of the model's limit; old results are masked beyond the newest 50,000 tokens, 30,000 at least",
        protect_tokens=50_000,
        clear_at_least=30_000,
    ),
    Preset(
        "opencode",
        "window-20000",
        "its buffer of 20,000 tokens; pruning spares the newest 40,000 tokens and frees 20,000 at least",
        protect_tokens=40_000,
        clear_at_least=20_000,
    ),
    Preset("pi", "window-16384", "the tokens that it reserves"),
    Preset(
        "openhands",
        "",
        "it counts events (240), which no share of a window stands for: our threshold, with its least progress of 10 %",
        min_gain_percent=10,
    ),
    Preset("deepagents", "85%", "the share of the window at which its middleware summarises"),
    Preset("agent-framework", "80%", "the share of the budget at which it truncates"),
)
NO_PRESET = Preset("", "", "")


def preset_named(name: str) -> Preset | None:
    """The preset of that name, in any case; None where there is none."""
    return next((preset for preset in PRESETS if preset.name == name.strip().lower()), None)


def contradictions(policy: Policy, window: int | None) -> Iterator[str]:
    """Figures that were set but cannot hold beside others, and what holds instead. A default just yields."""
    tail, memory, default = policy.tail, policy.memory, Policy()
    if tail.max_tokens < tail.min_tokens != default.tail.min_tokens:
        yield (
            f"the kept tail's minimum of {tail.min_tokens} tokens exceeds its maximum of {tail.max_tokens}: "
            "the maximum (MCP_COMPACT_SM_MAX_TOKENS) ends it"
        )
    if memory.total_tokens < memory.section_tokens != default.memory.section_tokens:
        yield (
            f"a section of the memory may have {memory.section_tokens} tokens but all of it {memory.total_tokens}: "
            "MCP_COMPACT_MEMORY_TOKENS limits both"
        )
    ladder = levels(window, policy.compact_at)
    asked = asked_tokens(policy.compact_at, ladder.window)
    if ladder.known and asked >= ladder.window:
        yield (
            f"MCP_COMPACT_AT asks for {asked} tokens but MCP_COMPACT_CONTEXT_WINDOW is {ladder.window}: "
            f"compaction is due at {ladder.compact}"
        )
    if ladder.compact <= memory.total_tokens != default.memory.total_tokens:
        yield (
            f"the session memory alone may have {memory.total_tokens} tokens but compaction is due at "
            f"{ladder.compact}: each compaction cuts it to what there is room for"
        )
