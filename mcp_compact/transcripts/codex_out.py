"""Writes live turns as a session file (rollout) of Codex that it can resume.

A rollout holds what is sent (`response_item`) and, beside it, events that the program shows and lists.
Thinking of other providers' models has no place in it and stays in the archive; media of tool results
and documents become a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.messages.codec import clean, format_time
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.beside import Beside
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.responses_out import to_items

ORIGINATOR = "mcp-compact"
OPENAI = "openai"
"""Codex's own model provider."""


def session_items(  # noqa: PLR0913, PLR0917 - all that a rollout says
    turns: Sequence[Turn],
    facts: SessionFacts,
    session_id: str,
    at_ms: int,
    provider: str = OPENAI,
    records: Mapping[MessageUuid, Record] | None = None,
    beside: Beside | None = None,
) -> Iterator[dict[str, Any]]:
    """The objects of a whole rollout that begins at `at_ms`: its head, the items, and the events that show them.

    Codex refuses a session of another model provider (by its name in Codex's settings) than the one in use.
    Where `records` holds the records that the turns were made from, items of Codex's own go out as they came.
    """
    at = format_time(at_ms)
    head = {
        "id": session_id,
        "session_id": session_id,
        "timestamp": at,
        "cwd": facts.cwd or "",
        "originator": ORIGINATOR,
        "cli_version": "0.0.0",
        "source": "cli",
        "thread_source": "user",
        "model_provider": provider,
    }
    yield {"timestamp": at, "type": "session_meta", "payload": clean(head)}
    for item in to_items(turns, records, beside, for_codex=True):
        for type_, payload in (*_events(item), ("response_item", item)):
            yield {"timestamp": at, "type": type_, "payload": payload}


def _events(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the program shows of a message: it lists only sessions in which it finds a user's."""
    if item.get("type", "message") != "message" or item.get("role") not in ("user", "assistant"):
        return
    content = item.get("content")
    parts = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    if text and item["role"] == "user":
        lists: dict[str, Any] = {"images": [], "local_images": [], "text_elements": []}
        yield "event_msg", {"type": "user_message", "message": text, **lists}
    elif text:
        yield "event_msg", {"type": "agent_message", "message": text}
