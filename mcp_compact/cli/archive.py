"""The archive that the settings name, opened for one command; and the session that a person means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from mcp_compact.config import Settings, load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.results import SessionLine
from mcp_compact.service.service import Service

Answer = TypeVar("Answer")
SHORT_ID = 8
"""Characters of an id that are shown, more where they do not tell two sessions apart."""
MOST_SESSIONS = 10_000
LISTED_CANDIDATES = 5


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
    found = [own for own in known if own.startswith(name)]
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


async def _last_active(service: Service) -> str:
    own = await service.sessions(cwd=here(), limit=1)
    if own:
        return own[0].session_id
    raise CallerError(
        "no_session_here",
        f"No session of this folder ({here()}) is in the archive.",
        "Name one: `mcp-compact sessions --all` lists those of every folder.",
    )


def short_ids(lines: list[SessionLine]) -> dict[str, str]:
    """The shortest beginnings that tell these sessions apart, of at least eight characters."""
    ordered = sorted({line.session_id for line in lines})
    shortened: dict[str, str] = {}
    for at, own in enumerate(ordered):
        near = (*ordered[max(0, at - 1) : at], *ordered[at + 1 : at + 2])
        common = max((_common(own, other) for other in near), default=0)
        shortened[own] = own[: max(SHORT_ID, common + 1)]
    return shortened


def _common(one: str, other: str) -> int:
    number = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        number += 1
    return number
