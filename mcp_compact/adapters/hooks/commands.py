"""Hooks that are commands: JSON on standard input, an exit status and texts back."""

from __future__ import annotations

import codecs
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mcp_compact.adapters.hooks.file import Command, Commands
from mcp_compact.adapters.hooks.outcomes import blocking, first_line, joined, rejected, said
from mcp_compact.adapters.hooks.process import Output, Ran, run_command
from mcp_compact.messages.codec import canonical, clean
from mcp_compact.ports.hooks import HookDetails, HookEvent, HookOutcome

BLOCKS = 2
"""Exit status by which a pre hook forbids a compaction, as the hooks of coding agents do."""
REJECTS = 1
"""Exit status by which a post hook says that a compaction is not good."""
CLIENT_NAMES: dict[HookEvent, str] = {
    "pre_compact": "PreCompact",
    "session_start": "SessionStart",
    "post_compact": "PostCompact",
}
"""What coding agents call the events, so that one script can serve both."""


@dataclass(frozen=True, slots=True)
class CommandHooks:
    """The commands of a hooks file. Never raises but when it is cancelled: what fails is a warning."""

    commands: Commands
    folder: Path
    """Where they run. A session's own folder is named by strangers' records, so it is only told to them."""

    async def run(self, details: HookDetails) -> HookOutcome:
        """Run the event's commands one after the other, also after one that blocks: a caller may overrule it."""
        told = details_json(details)
        outcomes = []
        for place, command in enumerate(self.commands.get(details.event, ()), 1):
            name = f"{details.event} hook {place}"
            outcomes.append(await self._one(details.event, name, command, told))
        return joined(outcomes)

    async def _one(self, event: HookEvent, name: str, command: Command, told: bytes) -> HookOutcome:
        try:
            ran = await run_command(command, told, self.folder)
        except (OSError, ValueError) as error:
            return HookOutcome(warnings=(f"{name} cannot be started: {_why(error)}",))
        outcome = _read(event, name, command, ran)
        return replace(outcome, warnings=(*outcome.warnings, *_remarks(name, ran)))


def details_json(details: HookDetails) -> bytes:
    """What a command reads: the fields of HookDetails, and the names by which clients' hooks know the event."""
    told = {**asdict(details), "hook_event_name": CLIENT_NAMES[details.event]}
    if details.event == "session_start":
        told["source"] = "compact"
    return canonical(clean(told))


def _read(event: HookEvent, name: str, command: Command, ran: Ran) -> HookOutcome:
    match event, ran.exit_code:
        case _, None:
            warning = f"{name} took longer than {command.timeout_s:g} s: it was ended, and what it wrote is left out"
            return HookOutcome(warnings=(warning,))
        case _, 0:
            return said(event, name, _decoded(ran.stdout)[0])
        case "pre_compact", code if code == BLOCKS:
            return blocking(name, _decoded(ran.stderr)[0])
        case "post_compact", code if code == REJECTS:
            return rejected(name, _decoded(ran.stdout)[0], _decoded(ran.stderr)[0])
        case _, code:
            line = first_line(_decoded(ran.stderr)[0])
            return HookOutcome(warnings=(f"{name} {_ending(code)}" + (f": {line}" if line else ""),))


def _remarks(name: str, ran: Ran) -> Iterator[str]:
    if ran.left_process:
        yield f"{name} left a process that held its output open; it was ended"
    for output, where in ((ran.stdout, "standard output"), (ran.stderr, "standard error")):
        if not output.is_whole:
            yield f"{name} wrote {output.total_bytes:,} bytes to {where}; the first {len(output.head):,} were kept"
    if ran.exit_code == 0 and not _decoded(ran.stdout)[1]:
        yield f"{name} wrote text that is not UTF-8; what cannot be read is replaced"


def _decoded(output: Output) -> tuple[str, bool]:
    """The text, and whether it was UTF-8; a character that the limit cut in two is no fault."""
    decoder = codecs.getincrementaldecoder("utf-8")
    try:
        return decoder().decode(output.head, output.is_whole), True
    except UnicodeDecodeError:
        return decoder("replace").decode(output.head, output.is_whole), False


def _ending(code: int) -> str:
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return first_line(str(error))
