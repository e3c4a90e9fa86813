"""All tools, in the order in which clients see them. Importing it loads every use case; `initialize` needs none."""

from __future__ import annotations

from mcp_compact.server.context_tools import CONTEXT_TOOLS
from mcp_compact.server.exchange_tools import EXCHANGE_TOOLS
from mcp_compact.server.feeding_tools import FEEDING_TOOLS
from mcp_compact.server.memory_tools import ARCHIVE_TOOLS, MEMORY_TOOLS
from mcp_compact.server.pin_tools import PIN_TOOLS
from mcp_compact.server.session_tools import SESSION_TOOLS
from mcp_compact.server.toolbox import ToolFacts

TOOLS: tuple[ToolFacts, ...] = (
    *FEEDING_TOOLS,
    *CONTEXT_TOOLS,
    *MEMORY_TOOLS,
    *PIN_TOOLS,
    *ARCHIVE_TOOLS,
    *SESSION_TOOLS,
    *EXCHANGE_TOOLS,
)


def tool_rows() -> list[tuple[str, str, str]]:
    """Every tool for the docs: name, the smallest profile that has it, what it does."""
    return [(facts.name, facts.profile, facts.description) for facts in TOOLS]
