"""Reads `contents` of the Gemini API: a list, a request (with what it was answered), or one content a line.

Names may be written either way (`functionCall`, `function_call`). The API pairs calls and results by name and order:
where there are no ids they are made from the call's place, and a result goes to the oldest open call of its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.transcripts.entries import Entry
from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.gemini_cli import part_block, response_text
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import as_text, call, each_object, made, result, text, usage_of
from mcp_compact.transcripts.report import PART, UNNAMED
from mcp_compact.transcripts.translated import TranslatedReader

ROLES = {"user": "user", "model": "assistant", "function": "user", "tool": "user"}
SENT = ("promptTokenCount", "prompt_token_count")
_BESIDE = frozenset(("thoughtSignature", "thought_signature", "thought"))
"""What may stand alone in a part that says nothing."""
WRITTEN = ("candidatesTokenCount", "candidates_token_count", "thoughtsTokenCount", "thoughts_token_count")


class GeminiContentsReader(TranslatedReader):
    """Turns contents into records."""

    lists = ("contents", "history")

    def begin(self, own: Mapping[str, Any]) -> None:
        """Calls have no ids of their own: they are named by their place, and answered in their order."""
        self._open: dict[str, list[str]] = defaultdict(list, {name: list(ids) for name, ids in own.get("open", ())})
        """The calls of each name that are not answered."""
        self._place: int = own.get("place", 0)
        self._is_answering: bool = own.get("answering", False)
        """Was the last content the model's?"""

    def memory(self) -> dict[str, Any]:
        """The open calls, how many contents there were, and whose the last one was."""
        waiting = [[name, ids] for name, ids in self._open.items() if ids]
        return {"open": waiting, "place": self._place, "answering": self._is_answering}

    def entries_of(self, value: Mapping[str, Any]) -> list[Any] | None:
        """The contents of a request, and the first candidate of what it was answered."""
        request = object_of(value, "request", "body")
        found = super().entries_of(dict(request) if request else dict(value))
        if found is None:
            return None
        candidate = next(each_object(object_of(value, "response").get("candidates")), {})
        answered = object_of(candidate, "content")
        return [*found, dict(answered)] if answered else found

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """Model, system instruction and usage."""
        request, response = object_of(value, "request", "body"), object_of(value, "response")
        session = self.session
        for part in (value, request, response):
            session.model = text_of(part, "model", "modelVersion", "model_version") or session.model
            session.session_id = session.session_id or uuid_of(part.get("sessionId"))
        used = usage_of(object_of({**value, **response}, "usageMetadata", "usage_metadata"), SENT, WRITTEN)
        if used:
            session.max_context_tokens = used.context_tokens
        told = _instruction(value) or _instruction(request)
        if value:
            yield Entry(HEADER, value, made("system", told) if told else None, subtype="system_prompt")

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of one content."""
        self._place += 1
        role, parts = text_of(raw, "role") or "user", raw.get("parts")
        own = ROLES.get(role)
        if own is None or not isinstance(parts, list):
            yield Entry(role, raw, body=body, unknown=(role if own is None else PART + UNNAMED,))
            return
        if own == "assistant" and not self._is_answering:
            # Responses follow their calls: what the model goes on without is answered no more.
            self._open.clear()
        self._is_answering = own == "assistant"
        blocks: list[Any] = []
        unknown: list[str] = []
        for number, part in enumerate(parts, 1):
            found = [text(part)] if isinstance(part, str) else self._blocks(part, number)
            blocks += found or []
            if found is None:
                names = sorted(key for key in part if part[key] is not None) if isinstance(part, dict) else []
                unknown.append(PART + (names[0][:60] if names else UNNAMED))
        yield Entry(role, raw, made(own, blocks), body=body, unknown=tuple(unknown))

    def _blocks(self, part: object, number: int) -> list[Any] | None:
        """The blocks of a part; None where it is not understood. Thoughts are none that are sent back."""
        if not isinstance(part, dict):
            return None
        if len(part) == 1 and isinstance(words := part.get("text"), str):
            return [text(words)]
        if None in part.values():
            # Libraries write every field of a part, most of them empty.
            part = {key: value for key, value in part.items() if value is not None}
        if part.get("thought") is True or part.keys() <= _BESIDE:
            return []
        asked = part.get("functionCall") or part.get("function_call")
        if isinstance(asked, dict):
            return [self._call(asked, number)]
        given = part.get("functionResponse") or part.get("function_response")
        if isinstance(given, dict):
            return [self._result(given, number)]
        code = object_of(part, "executableCode", "executable_code")
        if code:
            return [text(f"```{str(code.get('language') or '').lower()}\n{as_text(code.get('code'))}\n```")]
        ran = object_of(part, "codeExecutionResult", "code_execution_result")
        if ran:
            return [text(f"```\n{as_text(ran.get('output'))}\n```")]
        block = part_block(part)
        return [block] if block else None

    def _call(self, asked: Mapping[str, Any], number: int) -> dict[str, Any]:
        name = text_of(asked, "name") or ""
        call_id = text_of(asked, "id") or f"call-{self._place}-{number}"
        self._open[name].append(call_id)
        return call(call_id, name, asked.get("args"))

    def _result(self, given: Mapping[str, Any], number: int) -> dict[str, Any]:
        name, call_id = text_of(given, "name") or "", text_of(given, "id")
        waiting = self._open[name]
        if call_id is None:
            call_id = waiting[0] if waiting else f"result-{self._place}-{number}"
        if call_id in waiting:
            waiting.remove(call_id)
        response = given.get("response")
        failed = isinstance(response, dict) and "error" in response and "output" not in response
        media = [block for part in each_object(given.get("parts")) if (block := part_block(part))]
        said = response_text(response)
        return result(call_id, [text(said), *media] if media else said, failed=failed)


def _instruction(value: Mapping[str, Any]) -> str:
    config = object_of(value, "config")
    told = value.get("systemInstruction") or value.get("system_instruction") or config.get("systemInstruction")
    told = told or config.get("system_instruction")
    if isinstance(told, dict):
        return "\n".join(as_text(part.get("text")) for part in each_object(told.get("parts")))
    return told if isinstance(told, str) else ""
