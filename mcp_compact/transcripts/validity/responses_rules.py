"""What OpenAI's Responses API refuses in a list of input items.

Outputs may stand anywhere behind their calls. Ids of items are the API's own: it looks them up, and wants an item that
reasoning led to together with that reasoning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import OBJECT, Raw
from mcp_compact.transcripts.beside import SILENT_ITEMS
from mcp_compact.transcripts.responses_out import ANSWERED, ANSWERS, FIXED_ANSWERS, MODEL_ITEMS, ROLES
from mcp_compact.transcripts.validity.chat_rules import NAME
from mcp_compact.transcripts.validity.rules import DEPENDS, LEFT, OPEN, Finding, Log, Rule, by_id, shown

RULES = (
    Rule("openai-responses/not-empty", "there must be an item", LEFT),
    Rule("openai-responses/item", "an item is an object, a message at least", "left out"),
    Rule("openai-responses/kind", "the type of an item is not known", LEFT, DEPENDS),
    Rule("openai-responses/role", "a role is user, assistant, system or developer", "made the user's"),
    Rule("openai-responses/content", "content is text or a list of parts", "its JSON stands in its place as text"),
    Rule("openai-responses/empty", "content must not be an empty list", "left out"),
    Rule("openai-responses/part", "a part is of a kind that the role may send", "made such a part, or quoted as text"),
    Rule("openai-responses/call", "a call has a call_id, a name, and arguments as text", "completed, or left out"),
    Rule("openai-responses/call-id", "a call_id has 64 characters at most", "shortened, its output's too"),
    Rule("openai-responses/call-name", "a name holds letters, digits, `_` and `-`, 64 at most", "renamed"),
    Rule("openai-responses/output", "an output is text or a list of parts", "its JSON stands in its place as text"),
    Rule("openai-responses/item-id", "an id begins as its type asks, 64 characters at most", "the id was taken off"),
    Rule("openai-responses/item-twice", "an item stands once", "the id was taken off, reasoning left out"),
    Rule("openai-responses/call-twice", "a call_id names one call at a time", "renamed, its output too"),
    Rule("openai-responses/unanswered", "each call needs its output", "a short output was added behind it"),
    Rule("openai-responses/orphan", "each output needs its call before it", "quoted as text"),
    Rule("openai-responses/output-twice", "a call has one output", "left out"),
    Rule("openai-responses/reasoning", "reasoning has a summary, and is followed by what it led to", "left out"),
    Rule("openai-responses/alone", "an item may have been made with reasoning that is not here", LEFT, DEPENDS),
    Rule("openai-responses/open", "a call at the end waits for its output", LEFT, OPEN),
)  # fmt: skip
_RULES = by_id(RULES)
OUTPUTS = {output: call for call, output in (ANSWERS | FIXED_ANSWERS).items()}
PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs", "custom_tool_call": "ctc"}
INPUT_PARTS = frozenset(("input_text", "input_image", "input_file", "input_audio"))
OUTPUT_PARTS = frozenset(("output_text", "refusal"))
ID_CHARS = 64


def check(items: Sequence[Any]) -> list[Finding]:
    """Every rule that the list breaks, in the order of the items."""
    log = Log("input", _RULES)
    if not items:
        log.add("not-empty", -1)
    look = _Look(log, items)
    for index, item in enumerate(items):
        look.item(index, item)
    look.end()
    return sorted(log.found, key=lambda finding: finding.index)


def kind_of(item: Raw) -> str:
    """The type of an item; a message may leave it out."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def is_models(item: object) -> bool:
    """Did the model make it?"""
    if not isinstance(item, OBJECT):
        return False
    return kind_of(item) in MODEL_ITEMS or (kind_of(item) == "message" and item.get("role") == "assistant")


