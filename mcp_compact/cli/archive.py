"""The archive that the settings name, opened for one command; and the session that a person means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mcp_compact.cli.text import middle_cut, shown
from mcp_compact.config import Settings, load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.results import SessionLine
from mcp_compact.service.service import Service

if TYPE_CHECKING:
    from mcp_compact.adapters.sqlite.connection import ArchiveConnection

Answer = TypeVar("Answer")
SHORT_ID = 8
"""Characters of an id that are shown, more where they do not tell two sessions apart."""
SHORT_AGENT_ID = 14
"""The same for sub-agents, whose ids often begin with `agent-`."""
ID_COLUMNS = 28
"""Of an id in a list; `--json` has it whole."""
CUT = "..."
MOST_SESSIONS = 10_000
LISTED_CANDIDATES = 5
AGENT = "/"
"""Stands between a session's id and that of a sub-agent."""


def ask(
    work: Callable[[Service], Awaitable[Answer]], *, create: bool = False, settings: Settings | None = None
) -> Answer:
    """Do something with the archive; it is made where there is none only if `create` says so."""
    import anyio

    from mcp_compact.wiring import open_service

    known = settings or load_settings()
    if not create:
        require_database(known)

    async def opened() -> Answer:
        async with open_service(known) as service:
            return await work(service)

    return anyio.run(opened)


def require_database(settings: Settings) -> None:
    """Raises CallerError where there is no archive yet; nothing is made."""
    if settings.db.is_dir():
        raise CallerError("database_is_folder", f"MCP_COMPACT_DB names a folder: {settings.db}.", "Name a file.")
    if not settings.db.is_file():
        raise CallerError(
            "no_database",
            f"There is no archive yet at {settings.db}.",
            "`mcp-compact import PATH` makes it, and so does a server; MCP_COMPACT_DB names another.",
        )


def opened(settings: Settings) -> ArchiveConnection:
    """A connection to the archive for the operations themselves, as durable as the settings ask for."""
    from mcp_compact.adapters.sqlite.operations import connect

    return connect(settings.db, full_sync=settings.synchronous == "full")


def here() -> str:
    """The folder that the command is run in: the project, for lists and searches."""
    return str(Path.cwd())


async def named_session(service: Service, name: str) -> str:
    """The id of the session that a person means: whole, its beginning, or nothing for the last active one here."""
    if not name.strip():
        return await _last_active(service)
    known = [line.session_id for line in await service.sessions(limit=MOST_SESSIONS)]
    if name in known:
        return name
    found = matching(name, known)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CallerError(
            "unknown_session",
            f"There is no session {name[:80]!r}.",
            "`mcp-compact sessions --all` lists those that exist.",
        )
    some = ", ".join(found[:LISTED_CANDIDATES])
    raise CallerError(
        "ambiguous_session", f"{len(found)} sessions begin with {name[:80]!r}: {some}.", "Give more of the id."
    )


def matching(name: str, known: Sequence[str]) -> list[str]:
    """The ids that a name may mean: those that begin with it, else sub-agents whose own part does.

    A session and its sub-agents' sessions (`session/agent`) begin alike: the session is meant.
    """
    found = sorted((own for own in known if own.startswith(name)), key=len)
    if found and all(own.startswith(found[0] + AGENT) for own in found[1:]):
        return found[:1]
    return (
        found
        or [own for own in known if AGENT in own and own.rpartition(AGENT)[2].startswith(name)]
        or [own for own in known if CUT in name and _is_cut(name, own)]
    )


def _is_cut(name: str, own: str) -> bool:
    """Is it an id, or a sub-agent's own part of one, as a list shows it: cut in its middle?"""
    head, _, tail = name.partition(CUT)
    return any(part.startswith(head) and part.endswith(tail) for part in (own, own.rpartition(AGENT)[2]))


async def _last_active(service: Service) -> str:
    own = await service.sessions(cwd=here(), limit=1)
    if own:
        return own[0].session_id
    raise CallerError(
        "no_session_here",
        f"No session of this folder ({here()}) is in the archive.",
        "Name one: `mcp-compact sessions --all` lists those of every folder.",
    )


def listed_ids(lines: Sequence[SessionLine]) -> dict[str, str]:
    """What a list shows of each id: where its shortest beginning would be too long, the whole cut in its middle."""
    short = short_ids(lines)
    return {
        line.session_id: own
        if len(own := shown(short[line.session_id])) <= ID_COLUMNS
        else middle_cut(shown(_own_part(line)), ID_COLUMNS, CUT)
        for line in lines
    }


def short_ids(lines: Sequence[SessionLine]) -> dict[str, str]:
    """What is shown of each id: the shortest beginning that tells sessions apart; of a sub-agent its own part."""
    parts = {line.session_id: _own_part(line) for line in lines}
    agents = {line.session_id for line in lines if _is_agent(line)}
    sessions = _beginnings([parts[own] for own in parts if own not in agents], SHORT_ID)
    parted = _beginnings([parts[own] for own in agents], SHORT_AGENT_ID)
    return {own: (parted if own in agents else sessions)[part] for own, part in parts.items()}


def _own_part(line: SessionLine) -> str:
    return line.session_id.removeprefix(line.parent_session_id + AGENT)


def _is_agent(line: SessionLine) -> bool:
    parent = line.parent_session_id
    return bool(parent) and line.session_id.startswith(parent + AGENT)


def _beginnings(ids: Sequence[str], least: int) -> dict[str, str]:
    ordered = sorted(set(ids))
    shortened: dict[str, str] = {}
    for at, own in enumerate(ordered):
        near = (*ordered[max(0, at - 1) : at], *ordered[at + 1 : at + 2])
        common = max((_common(own, other) for other in near), default=0)
        shortened[own] = own[: max(least, common + 1)]
    return shortened


def _common(one: str, other: str) -> int:
    number = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        number += 1
    return number
