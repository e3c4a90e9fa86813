"""The events of OpenHands' agent SDK (each names its `kind`), as the newer agent writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import MESSAGE_TYPES, Message
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import object_of, text_of, texts_of, uuid_of
from mcp_compact.transcripts.pieces import as_text, call, each_object, image_at, made, result, text

CONDENSATION = "Condensation"
OTHERS = frozenset(
    ("ConversationStateUpdateEvent", "PauseEvent", "CondensationRequest", "CondensationSummaryEvent", "TokenEvent",
     "LLMCompletionLogEvent", "StreamingDeltaEvent", "ConversationErrorEvent")
)  # fmt: skip
"""Events that are nothing a model is sent."""


class SdkEvents:
    """Turns one event after the other into records."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        self._kept = dict.fromkeys(kept)

    @property
    def kept(self) -> list[str]:
        """The messages that no condensation took out."""
        return list(self._kept)

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of an event."""
        kind, uuid, at = text_of(raw, "kind") or "", uuid_of(raw.get("id")), raw.get("timestamp")
        if kind == CONDENSATION:
            yield from self._condensed(Entry(kind, raw, uuid=uuid, at=at, body=body))
            return
        message = _message(kind, raw)
        understood = message is not None or kind in OTHERS
        yield Entry(kind, raw, message, uuid, at=at, body=body, unknown=() if understood else (kind,))
        if message is not None and message.role in MESSAGE_TYPES and uuid:
            self._kept[uuid] = None

    def _condensed(self, own: Entry) -> Iterator[Entry]:
        for gone in texts_of(own.raw, "forgotten_event_ids"):
            self._kept.pop(gone, None)
        summary = text_of(own.raw, "summary")
        if not summary and not self._kept:
            yield own
            return
        yield boundary(own.raw, kind=own.kind, uuid=own.uuid, at=own.at, body=own.body, trigger="auto", kept=self._kept)
        if summary:
            named = f"{own.uuid}:summary" if own.uuid else None
            yield Entry("summary", {"summary": summary}, made("user", summary), named, at=own.at, is_summary=True)


def _message(kind: str, raw: Mapping[str, Any]) -> Message | None:
    call_id = text_of(raw, "tool_call_id")
    match kind:
        case "SystemPromptEvent":
            return made("system", _content(raw.get("system_prompt")))
        case "MessageEvent":
            said = object_of(raw, "llm_message")
            role = "assistant" if said.get("role") == "assistant" else "user"
            return made(role, _content(said.get("content")), id=raw.get("llm_response_id"))
        case "ActionEvent" if call_id is not None:
            asked = object_of(raw, "tool_call")
            function = object_of(asked, "function") or asked
            given = function.get("arguments", raw.get("action"))
            name = text_of(raw, "tool_name") or text_of(function, "name")
            content = [*_content(raw.get("thought")), call(call_id, name, given)]
            return made("assistant", content, id=raw.get("llm_response_id"))
        case "ObservationEvent" if call_id is not None:
            seen = object_of(raw, "observation")
            content = seen.get("content", seen.get("output"))
            failed = seen.get("is_error") is True
            return made("user", [result(call_id, _content(content) if content else as_text(seen), failed=failed)])
        case "AgentErrorEvent" | "UserRejectObservation" if call_id is not None:
            why = text_of(raw, "error", "rejection_reason") or ""
            return made("user", [result(call_id, why, failed=True)])
        case _:
            return None


def _content(content: object) -> list[Any]:
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        words = as_text(content)
        return [text(words)] if words else []
    blocks: list[Any] = []
    for part in each_object(content):
        if isinstance(part.get("text"), str):
            blocks.append(text(part["text"]))
        blocks += [image_at(url) for url in texts_of(part, "image_urls")]
    return blocks
