"""Tools on the live context: how full it is, making it smaller, reading it, taking a compaction back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from mcp_compact.compaction.micro import MicroRequest
from mcp_compact.config import Settings
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import parse_time
from mcp_compact.server.answers import answer, reading
from mcp_compact.server.backend import Backend
from mcp_compact.server.schemas import Count, Cursor, Flag, Limit, Now, Session, Text, answer_model, as_json
from mcp_compact.server.sessions import session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.compacting import CompactCall
from mcp_compact.service.results import CompactResult, MessagesPage, MicroResult, Status, UndoResult
from mcp_compact.service.service import Service

MAX_QUOTED = 10
MAX_QUOTED_CHARS = 300


@dataclass(frozen=True, slots=True)
class ClearedTool:
    """What was cleared of one tool, or of `image` or `document`."""

    tool: str
    count: int
    tokens: int


StatusAnswer = answer_model(Status)
CompactAnswer = answer_model(CompactResult)
MicroAnswer = answer_model(MicroResult, cleared=tuple[ClearedTool, ...])
MessagesAnswer = answer_model(MessagesPage)
UndoAnswer = answer_model(UndoResult)


async def get_context_status(
    ctx: Context[Backend], session_id: Session = ""
) -> Annotated[CallToolResult, StatusAnswer]:
    """How full the context is: tokens, window, level (ok, warning, compact, hard), should_compact."""
    service, session = await session_of(ctx, session_id)
    status = await service.status(session)
    due = ", compaction is due" if status.should_compact else ""
    return answer(
        ctx,
        as_json(status),
        f"{status.tokens} of {status.context_window} tokens ({status.percent} %), level {status.level}{due}",
    )


async def compact_session(  # noqa: PLR0913, PLR0917 - the tool's parameters
    ctx: Context[Backend],
    session_id: Session = "",
    trigger: Annotated[Text, Field(json_schema_extra={"enum": ["agent", "manual", "auto", "reactive"]})] = "agent",
    custom_instructions: Annotated[Text, Field(description="What the summary should dwell on.")] = "",
    target_tokens: Annotated[Count, Field(description="Size to reach; default: just below the threshold.")] = 0,
    force: Annotated[Flag, Field(description="Also below the threshold.")] = False,  # noqa: FBT002
    dry_run: Annotated[Flag, Field(description="Only plan.")] = False,  # noqa: FBT002
    now: Now = "",
) -> Annotated[CallToolResult, CompactAnswer]:
    """Compact the context: memory of the work and the recent messages stay, older ones leave for the archive.

    Answers status, tokens before and after, why a path declined, what was lost and what to do next.
    """
    service, session = await session_of(ctx, session_id)
    call = CompactCall(
        trigger=trigger or "agent",
        custom_instructions=custom_instructions,
        target_tokens=target_tokens or None,
        force=force,
        dry_run=dry_run,
        now_ms=time_of(now),
    )
    result = await service.compact(session, call)
    data = as_json(result, without=() if dry_run else ("spans",))
    line = f"{result.status}: {result.tokens_before} -> {result.tokens_after} tokens. {result.next}"
    return answer(ctx, _with_short_quotes(data), line)


async def microcompact_tool_results(
    ctx: Context[Backend],
    session_id: Session = "",
    older_than_minutes: Annotated[Limit, Field(description="Default 60; 0: whatever the age.")] = -1,
    keep: Annotated[Limit, Field(description="So many newest results stay; default 5.")] = -1,
    media: Annotated[
        Text, Field(json_schema_extra={"enum": ["large", "all"]}, description="Images and documents.")
    ] = "large",
    now: Now = "",
) -> Annotated[CallToolResult, MicroAnswer]:
    """Clear old tool results and large media from the context, without any model; get_original gives each back."""
    if media not in ("", "large", "all"):
        raise CallerError("bad_media", f"media {media[:40]!r} is unknown.", "Use large or all.")
    service, session = await session_of(ctx, session_id)
    request = MicroRequest(
        now_ms=time_of(now),
        all_media=media == "all",
        keep=keep if keep >= 0 else None,
        everything=older_than_minutes == 0,
    )
    result = await _with_age(service, older_than_minutes).microcompact(session, request)
    data = as_json(result) | {"cleared": [as_json(ClearedTool(*row)) for row in result.cleared]}
    return answer(ctx, data, f"{result.status}: {result.tokens_freed} tokens freed. {result.next}")


async def get_messages_after_boundary(
    ctx: Context[Backend],
    session_id: Session = "",
    format: Annotated[Text, Field(description="anthropic or claude-code.")] = "anthropic",
    cursor: Cursor = "",
) -> Annotated[CallToolResult, MessagesAnswer]:
    """The context as it stands now, valid for the provider, in pages: go on with next_cursor until it is empty.

    Parts of a message that is larger than a page carry `part`.
    """
    service, session = await session_of(ctx, session_id)
    page = await service.messages(session, format_name=format or "anthropic", cursor=cursor)
    more = "; more with next_cursor" if page.next_cursor else ""
    return reading(ctx, as_json(page), f"{len(page.messages)} messages of a context of {page.tokens} tokens{more}")


async def undo_compaction(ctx: Context[Backend], session_id: Session = "") -> Annotated[CallToolResult, UndoAnswer]:
    """Take back the last compaction: the former context returns, with what was appended since."""
    service, session = await session_of(ctx, session_id)
    result = await service.undo(session)
    return answer(ctx, as_json(result), f"{result.status}: {result.tokens_before} -> {result.tokens_after} tokens")


def time_of(text: str) -> int | None:
    """Milliseconds since 1970 of an ISO time, or of digits; None for none. Raises CallerError `bad_time`."""
    said = text.strip()
    if not said:
        return None
    try:
        at_ms = parse_time(int(said) if said.isdecimal() else said)
    except (OverflowError, ValueError):
        at_ms = None
    if at_ms is None:
        raise CallerError("bad_time", f"now {said[:40]!r} is no time.", "Use ISO 8601 or milliseconds since 1970.")
    return at_ms


def _with_age(service: Service, minutes: int) -> Service:
    """The service with another age from which results are cleared, for one call."""
    if minutes <= 0:
        return service
    settings = cast("Settings", service.deps.settings)
    micro = replace(settings.policy.micro, older_than_minutes=minutes)
    policy = replace(settings.policy, micro=micro)
    return replace(service, deps=replace(service.deps, settings=replace(settings, policy=policy)))


def _with_short_quotes(data: dict[str, Any]) -> dict[str, Any]:
    """The answer with the instructions that were lost cut to a size that fits beside the context."""
    loss = data.get("loss", {})
    missing = loss.get("instructions_missing", ())
    short = [_cut(text) for text in missing[:MAX_QUOTED]]
    return data | {"loss": loss | {"instructions_missing": short}} if short else data


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + " [...]"


CONTEXT_TOOLS = (
    ToolFacts(get_context_status, "Context status", "agent", reads_only=True),
    ToolFacts(compact_session, "Compact the context", "agent"),
    ToolFacts(microcompact_tool_results, "Clear old tool results", "core"),
    ToolFacts(get_messages_after_boundary, "Read the context", "core", reads_only=True),
    ToolFacts(undo_compaction, "Undo the last compaction", "core", repeatable=False),
)
