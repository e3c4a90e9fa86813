"""Reads the event logs of Copilot CLI, one event a line.

Events follow each other in the file's order. What a sub-agent said carries the call that started it. The user's
message is what was typed; what the client put around it before sending stays in the archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.pieces import as_text, call, each_object, made, remember, result, text, texts, usage_of
from mcp_compact.transcripts.translated import TranslatedReader

KNOWN_GROUPS = frozenset(
    ("session", "assistant", "user", "tool", "hook", "system", "subagent", "skill", "permission", "abort",
     "pending_messages", "elicitation", "external_tool", "command", "mcp", "model", "capabilities", "exit_plan_mode")
)  # fmt: skip
"""The first words of the kinds of events."""


class CopilotCliReader(TranslatedReader):
    """Turns the events of one session into records."""

    def begin(self, own: Mapping[str, Any]) -> None:
        """Nearly every call stands in its answer, and is told again when it begins."""
        self._asked: dict[str, object] = dict.fromkeys(own.get("asked", ()))
        """The last calls that were made."""

    def memory(self) -> dict[str, Any]:
        """The last calls."""
        return {"asked": list(self._asked)}

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of one event, and what follows from it."""
        kind, data = text_of(raw, "type") or "", object_of(raw, "data")
        if kind.startswith("session."):
            self._look(kind, data)
        is_compaction = kind == "session.compaction_complete" and text_of(data, "summaryContent")
        own = Entry(
            kind,
            raw,
            None if is_compaction else self._message(kind, data),
            uuid_of(raw.get("id")),
            at=raw.get("timestamp"),
            body=body,
            agent_id=uuid_of(data.get("parentToolCallId")),
            unknown=() if kind.partition(".")[0] in KNOWN_GROUPS else (kind or "(none)",),
        )
        if is_compaction:
            yield from self._compaction(own, data)
        else:
            yield own

    def _message(self, kind: str, data: Mapping[str, Any]) -> Message | None:
        match kind:
            case "user.message":
                return made("user", _typed(data))
            case "system.message":
                return made("system", as_text(data.get("content")))
            case "assistant.message":
                return self._answer(data)
            case "tool.execution_start" if (call_id := text_of(data, "toolCallId")) and call_id not in self._asked:
                remember(self._asked, call_id, None)
                return made("assistant", [call(call_id, data.get("toolName"), data.get("arguments"))])
            case "tool.execution_complete" if call_id := text_of(data, "toolCallId"):
                return made("user", [result(call_id, _outcome(data), failed=data.get("success") is False)])
            case _:
                return None

    def _answer(self, data: Mapping[str, Any]) -> Message:
        blocks: list[Any] = texts(data.get("content"))
        for each in each_object(data.get("toolRequests")):
            if call_id := text_of(each, "toolCallId"):
                remember(self._asked, call_id, None)
                blocks.append(call(call_id, each.get("name"), each.get("arguments")))
        usage = usage_of(data, ("inputTokens", "cacheReadTokens", "cacheWriteTokens"), ("outputTokens",))
        return made("assistant", blocks, id=data.get("messageId"), model=data.get("model"), usage=usage)

    def _compaction(self, own: Entry, data: Mapping[str, Any]) -> Iterator[Entry]:
        """The client's own compaction: its summary stands for all that came before."""
        summary = text_of(data, "summaryContent") or ""
        yield boundary(
            own.raw,
            kind=own.kind,
            uuid=own.uuid,
            at=own.at,
            body=own.body,
            tokens_before=count_of(data, "preCompactionTokens"),
            tokens_after=count_of(data, "postCompactionTokens"),
        )
        yield Entry(
            "summary", {"of": own.uuid, "summary": summary}, made("user", summary),
            f"{own.uuid}:summary" if own.uuid else None, at=own.at, is_summary=True,
        )  # fmt: skip

    def _look(self, kind: str, data: Mapping[str, Any]) -> None:
        session = self.session
        match kind:
            case "session.start" | "session.resume":
                place = object_of(data, "context")
                session.session_id = session.session_id or uuid_of(data.get("sessionId"))
                session.model = text_of(data, "selectedModel") or session.model
                session.version = text_of(data, "copilotVersion") or session.version
                session.cwd = session.cwd or text_of(place, "cwd")
                session.git_branch = text_of(place, "branch") or session.git_branch
            case "session.model_change":
                session.model = text_of(data, "newModel") or session.model
            case "session.title_changed":
                session.given_title = text_of(data, "title") or session.given_title
            case "session.usage_info" | "session.shutdown":
                used = count_of(data, "currentTokens") or 0
                session.max_context_tokens = max(session.max_context_tokens, used)


def _typed(data: Mapping[str, Any]) -> str | list[Any]:
    """What was typed, and the names of what was attached."""
    words = as_text(data.get("content"))
    attached = [
        text(f"[Attached: {name}]")
        for item in each_object(data.get("attachments"))
        if (name := text_of(item, "path", "filePath", "displayName", "name"))
    ]
    return [text(words), *attached] if attached else words


def _outcome(data: Mapping[str, Any]) -> str:
    given = data.get("result")
    if isinstance(given, dict):
        return text_of(given, "content", "detailedContent") or as_text(given if "content" not in given else "")
    if given is not None:
        return as_text(given)
    error = data.get("error")
    return (text_of(error, "message") if isinstance(error, dict) else None) or as_text(error)
