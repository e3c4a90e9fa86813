"""Reads items of OpenAI's Responses API: a list, a request (`input`), a response (`output`), or one item a line.

Reasoning and the encrypted items of the provider's own compaction stay in the archive: only that provider can read
them. A call that the provider answered itself (an MCP server's tool) becomes a call and its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.codex_items import message_of
from mcp_compact.transcripts.entries import Entry
from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.parsed import Parsed
from mcp_compact.transcripts.pieces import as_text, call, each_object, image_at, made, result, text, usage_of
from mcp_compact.transcripts.translated import TranslatedReader

SILENT = frozenset(
    ("reasoning", "compaction", "compaction_summary", "compaction_trigger", "item_reference", "web_search_call",
     "image_generation_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_search_call",
     "tool_search_output", "additional_tools", "program", "program_output", "configuration_update")
)  # fmt: skip
"""Items that no other provider can be sent; counted by their type, kept as they are."""
USUAL = ("message", "function_call", "function_call_output", "reasoning")
"""What nearly all items are."""
OWN_CALLS = (
    ("shell_call", "shell_call_output", "shell"),
    ("computer_call", "computer_call_output", "computer"),
    ("apply_patch_call", "apply_patch_call_output", "apply_patch"),
)
"""Calls of the provider's own tools that the caller answers: the call, its output, the tool's name."""


ANSWERED = {"mcp_call": ("output",), "file_search_call": ("results",), "code_interpreter_call": ("outputs",)}
"""Calls that hold what they gave, and where. Where the caller asked for no results, a call has none."""


class ResponsesReader(TranslatedReader):
    """Turns items into records."""

    lists = ("input", "output")

    def entries_of(self, value: Mapping[str, Any]) -> list[Any] | None:
        """The items of a request, or of a response with what it answered."""
        if text_of(value, "type") and "object" not in value and "model" not in value:
            # A call's output is an entry too, and its `output` may be a list.
            return None
        request, response = object_of(value, "request", "body"), object_of(value, "response")
        if request or response:
            asked = request.get("input")
            given = response.get("output")
            items = [*_items(asked), *(given if isinstance(given, list) else [])]
            return items or None
        asked = value.get("input")
        if isinstance(asked, str) and isinstance(value.get("output"), list):
            return [*_items(asked), *value["output"]]
        return super().entries_of(dict(value))

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """Model, instructions and usage."""
        for part in (value, object_of(value, "request", "body"), object_of(value, "response")):
            self.session.model = text_of(part, "model") or self.session.model
            self.session.session_id = self.session.session_id or uuid_of(part.get("id"))
            used = usage_of(part.get("usage"), ("input_tokens",), ("output_tokens",))
            if used:
                self.session.max_context_tokens = max(self.session.max_context_tokens, used.context_tokens)
        told = text_of(value, "instructions") or text_of(object_of(value, "request", "body"), "instructions")
        if value:
            yield Entry(HEADER, value, made("system", told) if told else None, subtype="system_prompt")

    def usual(self, raw: dict[str, Any], body: bytes | None, place: int) -> Parsed | None:
        """A message, a call of a function or its output, or reasoning."""
        kind = raw.get("type")
        if kind not in USUAL:
            return None
        message = None
        if kind != "reasoning" and (message := message_of(raw)) is None:
            return None
        return self._record_of(raw, body, kind, message, place, uuid=uuid_of(raw.get("id")))

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of an item."""
        kind = text_of(raw, "type") or ("message" if "role" in raw else "")
        own = uuid_of(raw.get("id"))
        if kind in ANSWERED and own:
            yield from _answered(raw, kind, own, body)
            return
        item = raw
        if kind == "local_shell_call_output" and not text_of(raw, "call_id"):
            # This one item is paired by its id.
            item = {**raw, "call_id": own}
        message = None if kind in SILENT else message_of(item) or _own_call(raw, kind)
        unknown = () if message is not None or kind in SILENT else (kind or "(none)",)
        yield Entry(kind, raw, message, own, body=body, unknown=unknown)


def _items(asked: object) -> list[Any]:
    if isinstance(asked, str):
        return [{"role": "user", "content": asked}]
    return asked if isinstance(asked, list) else []


def _answered(raw: Mapping[str, Any], kind: str, own: str, body: bytes | None) -> Iterator[Entry]:
    """A call that the provider made and answered itself: two records of one item."""
    if kind == "mcp_call":
        name = "__".join(filter(None, ("mcp", text_of(raw, "server_label"), text_of(raw, "name"))))
        asked: object = raw.get("arguments")
    else:
        name = kind.removesuffix("_call")
        asked = {key: raw[key] for key in ("queries", "code") if key in raw}
    yield Entry(kind, raw, made("assistant", [call(own, name, asked)]), own, body=body)
    error = raw.get("error")
    outcome = error if error is not None else next((raw[key] for key in ANSWERED[kind] if raw.get(key)), None)
    if outcome is not None:
        given = result(own, as_text(outcome), failed=error is not None)
        yield Entry("result", {"of": own, "result": given}, made("user", [given]), f"{own}:result")


def _own_call(raw: Mapping[str, Any], kind: str) -> Message | None:
    call_id = text_of(raw, "call_id")
    for asked, answered, name in OWN_CALLS:
        if kind == asked and call_id:
            return made("assistant", [call(call_id, name, raw.get("action") or raw.get("operation") or {})])
        if kind == answered and call_id:
            given = raw.get("output")
            return made("user", [result(call_id, _given(given), failed=raw.get("status") == "failed")])
    return None


def _given(given: object) -> str | list[Any]:
    """What a shell wrote, a screenshot, or any other value."""
    address = text_of(given, "image_url") if isinstance(given, dict) else None
    if address:
        return [image_at(address)]
    parts = [as_text(part.get("stdout")) + as_text(part.get("stderr")) for part in each_object(given)]
    return [text(part) for part in parts if part] or as_text(given)
