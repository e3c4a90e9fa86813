"""From settings to the hooks in force."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mcp_compact.adapters.hooks.commands import CommandHooks
from mcp_compact.adapters.hooks.entry_points import EntryPointHooks
from mcp_compact.adapters.hooks.file import read_hooks_file
from mcp_compact.adapters.hooks.outcomes import joined
from mcp_compact.errors import CallerError
from mcp_compact.ports.hooks import HookDetails, HookOutcome, Hooks

TIMEOUT_S = 10.0
"""What a hook may take unless it or the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class NoHooks:
    """Nothing is run."""

    async def run(self, details: HookDetails) -> HookOutcome:  # noqa: ARG002 - the port's signature
        """An empty outcome."""
        return HookOutcome()


@dataclass(frozen=True, slots=True)
class AllHooks:
    """Several sources of hooks, one after the other."""

    sources: tuple[Hooks, ...]

    async def run(self, details: HookDetails) -> HookOutcome:
        """What all sources say together."""
        return joined([await source.run(details) for source in self.sources])


def load_hooks(path: str, *, entry_points: bool = True, timeout_s: float = TIMEOUT_S) -> Hooks:
    """The commands of the hooks file (none where `path` is empty), then the callables of installed packages.

    The file is read once, now. Raises CallerError for a file that is missing, not safe or wrong in itself,
    ServerError for one that cannot be read.
    """
    sources: list[Hooks] = []
    if path.strip():
        file = _absolute(path.strip())
        sources.append(CommandHooks(read_hooks_file(file, timeout_s), file.parent))
    if entry_points:
        sources.append(EntryPointHooks(timeout_s))
    match sources:
        case []:
            return NoHooks()
        case [only]:
            return only
    return AllHooks(tuple(sources))


def _absolute(path: str) -> Path:
    try:
        file = Path(path).expanduser()
    except RuntimeError:
        raise CallerError("bad_path", f"The home directory in {path!r} cannot be found.", "Give a full path.") from None
    if not file.is_absolute():
        # A client starts the server in its project: a relative path would let that project name the commands.
        raise CallerError("bad_path", f"The path of the hooks file, {path!r}, is relative.", "Give a full path.")
    return file
