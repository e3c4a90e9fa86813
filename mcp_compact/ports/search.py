"""What a search asks of the archive, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.values import value


@value
class Hit:
    """A record found by a search."""

    session_id: str
    uuid: MessageUuid
    seq: int
    role: str
    type: str
    at_ms: int | None
    tool: str
    snippet: str
    is_live: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, and how far the index reached when they were searched."""

    hits: tuple[Hit, ...]
    total_at_least: int
    complete: bool
    """False: time ran out before everything was searched."""
    next_before: int | None = None
    next_skip: int = 0
    """Where the best come first: how many were given."""
    capped: bool = False
    """Where the best come first: only the newest messages that hold the words were compared."""
    unreadable: int = 0
    """Messages that were passed over, since the pages that hold them are damaged."""


SEARCH_ROLES = ("user", "assistant", "tool", "system")
SEARCH_SIDES = ("before", "after")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search for text, taken literally word by word; all words must occur."""

    text: str
    session_id: str | None = None
    limit: int = 20
    before: int | None = None
    """Go on before this hit (a record's row, from `next_before`)."""
    cwd: str | None = None
    role: str = ""
    """Only what is of `user`, `assistant`, `tool` (results) or `system`."""
    tool: str = ""
    """Only calls of this tool and their results."""
    since_ms: int | None = None
    until_ms: int | None = None
    """Only records whose own time is not before the one, and before the other."""
    boundary: str = ""
    """`before` or `after`: only what a session's last boundary knew of, or what came since."""
    boundary_uuid: str = ""
    """And this boundary instead of the last one; of the session that is named."""
    best: bool = False
    """Most hits in a message first; among equals, and otherwise, the newest first."""
    skip: int = 0
    """Where the best come first: so many were given on the pages before; `before` is then the same on all pages."""
    catches_up: bool = True
    """Is what waits for the index taken into it first, for a second at most?"""
