"""Which session a call means: the one it names, else its client's, else the only one at work here. Never a guess."""

from __future__ import annotations

from mcp.server.mcpserver import Context

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import parse_time
from mcp_compact.server.backend import Backend
from mcp_compact.service.results import SessionLine
from mcp_compact.service.service import Service

ACTIVE_MS = 10 * 60_000
LOOKED_AT = 200
NAMED_IN_ERRORS = 8


async def serving(ctx: Context[Backend]) -> Service:
    """The service behind a call."""
    return await ctx.request_context.lifespan_context.service()


async def session_of(ctx: Context[Backend], session_id: str) -> tuple[Service, str]:
    """The service and the session that a call means. Raises CallerError `which_session` with the candidates.

    Where the client's hooks noted what it is at, the archive is brought up to date with its transcript first.
    """
    backend = ctx.request_context.lifespan_context
    service, place = await backend.service(), backend.place
    bound = await backend.follower.look() if backend.follower is not None else None
    if session_id.strip():
        return service, session_id
    if bound is not None:
        return service, bound.session_id
    if place.cwd is None:
        raise CallerError("which_session", "session_id is required over a network.", "Pass the session's id.")
    # A sub-agent's session is part of its parent's work and is meant only where it is named.
    known = await service.sessions(cwd=str(place.cwd), limit=LOOKED_AT)
    lines = [line for line in known if not line.parent_session_id or line.is_fork]
    since = service.deps.clock.now_ms() - ACTIVE_MS
    active = [line for line in lines if (parse_time(line.stored) or 0) >= since]
    if len(active) == 1:
        return service, active[0].session_id
    raise _which(active, lines)


def _which(active: list[SessionLine], lines: list[SessionLine]) -> CallerError:
    if not lines:
        return CallerError(
            "which_session",
            "No session is known for this folder.",
            "Pass session_id; append_messages or import_transcript makes one.",
        )
    why = "Several sessions were" if active else "No session was"
    named = "; ".join(_candidate(line) for line in (active or lines)[:NAMED_IN_ERRORS])
    return CallerError(
        "which_session", f"{why} active in this folder in the last 10 minutes.", f"Pass session_id, one of: {named}."
    )


def _candidate(line: SessionLine) -> str:
    title = f" ({line.title[:40]!r}, {line.updated})" if line.title else f" ({line.updated})"
    return line.session_id + title
