"""Which session a client's process is at, as its hooks noted it, and which server follows that session's transcript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Bound:
    """What a client's process is at."""

    namespace: str
    session_id: str
    transcript: str
    """The session's file; empty where it may not be read."""
    cwd: str


class Bindings(Protocol):
    """Processes are named by number and start."""

    async def bound(self, client: str) -> Bound | None:
        """The session that a client started last; None where no hook told of one."""
        ...

    async def follow(self, client: str, server: str, now_ms: int) -> None:
        """Note that this server follows the transcript for a client: its hooks need not pick it up."""
        ...
