"""What `mcp-compact doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, BROKEN = "ok", "note", "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is (`ok`, `note` or `broken`), and what to do."""

    check: str
    state: str
    text: str
    todo: str = ""
