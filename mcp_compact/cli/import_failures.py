"""An import that the store stopped: what it had stored by then, which stays."""

from __future__ import annotations

from mcp_compact.cli.archive import MOST_SESSIONS
from mcp_compact.cli.text import count
from mcp_compact.errors import ServerError
from mcp_compact.messages.codec import parse_time
from mcp_compact.service.service import Service

GOES_ON = "import the same again: it goes on from there."
FIRST = {"disk_full": "Free some space", "store_locked": "Look for a process that hangs"}
"""What to do before it goes on, by the failure."""


async def with_what_is_stored(service: Service, error: ServerError, since_ms: int) -> ServerError:
    """The failure, with what was stored before it. A batch is stored whole or not at all, a file in several."""
    try:
        lines = await service.sessions(limit=MOST_SESSIONS)
    except ServerError:
        return error
    stored = [line for line in lines if (parse_time(line.stored) or 0) >= since_ms]
    if not stored:
        return error
    messages = count(sum(line.messages for line in stored), "message")
    so_far = f"Stored so far, and kept: {count(len(stored), 'session')} with {messages}."
    first = FIRST.get(error.code, "Check the disk")
    return ServerError(error.code, error.message, f"{so_far} {first}, then {GOES_ON}")
