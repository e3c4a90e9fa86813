"""Reads the event lists of OpenHands: a JSON list, an object with `history`, or one event a line.

An action of the agent is a call, the observation that names it as its cause is the result. Where the agent called
no function (older agents write commands as text) the call's id is made from the event's. What the model said beside
its calls stands in the answer that each of its actions repeats: it is taken once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import MESSAGE_TYPES, Message, Usage
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER, UNKNOWN
from mcp_compact.transcripts.openhands_kept import KeptEvents
from mcp_compact.transcripts.openhands_sdk import SdkEvents
from mcp_compact.transcripts.parsed import Parsed
from mcp_compact.transcripts.pieces import (
    as_text,
    call,
    each_object,
    image_at,
    made,
    remember,
    result,
    text,
    texts,
    usage_of,
)
from mcp_compact.transcripts.report import UNNAMED
from mcp_compact.transcripts.translated import TranslatedReader

SILENT = frozenset(
    ("change_agent_state", "agent_state_changed", "null", "condensation_request", "recall", "pause", "resume",
     "start", "stop", "push", "send_pr", "loop_recovery", "user_rejected", "delegate", "summarize", "load",
     "server_ready")
)  # fmt: skip
"""Actions and observations that are nothing a model is sent."""
TOLD = frozenset(("recall", "delegate", "user_rejected"))
"""Observations that a model is sent though it called nothing."""
CONDENSED, DELEGATE = "condensation", "delegate"


class OpenHandsReader(TranslatedReader):
    """Turns the events of one conversation into records."""

    lists = ("history",)

    def begin(self, own: Mapping[str, Any]) -> None:
        """Observations name the actions that they answer, and a condensation what it took out."""
        self._calls: dict[int, str | None] = dict(own.get("calls", ()))
        """The last calls, by the number of the action that each one is."""
        self._answers: dict[str, object] = dict.fromkeys(own.get("answers", ()))
        """The last answers of the model: each of their actions repeats them."""
        self._kept = KeptEvents(own.get("kept", ()))
        """The messages that no condensation took out, by the event's number."""
        self._delegate: str | None = own.get("delegate")
        """The agent that the events are of, where one was asked for help and has not answered."""
        self._sdk = SdkEvents(own.get("sdk", ()))

    def memory(self) -> dict[str, Any]:
        """What a later event may refer to."""
        return {
            "calls": list(self._calls.items()),
            "answers": list(self._answers),
            "kept": self._kept.stated(),
            "delegate": self._delegate,
            "sdk": self._sdk.kept,
        }

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """The row of a benchmark that the events stand in."""
        if value:
            self.session.session_id = uuid_of(value.get("instance_id"))
            yield Entry(HEADER, value)

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterable[Entry]:
        """The record of an event."""
        if "kind" in raw and text_of(raw, "kind"):
            return self._sdk.entries(raw, body)
        number, kind, is_action = count_of(raw, "id"), text_of(raw, "action", "observation") or "", "action" in raw
        uuid = None if number is None else f"event-{number}"
        delegate = self._delegate_at(number, is_asked=is_action) if kind == DELEGATE else self._delegate
        if kind == CONDENSED and is_action and delegate is None:
            own = Entry(kind, raw, uuid=uuid, at=raw.get("timestamp"), body=body)
            return self._condensed(own, object_of(raw, "args"))
        message, is_meta = self._told(raw, kind, number, is_own=delegate is None)
        unknown = () if _is_understood(kind, message) else (kind or UNNAMED,)
        return (
            Entry(
                kind, raw, message, uuid, at=raw.get("timestamp"), is_meta=is_meta, agent_id=delegate, body=body,
                unknown=unknown,
            ),
        )  # fmt: skip

    def usual(self, raw: dict[str, Any], body: bytes | None, place: int) -> Parsed | None:
        """An event of the agent itself that is no compaction and asks no other agent."""
        if self._delegate is not None or "kind" in raw:
            return None
        kind = text_of(raw, "action", "observation") or ""
        if kind in (DELEGATE, CONDENSED):
            return None
        number = count_of(raw, "id")
        message, is_meta = self._told(raw, kind, number, is_own=True)
        if not _is_understood(kind, message):
            self.report.note_unknown(kind or UNNAMED, place)
        uuid = None if number is None else uuid_of(f"event-{number}")
        at = raw.get("timestamp")
        return self._record_of(raw, body, kind or UNKNOWN, message, place, uuid=uuid, at=at, is_meta=is_meta)

    def _told(
        self, raw: Mapping[str, Any], kind: str, number: int | None, *, is_own: bool
    ) -> tuple[Message | None, bool]:
        """What a model was told by an event, or said; and whether nobody typed it."""
        told = self._action(raw, kind, number) if "action" in raw else self._observation(raw, kind)
        message = told[0]
        if message is not None and is_own and number is not None and message.role in MESSAGE_TYPES:
            self._kept.add(number)
        return told

    def _delegate_at(self, number: int | None, *, is_asked: bool) -> str | None:
        """Whose an event is that asks another agent, or gives its answer."""
        if not is_asked:
            self._delegate = None
            return None
        delegate = self._delegate
        if delegate is None:
            # What another agent does until it answers is its own; ours is told the answer alone.
            self._delegate = f"delegate-{number}" if number is not None else None
        return delegate

    # ------------------------------------------------------------ what the agent did

    def _action(self, raw: Mapping[str, Any], kind: str, number: int | None) -> tuple[Message | None, bool]:
        arguments, source = object_of(raw, "args"), text_of(raw, "source")
        if kind == "system":
            return made("system", _said(raw, arguments)), False
        if kind == "message" and source != "agent":
            return made("user", _with_images(_said(raw, arguments), arguments)), source == "environment"
        told = object_of(raw, "tool_call_metadata")
        response = object_of(told, "model_response")
        answer_id, usage, spoken = self._answer_of(response)
        content: str | list[Any]
        if kind == "message":
            content = _said(raw, arguments)
        elif (kind in SILENT and "tool_call_id" not in told) or source == "environment":
            return None, False
        elif kind in ("finish", "reject"):
            content = text_of(arguments, "final_thought") or text_of(raw, "message") or spoken
        elif source == "user" or not kind:
            return None, False
        else:
            call_id, name, given = _call_of(number, told, response, kind, arguments)
            if number is not None:
                remember(self._calls, number, call_id)
            content = [*texts(spoken or text_of(arguments, "thought")), call(call_id, name, given)]
        return made("assistant", content, id=answer_id, model=response.get("model"), usage=usage), False

    def _answer_of(self, response: Mapping[str, Any]) -> tuple[str | None, Usage | None, str]:
        """The id, usage and text of the answer that an action was part of; usage and text are told once."""
        if not response:
            return None, None, ""
        answer_id = text_of(response, "id")
        if answer_id is not None and answer_id in self._answers:
            return answer_id, None, ""
        if answer_id is not None:
            remember(self._answers, answer_id, None)
        choice = next(each_object(response.get("choices")), {})
        usage = usage_of(response.get("usage"), ("prompt_tokens",), ("completion_tokens",))
        return answer_id, usage, as_text(object_of(choice, "message").get("content"))

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
        named = arguments.get("forgotten_event_ids")
        gone = {n for n in named if isinstance(n, int)} if isinstance(named, list) else set()
        start = count_of(arguments, "forgotten_events_start_id")
        end = count_of(arguments, "forgotten_events_end_id")
        self._kept.leave_out(
            lambda number: number in gone or (start is not None and end is not None and start <= number <= end)
        )
        kept = [f"event-{number}" for number in self._kept]
        summary = text_of(arguments, "summary")
        if not summary and not kept:
            yield own
            return
        yield boundary(own.raw, kind=own.kind, uuid=own.uuid, at=own.at, body=own.body, trigger="auto", kept=kept)
        if summary:
            named = f"{own.uuid}:summary" if own.uuid else None
            yield Entry("summary", {"summary": summary}, made("user", summary), named, at=own.at, is_summary=True)


def _is_understood(kind: str, message: Message | None) -> bool:
    return message is not None or kind in SILENT or kind == "system"


def _with_images(said: str, arguments: Mapping[str, Any]) -> str | list[Any]:
    addresses = arguments.get("image_urls")
    images = [image_at(url) for url in addresses if isinstance(url, str)] if isinstance(addresses, list) else []
    return [text(said), *images] if images else said


def _said(raw: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    return text_of(arguments, "content") or text_of(raw, "message") or ""


def _call_of(
    number: int | None, told: Mapping[str, Any], response: Mapping[str, Any], kind: str, arguments: Mapping[str, Any]
) -> tuple[str, str, object]:
    """The id of the call that an action is, its name and what it was given."""
    call_id = text_of(told, "tool_call_id")
    if call_id is None:
        return f"event-{number}", kind, {key: item for key, item in arguments.items() if key != "thought"}
    choice = next(each_object(response.get("choices")), {})
    for each in each_object(object_of(choice, "message").get("tool_calls")):
        if each.get("id") == call_id:
            function = object_of(each, "function")
            return call_id, text_of(function, "name") or kind, function.get("arguments")
    return call_id, text_of(told, "function_name") or kind, arguments
