"""Resources of a session, the prompt `compact`, and completion of session ids.

What a resource holds is what the tool of the same matter answers, so that both stay below the same size: where
there is more, the resource says which call goes on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import PromptArgument, UserMessage
from mcp.server.mcpserver.resources.templates import ResourceSecurity
from mcp.types import CompleteRequestParams, CompleteResult, Completion

from mcp_compact.errors import CallerError, CompactError
from mcp_compact.messages.codec import clean, well_formed
from mcp_compact.server.backend import Backend
from mcp_compact.server.errors import tool_error

if TYPE_CHECKING:
    from mcp_compact.server.app import CompactServer
    from mcp_compact.service.service import Service

JSON, MARKDOWN = "application/json", "text/markdown"
ID = "session_id"
MAX_COMPLETIONS = 100
"""As many as the protocol lets an answer hold."""
LOOKED_AT = 1_000
# An id is a key of the archive and never a path.
NO_PATH = ResourceSecurity(exempt_params=frozenset({ID}))


def register(server: CompactServer) -> None:
    """Give a server its resources and its prompt."""
    for name, title, mime_type, read in (
        ("context", "The live context", JSON, context),
        ("memory", "The session memory", MARKDOWN, memory),
        ("transcript", "The newest of the whole transcript", JSON, transcript),
        ("boundaries", "Compactions, clearings, snips and undos", JSON, boundaries),
    ):
        server.resource(f"session://{{{ID}}}/{name}", name=name, title=title, mime_type=mime_type, security=NO_PATH)(
            read
        )
    server.add_prompt(
        Prompt(
            name="compact",
            title="Compact the context",
            description="Make the context smaller now, and keep what matters.",
            arguments=[
                PromptArgument(name=ID, description="The session; default: the one at work here."),
                PromptArgument(name="keep", description="What has to be kept word for word."),
            ],
            fn=compact,
            context_kwarg=None,
        )
    )


async def context(session_id: str, ctx: Context[Backend]) -> str:
    """What the model is sent now, valid for the provider: the first page of get_messages_after_boundary."""
    page = await _read(ctx, lambda service: service.messages(session_id, whole_messages=False))
    more = {"next": f"get_messages_after_boundary with cursor {page.next_cursor}"} if page.next_cursor else {}
    return _json({"session_id": session_id, "tokens": page.tokens, "messages": list(page.messages)} | more)


async def memory(session_id: str, ctx: Context[Backend]) -> str:
    """What a compaction keeps of the work, as Markdown."""
    return well_formed((await _read(ctx, lambda service: service.get_memory(session_id))).content)


async def transcript(session_id: str, ctx: Context[Backend]) -> str:
    """The newest messages of the archive, also those that left the context."""
    page = await _read(ctx, lambda service: service.transcript(session_id))
    return _json({"session_id": session_id, "messages": list(page.messages), "next": page.next})


async def boundaries(session_id: str, ctx: Context[Backend]) -> str:
    """What was done to the context, the newest first: figures, and which are in effect."""
    page = await _read(ctx, lambda service: service.boundaries(session_id))
    from mcp_compact.server.schemas import as_json  # noqa: PLC0415 - `initialize` needs no tool's schema

    return _json(as_json(page))


async def _read(ctx: Context[Backend], read: Any) -> Any:  # noqa: ANN401 - one of the service's verbs
    service: Service = await ctx.request_context.lifespan_context.service()
    try:
        return await read(service)
    except CallerError as error:
        raise ResourceNotFoundError(str(tool_error(error))) from error
    except CompactError as error:
        raise ResourceError(str(tool_error(error))) from error


def _json(value: Any) -> str:  # noqa: ANN401
    return json.dumps(clean(value), ensure_ascii=False, separators=(",", ":"))


async def compact(session_id: str = "", keep: str = "") -> list[UserMessage]:
    """What a person says who picks the prompt `compact` in a client."""
    named = f' with session_id "{session_id.strip()}"' if session_id.strip() else ""
    kept = f"\nPin this word for word first, with pin_instruction:\n{keep.strip()}\n" if keep.strip() else ""
    text = (
        f"Compact the context of this session now.\n{kept}\n"
        "1. update_session_memory: requests, decisions, state, files, errors, what is open.\n"
        f"2. compact_session{named}, trigger manual. Of `summary_required` write the summary that `prompt` asks for "
        "and hand it in with submit_summary; of `prepared` tell me what `next` says.\n"
        "3. Tell me in two lines what was kept, what left and how it comes back."
    )
    return [UserMessage(well_formed(text))]


async def complete(ctx: Any, params: CompleteRequestParams) -> CompleteResult:  # noqa: ANN401 - the SDK's own
    """Ids of the caller's sessions that begin as what is typed, the last active first."""
    if params.argument.name != ID:
        return CompleteResult(completion=Completion(values=[]))
    backend: Backend = ctx.lifespan_context
    service = await backend.service()
    cwd = str(backend.place.cwd) if backend.place.cwd and backend.place.project_only else None
    known = [line.session_id for line in await service.sessions(cwd=cwd, limit=LOOKED_AT)]
    found = [name for name in known if name.startswith(params.argument.value)]
    shown = [well_formed(name) for name in found[:MAX_COMPLETIONS]]
    return CompleteResult(completion=Completion(values=shown, total=len(found), has_more=len(found) > len(shown)))
