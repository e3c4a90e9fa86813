"""How each rule of OpenAI's chat API is mended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import (
    OBJECT,
    Block,
    OtherBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.valid import NO_RESULT, Turn
from mcp_compact.transcripts.validity.chat_rules import ID_CHARS, MOST_CALLS, is_call
from mcp_compact.transcripts.validity.repairing import (
    OWN,
    Edit,
    Item,
    Mender,
    call_block,
    in_order,
    quoted,
    result_block,
    short_id,
    with_block,
)
from mcp_compact.transcripts.validity.rules import Finding, Json

NAME_CHARS = 64
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def _content(message: Json, _: Finding) -> Json:
    content = message.get("content")
    return {**message, "content": "" if content is None else quoted(content)}


def _empty_list(message: Json, finding: Finding) -> Json:
    if finding.path.endswith("tool_calls"):
        rest = {key: value for key, value in message.items() if key != "tool_calls"}
        return rest if rest.get("content") is not None else {**rest, "content": ""}
    return {**message, "content": ""}


def _part(message: Json, finding: Finding) -> Json:
    return with_block(message, "content", finding.at, lambda part: [{"type": "text", "text": _told(part)}])


def _told(part: Any) -> str:  # noqa: ANN401 - a part
    if isinstance(part, OBJECT) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, OBJECT) and part.get("type") == "image_url":
        return "[image]"
    return quoted(part)


def _call(message: Json, finding: Finding) -> Json:
    call = message["tool_calls"][finding.at[0]]
    mended = _completed(call)
    if mended is not None:
        return with_block(message, "tool_calls", finding.at, lambda _: [mended])
    rest = with_block(message, "tool_calls", finding.at, lambda _: ())
    return _with_text(rest, quoted(call))


def _completed(call: Any) -> Json | None:  # noqa: ANN401 - a call
    """The call with its kind told and its arguments as text; None where it has no id or no name."""
    function = call.get("function") if isinstance(call, OBJECT) else None
    if not isinstance(function, OBJECT):
        return None
    given = function.get("arguments")
    told = given if isinstance(given, str) else canonical({} if given is None else given).decode(errors="replace")
    made = {**call, "type": "function", "function": {**function, "arguments": told}}
    return made if is_call(made) else None


def _call_name(message: Json, finding: Finding) -> Json:
    def named(call: Any) -> list[Json]:  # noqa: ANN401 - a call
        key = "function" if isinstance(call.get("function"), OBJECT) else "custom"
        name = _NOT_IN_NAME.sub("_", call[key]["name"])[:NAME_CHARS]
        return [{**call, key: {**call[key], "name": name}}]

    return with_block(message, "tool_calls", finding.at, named)


def _with_text(message: Json, text: str) -> Json:
    """The message with a text behind its content; no list of calls where it is empty."""
    content = message.get("content")
    if isinstance(content, list):
        whole: Any = [*content, {"type": "text", "text": text}]
    else:
        whole = f"{content}\n\n{text}" if content else text
    made = {**message, "content": whole}
    return made if made.get("tool_calls") else {key: value for key, value in made.items() if key != "tool_calls"}


def _rename(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    return [Item(item.index, _renamed(item.message)) for item in items]


def _renamed(message: Any) -> Any:  # noqa: ANN401 - a message
    if not isinstance(message, OBJECT):
        return message
    own = message.get("tool_call_id")
    if isinstance(own, str) and len(own) > ID_CHARS:
        return {**message, "tool_call_id": short_id(own)}
    calls = message.get("tool_calls")
    if isinstance(calls, list) and any(_is_long(call) for call in calls):
        return {**message, "tool_calls": [{**c, "id": short_id(c["id"])} if _is_long(c) else c for c in calls]}
    return message


def _is_long(call: Any) -> bool:  # noqa: ANN401 - a call
    return isinstance(call, OBJECT) and isinstance(call.get("id"), str) and len(call["id"]) > ID_CHARS


def _order(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    """Results behind their calls. Ids that come again in later answers are other calls'."""
    names = _Names()
    split = [part for item in items for part in _split(item)]
    return in_order(split, names.turn_of, names.back, first_user=False)


def _split(item: Item) -> list[Item]:
    """An answer with too many calls as several."""
    calls = item.message.get("tool_calls")
    if not isinstance(calls, list) or len(calls) <= MOST_CALLS:
        return [item]
    parts = [calls[at : at + MOST_CALLS] for at in range(0, len(calls), MOST_CALLS)]
    first = Item(item.index, {**item.message, "tool_calls": parts[0]})
    return [first, *(Item(-1, {"role": "assistant", "content": None, "tool_calls": part}) for part in parts[1:])]


class _Names:
    """Names for calls by which each is the only one: ids may come again, which belongs to the last answer so far."""

    def __init__(self) -> None:
        self._current: dict[str, tuple[int, str]] = {}
        self._own: dict[str, str] = {}

    def turn_of(self, place: int, message: Json) -> Turn:
        role = message.get("role")
        if role == "tool":
            return Turn("user", (self._answer(message),))
        blocks: list[Block] = [OtherBlock("message", message)]
        for call in message.get("tool_calls") or () if role == "assistant" else ():
            name = self._name(call["id"], place)
            blocks.append(call_block(name, (call.get("function") or call["custom"]).get("name"), call))
        return Turn("assistant" if role == "assistant" else "user", tuple(blocks))

    def _answer(self, message: Json) -> ToolResultBlock:
        own = str(message.get("tool_call_id"))
        name = self._current[own][1] if own in self._current else own
        return result_block(name, message.get("content"), message)

    def _name(self, own: str, place: int) -> str:
        last = self._current.get(own)
        if last is None or last[0] != place:
            self._current[own] = (place, own if last is None else f"{place}:{own}")
        name = self._current[own][1]
        self._own[name] = own
        return name

    def back(self, turn: Turn, message: Json | None) -> list[Json]:
        """A changed turn's messages."""
        results = [block for block in turn.blocks if isinstance(block, ToolResultBlock)]
        texts = [block.text for block in turn.blocks if isinstance(block, TextBlock)]
        if turn.role != "assistant":
            out = [self._result(block) for block in results]
            return [*out, *({"role": "user", "content": text} for text in texts)]
        calls = [dict(block.raw[OWN]) for block in turn.blocks if isinstance(block, ToolUseBlock)]
        made: Json = {**(message or {"role": "assistant", "content": None}), "tool_calls": calls}
        return [_with_text(made, "\n\n".join(texts)) if texts else made]

    def _result(self, block: ToolResultBlock) -> Json:
        if OWN in block.raw:
            return dict(block.raw[OWN])
        call = self._own.get(block.tool_use_id, block.tool_use_id)
        return {"role": "tool", "tool_call_id": call, "content": NO_RESULT}


EDITS: dict[str, Edit] = {
    "openai-chat/message": lambda _, __: None,
    "openai-chat/role": lambda message, _: {**message, "role": "user"},
    "openai-chat/content": _content,
    "openai-chat/empty-list": _empty_list,
    "openai-chat/part": _part,
    "openai-chat/call": _call,
    "openai-chat/call-name": _call_name,
    "openai-chat/name": lambda message, _: {key: value for key, value in message.items() if key != "name"},
}
MENDER = Mender(EDITS, {"openai-chat/call-id": _rename}, _order)
