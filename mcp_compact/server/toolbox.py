"""Tools as the server offers them: which profile has them, what they may do, schemas kept small."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

from mcp_compact.server.schemas import lean

PROFILES = ("agent", "core", "full")
"""Each has the tools of those before it."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A tool: its function (whose docstring is its description), its title and who gets it."""

    run: Callable[..., Awaitable[Any]]
    title: str
    profile: str
    reads_only: bool = False
    repeatable: bool = True
    """A second identical call changes nothing more."""
    destroys: bool = False
    """Removes something from the archive for good."""

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.run.__name__

    @property
    def description(self) -> str:
        """The docstring on one line."""
        return " ".join((self.run.__doc__ or "").split())


def built(facts: ToolFacts) -> Tool:
    """The SDK's form of a tool."""
    hints = ToolAnnotations(
        title=facts.title,
        read_only_hint=facts.reads_only,
        # Compacting removes nothing from the archive; an undo takes a marker back, not messages.
        destructive_hint=facts.destroys,
        idempotent_hint=facts.repeatable,
        open_world_hint=False,
    )
    tool = Tool.from_function(
        facts.run, title=facts.title, description=facts.description, annotations=hints, structured_output=True
    )
    tool.parameters = lean(tool.parameters)
    tool.fn_metadata.output_schema = lean(tool.fn_metadata.output_schema)
    # Answers are made from the dataclasses that the schema is made from; the SDK would check each against it again.
    tool.fn_metadata.output_model = None
    return tool


def of_profile(tools: Iterable[ToolFacts], profile: str) -> list[ToolFacts]:
    """The tools of a profile, or of a list of names, in their own order."""
    if profile not in PROFILES:
        named = names_in(profile)
        return [tool for tool in tools if tool.name in named]
    reach = PROFILES.index(profile)
    return [tool for tool in tools if PROFILES.index(tool.profile) <= reach]


def names_in(text: str) -> list[str]:
    """Names of tools that are joined by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
