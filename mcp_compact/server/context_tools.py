"""Tools on the live context: how full it is, making it smaller, reading it, taking a compaction back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult
from pydantic import Field

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import parse_time
from mcp_compact.server.answers import answer, reading
from mcp_compact.server.backend import Backend
from mcp_compact.server.progress import with_beat
from mcp_compact.server.sampling import client_model
from mcp_compact.server.schemas import Count, Cursor, Flag, Limit, Now, Session, Text, answer_model, as_json
from mcp_compact.server.sessions import serving, session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.asking import SAMPLING_REQUIRED
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import CompactResult, MessagesPage, MicroResult, Status, UndoResult

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
    ctx: Context[Backend],
    session_id: Session = "",
    detail: Annotated[Flag, Field(description="Also what could be snipped.")] = False,  # noqa: FBT002
) -> Annotated[CallToolResult, StatusAnswer]:
    """How full the context is: tokens, window, level (ok, warning, compact, hard), should_compact."""
    service, session = await session_of(ctx, session_id)
    status = await service.status(session, detail=detail)
    due = ", compaction is due" if status.should_compact else ""
    step = f". {status.next}" if status.next else ""
    return answer(
        ctx,
        as_json(status),
        f"{status.tokens} of {status.context_window} tokens ({status.percent} %), level {status.level}{due}{step}",
    )


async def compact_session(  # noqa: PLR0913, PLR0917 - the tool's parameters
    ctx: Context[Backend],
    session_id: Session = "",
    trigger: Annotated[Text, Field(json_schema_extra={"enum": ["agent", "manual", "auto", "reactive"]})] = "agent",
    custom_instructions: Annotated[Text, Field(description="What the summary should dwell on.")] = "",
    target_tokens: Annotated[Count, Field(description="Size to reach; default: just below the threshold.")] = 0,
    force: Annotated[Flag, Field(description="Also below the threshold.")] = False,  # noqa: FBT002
    dry_run: Annotated[Flag, Field(description="Only plan.")] = False,  # noqa: FBT002
    error: Annotated[Text, Field(description="For trigger reactive: the provider's error.")] = "",
    cursor: Annotated[Text, Field(description="next_cursor of summary_required: more material.")] = "",
    now: Now = "",
) -> Annotated[CallToolResult, CompactAnswer] | InputRequiredResult:
    """Compact the context: memory of the work and the recent messages stay, older ones leave for the archive.

    Answers status, tokens before and after, why a path declined, what was lost and what to do next.
    summary_required: write the summary that `prompt` asks for, then call submit_summary.
    """
    if cursor.strip():
        service, session = await session_of(ctx, session_id)
        return compacted(ctx, await service.material(session, cursor.strip()))
    model = client_model(ctx)
    call = CompactCall(
        trigger=trigger or "agent",
        custom_instructions=custom_instructions,
        target_tokens=target_tokens or None,
        force=force,
        dry_run=dry_run,
        now_ms=time_of(now),
        error=error,
        agent_writes=ctx.request_context.lifespan_context.takes_summaries,
        sampling=model,
    )
    if ctx.request_state is not None:
        going_on = partial((await serving(ctx)).sampled, ctx.request_state, call)
        result = await with_beat(ctx, "compacting", going_on)
    else:
        service, session = await session_of(ctx, session_id)
        result = await with_beat(ctx, "compacting", partial(service.compact, session, call))
    if model is not None and result.status == SAMPLING_REQUIRED:
        return model.question(result.compaction_id)
    return compacted(ctx, result, spans=dry_run)


def compacted(ctx: Context[Backend], result: CompactResult, *, spans: bool = False) -> CallToolResult:
    """The answer of a compaction."""
    data = as_json(result, without=() if spans else ("spans",))
    line = f"{result.status}: {result.tokens_before} -> {result.tokens_after} tokens. {result.next}"
    return answer(ctx, _with_short_quotes(data), line)


async def submit_summary(
    ctx: Context[Backend],
    compaction_id: Annotated[Text, Field(description="Of the answer summary_required.")],
    summary: Annotated[str, Field(description="The notes in Markdown, taken as they are.")],
) -> Annotated[CallToolResult, CompactAnswer]:
    """Hand in the summary that compact_session asked for; it is checked, completed and put in place."""
    work = partial((await serving(ctx)).submit_summary, compaction_id, summary)
    return compacted(ctx, await with_beat(ctx, "putting the summary in place", work))


async def microcompact_tool_results(  # noqa: PLR0913, PLR0917 - the tool's parameters
    ctx: Context[Backend],
    session_id: Session = "",
    mode: Annotated[
        Text,
        Field(
            json_schema_extra={"enum": ["age", "tokens", "all"]},
            description="Which results: old ones; in a full context, those beyond the newest 40000 tokens; all.",
        ),
    ] = "age",
    older_than_minutes: Annotated[Limit, Field(description="Of mode age: default 60; 0: whatever the age.")] = -1,
    keep: Annotated[Limit, Field(description="So many newest results stay; default 5.")] = -1,
    media: Annotated[
        Text, Field(json_schema_extra={"enum": ["large", "all"]}, description="Images and documents.")
    ] = "large",
    force: Annotated[Flag, Field(description="Mode tokens also in a context that is not full.")] = False,  # noqa: FBT002
    now: Now = "",
) -> Annotated[CallToolResult, MicroAnswer]:
    """Clear old tool results and large media from the context, without any model; get_original gives each back."""
    if media not in ("", "large", "all"):
        raise CallerError("bad_media", f"media {media[:40]!r} is unknown.", "Use large or all.")
    service, session = await session_of(ctx, session_id)
    chosen = mode_of(mode)
    request = MicroRequest(
        mode=MicroMode.ALL if chosen is MicroMode.AGE and older_than_minutes == 0 else chosen,
        now_ms=time_of(now),
        older_than_minutes=older_than_minutes if older_than_minutes > 0 else None,
        keep=keep if keep >= 0 else None,
        all_media=media == "all",
        trigger_tokens=0 if force else None,
    )
    result = await service.microcompact(session, request)
    data = as_json(result) | {"cleared": [as_json(ClearedTool(*row)) for row in result.cleared]}
    why = f" {result.detail}." if result.detail else ""
    return answer(ctx, data, f"{result.status}: {result.tokens_freed} tokens freed.{why} {result.next}")


async def get_messages_after_boundary(
    ctx: Context[Backend],
    session_id: Session = "",
    format: Annotated[Text, Field(description="anthropic, openai, responses, gemini or claude-code.")] = "anthropic",
    cursor: Cursor = "",
    whole_messages: Annotated[Flag, Field(description="For programs: none in parts, however large.")] = False,  # noqa: FBT002
) -> Annotated[CallToolResult, MessagesAnswer]:
    """The context as it stands now, valid for the provider, in pages: go on with next_cursor until it is empty.

    Parts of a message that is larger than a page carry `part`; programs that send the list on set whole_messages.
    """
    service, session = await session_of(ctx, session_id)
    page = await service.messages(
        session, format_name=format or "anthropic", cursor=cursor, whole_messages=whole_messages
    )
    more = "; more with next_cursor" if page.next_cursor else ""
    return reading(ctx, as_json(page), f"{len(page.messages)} messages of a context of {page.tokens} tokens{more}")


async def undo_compaction(ctx: Context[Backend], session_id: Session = "") -> Annotated[CallToolResult, UndoAnswer]:
    """Take back the last compaction: the former context returns, with what was appended since."""
    service, session = await session_of(ctx, session_id)
    result = await service.undo(session)
    return answer(ctx, as_json(result), f"{result.status}: {result.tokens_before} -> {result.tokens_after} tokens")


def mode_of(text: str) -> MicroMode:
    """The mode of that name, `age` for none. Raises CallerError `bad_mode`."""
    try:
        return MicroMode(text or MicroMode.AGE)
    except ValueError:
        raise CallerError("bad_mode", f"mode {text[:40]!r} is unknown.", "Use age, tokens or all.") from None


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
    ToolFacts(submit_summary, "Hand in a summary", "core", repeatable=False),
    ToolFacts(microcompact_tool_results, "Clear old tool results", "core"),
    ToolFacts(get_messages_after_boundary, "Read the context", "core", reads_only=True),
    ToolFacts(undo_compaction, "Undo the last compaction", "core", repeatable=False),
)