class _Look:
    """One pass over the items."""

    def __init__(self, log: Log, items: Sequence[Any]) -> None:
        self._log, self._items = log, items
        self._calls: dict[str, tuple[int, str]] = {}
        self._answered: set[str] = set()
        self._ids: set[str] = set()
        self._has_reasoning = False
        """Does this stretch of the model's items hold any?"""

    def item(self, index: int, item: object) -> None:
        log = self._log
        kind = kind_of(item) if isinstance(item, OBJECT) else ""
        if not isinstance(item, OBJECT) or not kind:
            log.add("item", index)
            return
        self._has_reasoning = is_models(item) and (self._has_reasoning or kind == "reasoning")
        self._id(index, item, kind)
        if kind == "message":
            self._message(index, item)
        elif kind in ANSWERS or kind in FIXED_ANSWERS:
            self._call(index, item, kind)
        elif kind in OUTPUTS:
            self._output(index, item)
        elif kind == "reasoning":
            following = next((x for x in self._items[index + 1 :] if not _is_reasoning(x)), None)
            if not isinstance(item.get("summary"), list) or not is_models(following):
                log.add("reasoning", index)
        elif kind not in SILENT_ITEMS and kind not in ANSWERED:
            log.add("kind", index, detail=shown(kind))

    def _id(self, index: int, item: Raw, kind: str) -> None:
        log, own = self._log, item.get("id")
        if not isinstance(own, str) or kind == "item_reference":
            return
        if own in self._ids:
            log.add("item-twice", index, detail=shown(own))
        elif len(own) > ID_CHARS or not own.startswith(PREFIXES.get(kind, "")):
            log.add("item-id", index, detail=shown(own))
        elif kind in ANSWERS and not self._has_reasoning:
            log.add("alone", index, detail=own)
        self._ids.add(own)

    def _message(self, index: int, item: Raw) -> None:
        log, role, content = self._log, item.get("role"), item.get("content")
        if role not in ROLES:
            log.add("role", index, detail=shown(role))
        if isinstance(content, str):
            return
        if not isinstance(content, list):
            log.add("content", index, detail=type(content).__name__)
            return
        if not content:
            log.add("empty", index)
        kinds = OUTPUT_PARTS if role == "assistant" else INPUT_PARTS
        for at, part in enumerate(content):
            kind = part.get("type") if isinstance(part, OBJECT) else None
            if not isinstance(kind, str) or kind not in kinds or not _is_whole(part, kind):
                log.add("part", index, at, detail=f"{shown(kind)} from {role}")

    def _call(self, index: int, item: Raw, kind: str) -> None:
        log, call = self._log, item.get("call_id")
        if not is_call(item, kind):
            log.add("call", index)
        if not isinstance(call, str) or not call:
            return
        if len(call) > ID_CHARS:
            log.add("call-id", index, detail=f"{len(call)} characters", key="call_id")
        name = item.get("name")
        if isinstance(name, str) and name and NAME.fullmatch(name) is None:
            log.add("call-name", index, detail=shown(name), key="name")
        if call in self._calls and call not in self._answered:
            log.add("call-twice", index, detail=call)
        self._answered.discard(call)
        self._calls[call] = (index, kind)

    def _output(self, index: int, item: Raw) -> None:
        log, call, output = self._log, item.get("call_id") or item.get("id"), item.get("output")
        asked = self._calls.get(call) if isinstance(call, str) else None
        if asked is None or OUTPUTS[kind_of(item)] != asked[1]:
            log.add("orphan", index, detail=shown(call))
        elif call in self._answered:
            log.add("output-twice", index, detail=shown(call))
        else:
            self._answered.add(str(call))
        if kind_of(item) in ANSWERS.values() and not isinstance(output, str) and not _are_parts(output):
            log.add("output", index, key="output")

    def end(self) -> None:
        """Calls without output: open where nothing but calls and outputs follows."""
        last = next((at for at in range(len(self._items) - 1, -1, -1) if not _is_of_calls(self._items[at])), -1)
        for call, (index, _) in self._calls.items():
            if call not in self._answered:
                self._log.add("open" if index > last else "unanswered", index, detail=call)


def is_call(item: Raw, kind: str) -> bool:
    """Has a call what its type needs?"""
    call = item.get("call_id")
    if not isinstance(call, str) or not call:
        return False
    if kind in FIXED_ANSWERS:
        return True
    given = item.get("arguments" if kind == "function_call" else "input")
    return isinstance(item.get("name"), str) and bool(item["name"]) and isinstance(given, str)


def _is_whole(part: Raw, kind: object) -> bool:
    key = {"input_text": "text", "output_text": "text", "refusal": "refusal"}.get(str(kind))
    return key is None or isinstance(part.get(key), str)


def _are_parts(output: object) -> bool:
    return isinstance(output, list) and all(
        isinstance(part, OBJECT) and part.get("type") in INPUT_PARTS for part in output
    )


def _is_reasoning(item: object) -> bool:
    return isinstance(item, OBJECT) and item.get("type") == "reasoning"


def _is_of_calls(item: object) -> bool:
    return isinstance(item, OBJECT) and (kind_of(item) in OUTPUTS or kind_of(item) in (*ANSWERS, *FIXED_ANSWERS))
