"""Tools of the profile `full`: sessions as a whole, snips, plans, and the extractor on request."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field, WithJsonSchema

from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.ports.store import SessionFacts
from mcp_compact.server.answers import answer, last_named, reading
from mcp_compact.server.backend import Backend
from mcp_compact.server.context_tools import CompactAnswer, compacted
from mcp_compact.server.memory_tools import UpdateAnswer
from mcp_compact.server.progress import with_progress
from mcp_compact.server.schemas import Count, Cursor, Flag, Limit, Session, Text, answer_model, as_json
from mcp_compact.server.sessions import serving, session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.session_results import (
    BoundariesPage,
    LossAudit,
    SessionDeleted,
    SessionForked,
    SessionMade,
    SessionsPage,
    SnipResult,
)

DEFAULT_LINES = 50
MOST_NAMES = 10_000
RANGE = ".."
T = TypeVar("T")

# Both forms are told to clients: some can only send a list as text.
Names = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]})]

SessionAnswer = answer_model(SessionMade)
DeletedAnswer = answer_model(SessionDeleted)
ForkAnswer = answer_model(SessionForked)
SessionsAnswer = answer_model(SessionsPage)
BoundariesAnswer = answer_model(BoundariesPage)
SnipAnswer = answer_model(SnipResult)
AuditAnswer = answer_model(LossAudit)


async def create_session(  # noqa: PLR0913, PLR0917 - the tool's parameters
    ctx: Context[Backend],
    session_id: Annotated[Text, Field(description="Default: one is made up.")] = "",
    title: Text = "",
    model: Text = "",
    context_window: Count = 0,
    overhead_tokens: Annotated[Limit, Field(description="Of system prompt and tools.")] = -1,
    owner: Annotated[
        Text,
        Field(
            json_schema_extra={"enum": ["loop", "client"]},
            description="loop: you send what you are given. client: the client keeps its own history.",
        ),
    ] = "loop",
) -> Annotated[CallToolResult, SessionAnswer]:
    """Make an empty session. One that is there already stays as it is; status says so (created or exists)."""
    place = ctx.request_context.lifespan_context.place
    facts = SessionFacts(
        title=title or None,
        model=model or None,
        context_window=context_window or None,
        overhead_tokens=overhead_tokens if overhead_tokens >= 0 else None,
        owner=owner or "loop",
        cwd=str(place.cwd) if place.cwd else None,
    )
    made = await (await serving(ctx)).create_session(session_id, facts)
    return answer(ctx, as_json(made), f"{made.status}: {made.session_id}")


async def list_sessions(
    ctx: Context[Backend], limit: Count = DEFAULT_LINES, cursor: Cursor = ""
) -> Annotated[CallToolResult, SessionsAnswer]:
    """Sessions of this folder (over a network: yours), the last active first, with size, level and compactions."""
    place = ctx.request_context.lifespan_context.place
    page = await (await serving(ctx)).sessions_page(
        cwd=str(place.cwd) if place.cwd and place.project_only else None,
        limit=limit or DEFAULT_LINES,
        cursor=cursor.strip(),
    )
    more = "; more with next_cursor" if page.next_cursor else ""
    data = as_json(page) | {"sessions": as_json(page.sessions)}
    return reading(ctx, data, f"{len(page.sessions)} sessions{more}")


async def delete_session(
    ctx: Context[Backend], session_id: Annotated[Text, Field(description="Always needed: no default.")]
) -> Annotated[CallToolResult, DeletedAnswer]:
    """Remove a session for good: its messages, memory, pins. Forks and sub-agents' sessions stay. No undo."""
    done = await (await serving(ctx)).delete_session(session_id)
    return answer(ctx, as_json(done), f"{done.session_id} is deleted: {done.records} records")


async def fork_session(
    ctx: Context[Backend],
    session_id: Session = "",
    up_to: Annotated[Text, Field(description="uuid of the last message to take along; default: all.")] = "",
    new_session_id: Annotated[Text, Field(description="Default: one is made up.")] = "",
) -> Annotated[CallToolResult, ForkAnswer]:
    """Make a session that begins with the context, memory and pins of another, to try something without risk."""
    service, session = await session_of(ctx, session_id)
    fork = await service.fork_session(session, new_session_id=new_session_id, up_to=up_to)
    line = f"{fork.session_id}: {fork.live_messages} messages, {fork.tokens} tokens, from {fork.parent_session_id}"
    return answer(ctx, as_json(fork), line)


async def list_boundaries(
    ctx: Context[Backend], session_id: Session = "", cursor: Cursor = ""
) -> Annotated[CallToolResult, BoundariesAnswer]:
    """Compactions, clearings, snips and undos of a session, the newest first: figures, and which are in effect."""
    service, session = await session_of(ctx, session_id)
    page = await service.boundaries(session, cursor=cursor.strip())
    more = "; more with next_cursor" if page.next_cursor else ""
    data = as_json(page) | {"boundaries": as_json(page.boundaries)}
    return reading(ctx, data, f"{len(page.boundaries)} of {page.total} boundaries{more}")


