"""A compaction by hand that is held back. It stands alone: to know of it must not load what a compaction needs."""

from __future__ import annotations

HELD = (
    "mcp-compact: held back once, as MCP_COMPACT_HOLD_MANUAL asks for. Let the agent bring its notes up to date, "
    "then compact again."
)


class HeldBack(Exception):  # noqa: N818 - no error: the setting asks for it
    """A compaction that was asked for by hand is refused this once."""
