"""Tools that bring a conversation in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field, WithJsonSchema

from mcp_compact.errors import CallerError
from mcp_compact.ports.store import SessionFacts
from mcp_compact.server.answers import answer, last_named
from mcp_compact.server.backend import Backend
from mcp_compact.server.errors import checked
from mcp_compact.server.progress import with_progress
from mcp_compact.server.roots import readable_path
from mcp_compact.server.schemas import Count, Limit, Session, Text, answer_model, as_json
from mcp_compact.server.sessions import serving, session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.results import AppendResult, ImportResult, Status
from mcp_compact.service.sessions import check_facts

# Both forms are told to clients: some can only send a list as text.
Messages = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "string"}]}),
    Field(
        description="Messages {role, content}, Responses items or Gemini contents as the API has them, or transcript "
        "records; a list, or the list as JSON text."
    ),
]


@dataclass(frozen=True, slots=True)
class Fullness:
    """How full the context is now."""

    tokens: int
    percent: int
    level: str
    should_compact: bool
    compact_at: int
    context_window: int
    live_messages: int


AppendAnswer = answer_model(AppendResult, status=Fullness)
ImportAnswer = answer_model(ImportResult, status=Fullness)


async def append_messages(
    ctx: Context[Backend],
    messages: Messages,
    session_id: Session = "",
    model: Text = "",
    context_window: Annotated[Count, Field(description="0: not known.")] = 0,
    overhead_tokens: Annotated[Limit, Field(description="Of system prompt and tools.")] = -1,
) -> Annotated[CallToolResult, AppendAnswer]:
    """Store new messages of a conversation, or its whole list again: what is known is recognised.

    An unknown session_id makes a session. Answers how full the context is.
    """
    listed = message_list(messages)
    backend = ctx.request_context.lifespan_context
    service, session = await session_of(ctx, session_id)
    facts = SessionFacts(
        model=model or None,
        context_window=context_window or None,
        overhead_tokens=overhead_tokens if overhead_tokens >= 0 else None,
        cwd=str(backend.place.cwd) if backend.place.cwd else None,
    )
    check_facts(facts)
    async with backend.turn(session):
        result = await service.append_messages(listed, session, facts)
    data = _with_fullness(as_json(result), result.status)
    line = f"{result.stored} stored, {result.known} known already; {_fullness_line(result.status)}"
    line += f"; {result.note}" if result.note else ""
    return answer(ctx, last_named(data, "uuids"), line)


def message_list(value: Any) -> Any:  # noqa: ANN401 - the service says what is no message
    """The messages of a call, those given as JSON text parsed. Raises CallerError `bad_messages`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            hint = 'Send [{"role": "user", "content": "..."}], as a list or as JSON text.'
            raise CallerError("bad_messages", "messages is text, but no JSON.", hint) from None
    # The SDK parses JSON text too, after the arguments were checked.
    return checked({"messages": value})["messages"]


async def import_transcript(
    ctx: Context[Backend],
    path: Annotated[Text, Field(description="A file in this project or among its client's transcripts.")] = "",
    content: Annotated[Text, Field(description="Or the transcript's text.")] = "",
    format: Annotated[Text, Field(description="Its format; default: told by its content.")] = "",
    session_id: Annotated[Text, Field(description="Default: the transcript's own.")] = "",
) -> Annotated[CallToolResult, ImportAnswer]:
    """Import a transcript file (or its text) and answer its session_id. Repeating it adds only what is new."""
    if bool(path.strip()) == bool(content):
        raise CallerError("path_or_content", "Exactly one of path and content is needed.", "Pass the file's path.")
    service = await serving(ctx)
    if content:
        work = partial(service.import_content, content, format_name=format, session_id=session_id)
    else:
        place = ctx.request_context.lifespan_context.place
        real = await to_thread.run_sync(readable_path, path, place.roots, place.cwd)
        work = partial(service.import_file, real, format_name=format, session_id=session_id)
    result = await with_progress(ctx, lambda progress: work(progress=progress))
    data = _with_fullness(as_json(result), result.status)
    line = f"{result.session_id}: {result.messages} messages, {result.stored} new; {_fullness_line(result.status)}"
    return answer(ctx, last_named(data, "children"), line)


def _with_fullness(data: dict[str, Any], status: Status) -> dict[str, Any]:
    fields = Fullness.__dataclass_fields__
    warnings = [*data.get("warnings", ()), *status.warnings]
    return (
        data
        | {"status": {name: getattr(status, name) for name in fields}}
        | ({"warnings": warnings} if warnings else {})
    )


def _fullness_line(status: Status) -> str:
    due = "; compaction is due" if status.should_compact else ""
    return f"{status.tokens} of {status.context_window} tokens ({status.percent} %){due}"


FEEDING_TOOLS = (
    # One message sent twice is two messages: only longer lists are recognised.
    ToolFacts(append_messages, "Append messages", "core", repeatable=False),
    ToolFacts(import_transcript, "Import a transcript", "core"),
)
