"""Tools of the profile `full` that hand messages on: validated by a provider's rules, or exported in its form."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field, WithJsonSchema

from mcp_compact.server.answers import reading
from mcp_compact.server.backend import Backend
from mcp_compact.server.feeding_tools import message_list
from mcp_compact.server.schemas import Cursor, Flag, Session, Text, answer_model, as_json
from mcp_compact.server.sessions import serving, session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.exporting import ExportPage
from mcp_compact.service.validating import Validation
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.validity.providers import PROVIDERS

MOST_NAMED = 100
"""Findings and changes in an answer."""

# Both forms are told to clients: some can only send a list as text.
Given = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "array"}, {"type": "object"}, {"type": "string"}]}),
    Field(description="A list of messages, items or contents, or a request with one; default: the session's context."),
]
ValidationAnswer = answer_model(Validation, messages=list[dict[str, Any]])
ExportAnswer = answer_model(ExportPage, messages=list[dict[str, Any]])


async def validate_messages(
    ctx: Context[Backend],
    messages: Given = "",
    session_id: Session = "",
    provider: Annotated[
        Text, Field(json_schema_extra={"enum": ["", *PROVIDERS]}, description="Default: told by the messages.")
    ] = "",
    repair: Annotated[Flag, Field(description="Also answer a list that is accepted.")] = False,  # noqa: FBT002
    cursor: Cursor = "",
) -> Annotated[CallToolResult, ValidationAnswer]:
    """What a provider would refuse in a list of messages, where and by which rule; repair lists each change.

    Nothing is stored. depends: only some models refuse it; open: a call waits for its result.
    """
    if messages:
        items = message_list(messages)
        done = await (await serving(ctx)).validate(items, provider.strip(), repair=repair, cursor=cursor.strip())
    else:
        service, session = await session_of(ctx, session_id)
        done = await service.validate_context(session, provider.strip(), repair=repair, cursor=cursor.strip())
    data = as_json(done) | {"messages": list(done.messages)}
    for name in ("findings", "changes"):
        data = _first_named(data, name)
    line = f"{done.status} by {done.provider}: {done.refused} refused in {done.checked} messages"
    return reading(ctx, data, f"{line}, {len(done.changes)} changes" if repair else line)


async def export_session(
    ctx: Context[Backend],
    session_id: Session = "",
    format: Annotated[Text, Field(json_schema_extra={"enum": list(OUTS)})] = "anthropic",
    whole: Annotated[Flag, Field(description="Everything that was said, not the context alone.")] = False,  # noqa: FBT002
    cursor: Cursor = "",
) -> Annotated[CallToolResult, ExportAnswer]:
    """A session as messages that a provider or a client takes: calls answered, keys masked. No file is written."""
    service, session = await session_of(ctx, session_id)
    page = await service.export_page(session, format.strip() or "anthropic", whole=whole, cursor=cursor.strip())
    more = "; more with next_cursor" if page.next_cursor else ""
    data = _first_named(as_json(page) | {"messages": list(page.messages)}, "warnings")
    return reading(ctx, data, f"{len(page.messages)} of {page.total} messages as {page.format}{more}")


def _first_named(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The answer with no more than the first of its items under `name`, and a warning where there were more."""
    items = data.get(name, ())
    if len(items) <= MOST_NAMED:
        return data
    note = f"{name}: only the first {MOST_NAMED} of {len(items)} are told"
    first = {name: items[:MOST_NAMED]}
    return data | first | {"warnings": [*(first if name == "warnings" else data).get("warnings", ()), note]}


EXCHANGE_TOOLS = (
    ToolFacts(validate_messages, "Validate messages", "full", reads_only=True),
    ToolFacts(export_session, "Export a session", "full", reads_only=True),
)
