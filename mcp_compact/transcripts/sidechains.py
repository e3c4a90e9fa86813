"""Which sub-agent a record belongs to.

Records of a sub-agent carry its id. Older files mark them only as `isSidechain`: these are grouped
by their root, along the parents, for several sub-agents may run at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.transcripts.fields import uuid_of
from mcp_compact.transcripts.parsed import Known


class Sidechains:
    """The groups of sub-agents' records met so far."""

    def __init__(self, is_main: Known, state: Mapping[str, Any] | None = None) -> None:
        self._is_main = is_main
        self._group_of: dict[str, str] = dict(state["groups"]) if state else {}
        self._last: str | None = state["last"] if state else None

    def agent_of(self, raw: Mapping[str, Any], uuid: MessageUuid) -> str | None:
        """The sub-agent of a record, None for the session's own."""
        if raw.get("isSidechain") is not True:
            # Streams of the client's SDK name the call that started the sub-agent instead.
            return uuid_of(raw.get("parent_tool_use_id"))
        named = uuid_of(raw.get("agentId"))
        if named is not None:
            return named
        self._last = self._group(raw, uuid)
        self._group_of[uuid] = self._last
        return self._last

    def _group(self, raw: Mapping[str, Any], uuid: MessageUuid) -> str:
        """The group of the parent. A root, or a child of the session's own records, begins one of its own."""
        parent = raw.get("parentUuid", "")
        if isinstance(parent, str) and parent in self._group_of:
            return self._group_of[parent]
        if parent is None or (isinstance(parent, str) and self._is_main(parent)):
            return uuid
        return self._last or uuid

    def state(self) -> dict[str, Any]:
        """As a JSON value; empty for files that name their sub-agents."""
        return {"groups": dict(self._group_of), "last": self._last}


def embedded_of(raw: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The sub-agent's record that a progress record carries, and the sub-agent; None if it carries none."""
    data = raw.get("data")
    if not isinstance(data, OBJECT) or data.get("type") != "agent_progress":
        return None
    embedded = data.get("message")
    agent = uuid_of(data.get("agentId")) or uuid_of(raw.get("parentToolUseID"))
    if agent is None or not isinstance(embedded, dict) or not isinstance(embedded.get("type"), str):
        return None
    return agent, embedded
