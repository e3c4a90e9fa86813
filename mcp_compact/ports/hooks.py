"""What the server's owner runs before and after a compaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

HookEvent = Literal["pre_compact", "session_start", "post_compact"]


@dataclass(frozen=True, slots=True)
class HookDetails:
    """What a hook is told. Field names are those of the JSON that a command reads on its standard input."""

    event: HookEvent
    session_id: str
    trigger: str
    cwd: str = ""
    custom_instructions: str = ""
    strategy: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str = ""
    """Of a post hook: the text that stands for what left."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What the hooks of one event said together."""

    text: str = ""
    """Pre: lines that must be kept. Start: context to add. Post: the verdict."""
    blocked: str = ""
    """Why a pre hook forbids the compaction; empty where none does."""
    verified: bool = True
    """False where a post hook's verdict is bad."""
    warnings: tuple[str, ...] = field(default=())


class Hooks(Protocol):
    """Runs all hooks of an event; never raises but when it is cancelled."""

    async def run(self, details: HookDetails) -> HookOutcome: ...