async def snip_messages(
    ctx: Context[Backend],
    session_id: Session = "",
    uuids: Annotated[Names, Field(description="Messages by uuid.")] = "",
    ranges: Annotated[Names, Field(description="FIRST..LAST, both included, by uuid.")] = "",
    rules: Annotated[
        Names,
        Field(description="errors (failed calls), stale_reads (files read again or written since), tool:GLOB."),
    ] = "",
    force: Annotated[Flag, Field(description="Also what is protected; never an open call.")] = False,  # noqa: FBT002
) -> Annotated[CallToolResult, SnipAnswer]:
    """Take single messages out of the context, calls with their results; the archive keeps them, undo brings back.

    Protected: the user's first message, standing instructions, pins, the last round. Lists may be comma-separated.
    """
    request = SnipRequest(
        uuids=_names("uuids", uuids, MessageUuid),
        ranges=_names("ranges", ranges, _range),
        rules=_names("rules", rules, str),
        force=force,
    )
    service, session = await session_of(ctx, session_id)
    done = await service.snip(session, request)
    data = last_named(last_named(as_json(done), "messages"), "spared")
    why = f" {done.detail}." if done.detail else ""
    line = f"{done.status}: {len(done.messages)} messages, {done.tokens_freed} tokens freed.{why} {done.next}"
    return answer(ctx, data, line)


async def apply_plan(
    ctx: Context[Backend],
    plan_id: Annotated[Text, Field(description="Of a dry run of compact_session; good for an hour.")],
    session_id: Session = "",
) -> Annotated[CallToolResult, CompactAnswer]:
    """Carry out exactly the plan of a dry run. Otherwise status failed, reason plan_changed, and what changed.

    What was appended since follows what the plan keeps.
    """
    service, session = await session_of(ctx, session_id)
    return compacted(ctx, await service.apply_plan(session, plan_id))


async def extract_session_memory(
    ctx: Context[Backend], session_id: Session = ""
) -> Annotated[CallToolResult, UpdateAnswer]:
    """Bring the session memory up to date now, without a model and without compacting; get_session_memory reads it."""
    service, session = await session_of(ctx, session_id)
    memory = await with_progress(ctx, partial(service.extract_memory, session))
    return answer(
        ctx, as_json(memory, without=("content",)), f"Memory version {memory.version}, {memory.tokens} tokens"
    )


async def audit_loss(ctx: Context[Backend], session_id: Session = "") -> Annotated[CallToolResult, AuditAnswer]:
    """What left the context so far: rules, decisions, errors, names, figures; which are only in the archive."""
    service, session = await session_of(ctx, session_id)
    found = await service.audit_loss(session)
    told = ", ".join(f"{kind.in_context} of {kind.left} {kind.kind}" for kind in found.kinds)
    return answer(ctx, as_json(found), f"Of what left, the context still holds {told}")


def _names(parameter: str, given: Any, read: Callable[[str], T]) -> tuple[T, ...]:  # noqa: ANN401 - JSON
    """The entries of a list of texts, or of a text with commas. Raises CallerError `bad_list`."""
    items = _items(given)
    if items is None or not all(isinstance(item, str) for item in items):
        raise CallerError(
            "bad_list", f"{parameter} is no list of texts.", 'Send ["a", "b"], or the names with commas between.'
        )
    if len(items) > MOST_NAMES:
        raise CallerError("too_many", f"{parameter} has more than {MOST_NAMES} entries.", "Use ranges or rules.")
    return tuple(dict.fromkeys(read(text) for item in items if (text := item.strip())))


def _items(given: Any) -> list[Any] | None:  # noqa: ANN401 - JSON
    if given is None:
        return []
    if not isinstance(given, str):
        return given if isinstance(given, list) else None
    if given.lstrip().startswith("["):
        try:
            parsed = json.loads(given)
        except (ValueError, RecursionError):
            return None
        return parsed if isinstance(parsed, list) else None
    return given.split(",")


def _range(text: str) -> tuple[MessageUuid, MessageUuid]:
    first, between, last = (part.strip() for part in text.partition(RANGE))
    if not (first and between and last):
        raise CallerError("bad_range", f"{text[:80]!r} is no range.", "Write FIRST..LAST, two uuids of live messages.")
    return MessageUuid(first), MessageUuid(last)


SESSION_TOOLS = (
    # Without an id each call makes a session.
    ToolFacts(create_session, "Make a session", "full", repeatable=False),
    ToolFacts(list_sessions, "List sessions", "full", reads_only=True),
    ToolFacts(delete_session, "Delete a session", "full", destroys=True),
    ToolFacts(fork_session, "Fork a session", "full", repeatable=False),
    ToolFacts(list_boundaries, "List boundaries", "full", reads_only=True),
    ToolFacts(snip_messages, "Snip messages", "full"),
    ToolFacts(apply_plan, "Carry out a plan", "full"),
    ToolFacts(extract_session_memory, "Extract the session memory", "full"),
    ToolFacts(audit_loss, "Audit what left", "full", reads_only=True),
)
