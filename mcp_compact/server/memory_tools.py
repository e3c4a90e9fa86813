"""Tools on the session memory, and on everything that was ever stored."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from mcp_compact.errors import CallerError
from mcp_compact.server.answers import answer, reading
from mcp_compact.server.backend import Backend
from mcp_compact.server.progress import with_progress
from mcp_compact.server.schemas import Count, Cursor, Session, Text, answer_model, as_json
from mcp_compact.server.sessions import serving, session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.results import MemoryResult, OriginalPart, SearchResult
from mcp_compact.service.searching import NEWEST, Narrowed

DEFAULT_HITS = 20

MemoryAnswer = answer_model(MemoryResult)
UpdateAnswer = answer_model(MemoryResult, without=("content",))
SearchAnswer = answer_model(SearchResult)
OriginalAnswer = answer_model(OriginalPart)


async def get_session_memory(
    ctx: Context[Backend], session_id: Session = ""
) -> Annotated[CallToolResult, MemoryAnswer]:
    """The session memory (Markdown): what a compaction keeps of the work in place of old messages."""
    service, session = await session_of(ctx, session_id)
    memory = await service.get_memory(session)
    return reading(ctx, as_json(memory), f"Memory version {memory.version}, {memory.tokens} tokens")


async def update_session_memory(
    ctx: Context[Backend],
    content: Annotated[str, Field(description="The Markdown, taken as it is.")],
    section: Annotated[Text, Field(description="Heading of the section to replace; default: all.")] = "",
    summarized_through: Annotated[Text, Field(description="uuid of the last message it covers; default: newest.")] = "",
    session_id: Session = "",
) -> Annotated[CallToolResult, UpdateAnswer]:
    """Write the session memory, whole or one section: requests, state, files, commands, errors, results."""
    service, session = await session_of(ctx, session_id)
    memory = await service.update_memory(session, content, section=section, summarized_through=summarized_through)
    return answer(
        ctx, as_json(memory, without=("content",)), f"Memory version {memory.version}, {memory.tokens} tokens"
    )


async def search_messages(  # noqa: PLR0913, PLR0917 - the tool's parameters
    ctx: Context[Backend],
    query: Annotated[Text, Field(description="Taken literally; all words must occur.")],
    session_id: Annotated[Text, Field(description="Default: all sessions of this folder.")] = "",
    cursor: Cursor = "",
    limit: Count = DEFAULT_HITS,
    role: Annotated[Text, Field(json_schema_extra={"enum": ["user", "assistant", "tool", "system"]})] = "",
    tool: Annotated[Text, Field(description="Only its calls and results.")] = "",
    since: Annotated[Text, Field(description="ISO time.")] = "",
    until: Text = "",
    boundary: Annotated[Text, Field(description="before or after the last one; or before:UUID.")] = "",
    order: Annotated[Text, Field(json_schema_extra={"enum": ["newest", "best"]})] = "newest",
) -> Annotated[CallToolResult, SearchAnswer]:
    """Search everything ever stored, also what left the context."""
    service, place = await serving(ctx), ctx.request_context.lifespan_context.place
    if not session_id.strip() and place.cwd is None:
        raise CallerError("which_session", "session_id is required over a network.", "Pass the session's id.")
    search = partial(
        service.search,
        query,
        session_id=session_id,
        limit=limit or DEFAULT_HITS,
        cursor=cursor,
        cwd=str(place.cwd) if place.cwd and place.project_only else None,
        narrowed=Narrowed(role, tool, since, until, boundary, order or NEWEST),
    )
    result = await with_progress(ctx, lambda progress: search(progress=progress))
    more = "; more with next_cursor" if result.next_cursor else ""
    return reading(ctx, as_json(result), f"{len(result.hits)} hits{more}")


async def get_original(
    ctx: Context[Backend],
    id: Annotated[Text, Field(description="tool_use_id of a call, or uuid of a message.")],
    session_id: Session = "",
    cursor: Cursor = "",
) -> Annotated[CallToolResult, OriginalAnswer]:
    """The original of a tool result or message, whole, also after it was cleared or compacted away; in parts."""
    service, session = await session_of(ctx, session_id)
    part = await service.original(session, id, cursor=cursor)
    more = "; more with next_cursor" if part.next_cursor else ""
    return reading(ctx, as_json(part), f"Part {part.part} of {part.parts}{more}")


MEMORY_TOOLS = (
    ToolFacts(get_session_memory, "Read the session memory", "agent", reads_only=True),
    # Each call writes a version.
    ToolFacts(update_session_memory, "Write the session memory", "agent", repeatable=False),
)
ARCHIVE_TOOLS = (
    ToolFacts(search_messages, "Search all messages", "agent", reads_only=True),
    ToolFacts(get_original, "Read an original", "agent", reads_only=True),
)
