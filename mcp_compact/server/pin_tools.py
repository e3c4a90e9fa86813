"""Tools on pins: what every compaction must keep word for word."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from mcp_compact.server.answers import answer
from mcp_compact.server.backend import Backend
from mcp_compact.server.schemas import Session, Text, answer_model, as_json
from mcp_compact.server.sessions import session_of
from mcp_compact.server.toolbox import ToolFacts
from mcp_compact.service.pins import KINDS, PinResult

PinAnswer = answer_model(PinResult)
Kind = Annotated[Text, Field(json_schema_extra={"enum": list(KINDS)})]


async def pin_instruction(
    ctx: Context[Backend],
    text: Annotated[str, Field(description="Taken as it is; of kind tools: names.")],
    kind: Kind = "instruction",
    name: Annotated[Text, Field(description="Of the skill, path of the file; the same name replaces.")] = "",
    session_id: Session = "",
) -> Annotated[CallToolResult, PinAnswer]:
    """Keep an instruction (or plan, to-dos, skill, file, tools) word for word through every compaction."""
    service, session = await session_of(ctx, session_id)
    result = await service.pin(session, text, kind=kind, name=name)
    return answer(ctx, as_json(result), f"{result.status}: {result.kind} {result.name!r}, {len(result.pins)} pins")


async def unpin(
    ctx: Context[Backend],
    name: Annotated[Text, Field(description="As pin_instruction answered it.")] = "",
    kind: Kind = "instruction",
    session_id: Session = "",
) -> Annotated[CallToolResult, PinAnswer]:
    """Take a pin back, so that compactions need not keep it; without name and kind the pins are listed."""
    service, session = await session_of(ctx, session_id)
    if not name.strip() and kind in ("", "instruction"):
        result = await service.pins(session)
    else:
        result = await service.unpin(session, name, kind=kind)
    return answer(ctx, as_json(result), f"{result.status}: {result.kind} {result.name!r}, {len(result.pins)} pins")


PIN_TOOLS = (
    ToolFacts(pin_instruction, "Pin an instruction", "agent"),
    ToolFacts(unpin, "Take a pin back", "full"),
)
