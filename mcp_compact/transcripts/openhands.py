"""Reads the event lists of OpenHands: a JSON list, an object with `history`, or one event a line.

An action of the agent is a call, the observation that names it as its cause is the result. Where the agent called
no function (older agents write commands as text) the call's id is made from the event's. What the model said beside
its calls stands in the answer that each of its actions repeats: it is taken once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_compact.messages.message import MESSAGE_TYPES, Message
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.openhands_sdk import SdkEvents
from mcp_compact.transcripts.pieces import as_text, call, each_object, image_at, made, result, text, texts, usage_of
from mcp_compact.transcripts.translated import Entry, TranslatedReader, boundary

SILENT = frozenset(
    ("change_agent_state", "agent_state_changed", "null", "condensation_request", "recall", "pause", "resume",
     "start", "stop", "push", "send_pr", "loop_recovery", "user_rejected", "delegate", "summarize", "load",
     "server_ready")
)  # fmt: skip
"""Actions and observations that are nothing a model is sent."""
TOLD = frozenset(("recall", "delegate", "user_rejected"))
"""Observations that a model is sent though it called nothing."""
CONDENSED = "condensation"


class OpenHandsReader(TranslatedReader):
    """Turns the events of one conversation into records."""

    lists = ("history",)

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - a reader's own
        super().__init__(*arguments, **named)
        self._calls: dict[int, str] = {}
        """The call that each action made, by the action's id."""
        self._answers: set[str] = set()
        self._kept: dict[int, str] = {}
        """The messages that no condensation took out: the event's number and its uuid."""
        self._sdk = SdkEvents(self.session)

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """The row of a benchmark that the events stand in."""
        if value:
            self.session.session_id = uuid_of(value.get("instance_id"))
            yield Entry(HEADER, value)

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of an event."""
        if text_of(raw, "kind"):
            yield from self._sdk.entries(raw, body)
            return
        number = count_of(raw, "id")
        own = Entry(
            text_of(raw, "action", "observation") or "",
            raw,
            uuid=f"event-{number}" if number is not None else None,
            at=raw.get("timestamp"),
            body=body,
        )
        if own.kind == CONDENSED and "action" in raw:
            yield from self._condensed(own, object_of(raw, "args"))
            return
        message, is_meta = self._action(raw, own.kind) if "action" in raw else self._observation(raw, own.kind)
        understood = message is not None or own.kind in SILENT or own.kind == "system"
        yield replace(own, message=message, is_meta=is_meta, unknown=() if understood else (own.kind or "(none)",))
        if message is not None and message.role in MESSAGE_TYPES and number is not None and own.uuid:
            self._kept[number] = own.uuid

    # ------------------------------------------------------------ what the agent did

    def _action(self, raw: Mapping[str, Any], kind: str) -> tuple[Message | None, bool]:
        arguments, source = object_of(raw, "args"), text_of(raw, "source")
        said = text_of(arguments, "content") or text_of(raw, "message") or ""
        if kind == "system":
            return made("system", said), False
        if kind == "message" and source != "agent":
            return made("user", _with_images(said, arguments)), source == "environment"
        answer, spoken = self._answer_of(raw)
        if kind == "message":
            return replace(answer, content=said, blocks=made("assistant", said).blocks), False
        if kind in SILENT or source == "environment":
            return None, False
        if kind in ("finish", "reject"):
            last = text_of(arguments, "final_thought") or text_of(raw, "message") or spoken
            return replace(answer, content=last, blocks=made("assistant", last).blocks), False
        if source == "user" or not kind:
            return None, False
        call_id, name, given = self._call_of(raw, kind, arguments)
        if (number := count_of(raw, "id")) is not None:
            self._calls[number] = call_id
        content = [*texts(spoken or text_of(arguments, "thought")), call(call_id, name, given)]
        return replace(answer, content=content, blocks=made("assistant", content).blocks), False

    def _answer_of(self, raw: Mapping[str, Any]) -> tuple[Message, str]:
        """An empty message with the id, model and usage of the answer that an action was part of, and its text."""
        response = object_of(object_of(raw, "tool_call_metadata"), "model_response")
        answer_id = text_of(response, "id")
        choice = next(each_object(response.get("choices")), {})
        usage = None
        spoken = ""
        if answer_id is None or answer_id not in self._answers:
            usage = usage_of(response.get("usage"), ("prompt_tokens",), ("completion_tokens",))
            spoken = as_text(object_of(choice, "message").get("content"))
        if answer_id is not None:
            self._answers.add(answer_id)
        return made("assistant", [], id=answer_id, model=text_of(response, "model"), usage=usage), spoken

    def _call_of(self, raw: Mapping[str, Any], kind: str, arguments: Mapping[str, Any]) -> tuple[str, str, object]:
        told = object_of(raw, "tool_call_metadata")
        call_id = text_of(told, "tool_call_id")
        if call_id is None:
            return f"event-{raw.get('id')}", kind, {k: v for k, v in arguments.items() if k != "thought"}
        choice = next(each_object(object_of(told, "model_response").get("choices")), {})
        for each in each_object(object_of(choice, "message").get("tool_calls")):
            if each.get("id") == call_id:
                function = object_of(each, "function")
                return call_id, text_of(function, "name") or kind, function.get("arguments")
        return call_id, text_of(told, "function_name") or kind, arguments

    # ------------------------------------------------------------ what came of it

    def _observation(self, raw: Mapping[str, Any], kind: str) -> tuple[Message | None, bool]:
        call_id = text_of(object_of(raw, "tool_call_metadata"), "tool_call_id")
        if call_id is None and (cause := count_of(raw, "cause")) is not None:
            call_id = self._calls.get(cause)
        given = as_text(raw.get("content")) or text_of(raw, "message") or ""
        if call_id is not None:
            failed = kind == "error" or raw.get("success") is False
            return made("user", [result(call_id, given, failed=failed)]), False
        if not given or (kind in SILENT and kind not in TOLD):
            return None, False
        return made("user", given), True

    def _condensed(self, own: Entry, arguments: Mapping[str, Any]) -> Iterator[Entry]:
        """The agent's own compaction: these events left its view, and a summary stands for them."""
        gone = {n for n in arguments.get("forgotten_event_ids") or () if isinstance(n, int)}
        start = count_of(arguments, "forgotten_events_start_id")
        end = count_of(arguments, "forgotten_events_end_id")
        for number in list(self._kept):
            if number in gone or (start is not None and end is not None and start <= number <= end):
                del self._kept[number]
        summary = text_of(arguments, "summary")
        if not summary and not self._kept:
            yield own
            return
        yield boundary(
            own.raw, kind=own.kind, uuid=own.uuid, at=own.at, body=own.body, trigger="auto", kept=self._kept.values()
        )
        if summary:
            named = f"{own.uuid}:summary" if own.uuid else None
            yield Entry("summary", {"summary": summary}, made("user", summary), named, at=own.at, is_summary=True)


def _with_images(said: str, arguments: Mapping[str, Any]) -> str | list[Any]:
    addresses = arguments.get("image_urls")
    images = [image_at(url) for url in addresses if isinstance(url, str)] if isinstance(addresses, list) else []
    return [text(said), *images] if images else said
