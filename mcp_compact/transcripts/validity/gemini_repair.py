"""How each rule of the Gemini API is mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp_compact.messages.blocks import (
    OBJECT,
    Block,
    OtherBlock,
    TextBlock,
    ToolResultBlock,
)
from mcp_compact.messages.valid import NO_RESULT, OPENING, Turn
from mcp_compact.transcripts.gemini_out import api_name
from mcp_compact.transcripts.pieces import as_text
from mcp_compact.transcripts.validity.gemini_rules import call_of, is_model, response_of
from mcp_compact.transcripts.validity.repairing import (
    OWN,
    Edit,
    Item,
    Mender,
    call_block,
    in_order,
    quoted,
    result_block,
    with_block,
)
from mcp_compact.transcripts.validity.rules import Finding, Json

UNNAMED = "function"


def _parts(change: Callable[[Any], Sequence[Any]]) -> Edit:
    return lambda content, finding: with_block(content, "parts", finding.at, change)


def _key(part: Json, camel: str, snake: str) -> str:
    return camel if isinstance(part.get(camel), OBJECT) else snake


def _call(part: Json) -> list[Json]:
    key = _key(part, "functionCall", "function_call")
    own, given = part[key], part[key].get("args")
    name = own.get("name") if isinstance(own.get("name"), str) and own["name"] else UNNAMED
    args = given if isinstance(given, OBJECT) else {} if given is None else {"input": given}
    return [{**part, key: {**own, "name": name, "args": args}}]


def _response(part: Json) -> list[Json]:
    key = _key(part, "functionResponse", "function_response")
    own, given = part[key], part[key].get("response")
    name = own.get("name") if isinstance(own.get("name"), str) and own["name"] else UNNAMED
    return [
        {
            **part,
            key: {**own, "name": name, "response": given if isinstance(given, OBJECT) else {"output": as_text(given)}},
        }
    ]


def _rename(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    return [Item(item.index, _renamed(item.message)) for item in items]


def _renamed(content: Any) -> Any:  # noqa: ANN401 - a content
    parts = content.get("parts") if isinstance(content, OBJECT) else None
    if not isinstance(parts, list):
        return content
    told = [_with_name(part) for part in parts]
    return content if all(new is old for new, old in zip(told, parts, strict=True)) else {**content, "parts": told}


def _with_name(part: Any) -> Any:  # noqa: ANN401 - a part
    for camel, snake, read in (
        ("functionCall", "function_call", call_of), ("functionResponse", "function_response", response_of),
    ):  # fmt: skip
        own = read(part)
        if own is not None and isinstance(own.get("name"), str) and api_name(own["name"]) != own["name"]:
            return {**part, _key(part, camel, snake): {**own, "name": api_name(own["name"])}}
    return part


def _open(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    return [Item(-1, {"role": "user", "parts": [{"text": OPENING}]}), *items]


def _join(items: Sequence[Item], found: Sequence[Finding]) -> list[Item]:
    """Contents put to those before them."""
    joined = {finding.index for finding in found}
    out: list[Item] = []
    for at, item in enumerate(items):
        if at in joined and out:
            last = out[-1]
            parts = [*last.message["parts"], *item.message["parts"]]
            out[-1] = Item(last.index, {**last.message, "parts": parts})
        else:
            out.append(item)
    return out


def _unmix(items: Sequence[Item], found: Sequence[Finding]) -> list[Item]:
    """Responses in a content of their own; what stood beside them in the next."""
    mixed = {finding.index for finding in found}
    out: list[Item] = []
    for at, item in enumerate(items):
        if at not in mixed:
            out.append(item)
            continue
        parts = item.message["parts"]
        given = [part for part in parts if response_of(part) is not None]
        rest = [part for part in parts if response_of(part) is None]
        out += [Item(item.index, {**item.message, "parts": own}) for own in (given, rest)]
    return out


def _order(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    names = _Names()
    return _as_one(in_order(items, names.turn_of, names.back))


def _as_one(items: Sequence[Item]) -> list[Item]:
    """Neighbours that hold nothing but responses as one content."""
    out: list[Item] = []
    for item in items:
        if out and _answers_alone(item.message) and _answers_alone(out[-1].message):
            last = out[-1]
            parts = [*last.message["parts"], *item.message["parts"]]
            out[-1] = Item(max(last.index, item.index), {**last.message, "parts": parts})
        else:
            out.append(item)
    return out


def _answers_alone(content: Json) -> bool:
    return all(response_of(part) is not None for part in content["parts"])


class _Names:
    """Names for calls, which the API pairs by id where both have one, else by name and order."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, Any, Any]] = []
        self._calls: dict[str, Json] = {}

    def turn_of(self, place: int, content: Json) -> Turn:
        blocks: list[Block] = []
        for at, part in enumerate(content["parts"]):
            asked, given = call_of(part), response_of(part)
            if asked is not None:
                name = f"{place}-{at}"
                self._waiting.append((name, asked.get("id"), asked.get("name")))
                self._calls[name] = dict(asked)
                blocks.append(call_block(name, asked.get("name"), part))
            elif given is not None:
                call = self._call_of(given) or f"none-{place}-{at}"
                blocks.append(result_block(call, as_text(given.get("response")), part))
            else:
                blocks.append(OtherBlock("part", part))
        return Turn("assistant" if is_model(content) else "user", tuple(blocks))

    def _call_of(self, given: Any) -> str | None:  # noqa: ANN401 - a response
        own, name = given.get("id"), given.get("name")
        same = [w for w in self._waiting if w[2] == name]
        found = next((w for w in same if own is not None and w[1] == own), None)
        found = found or next((w for w in same if own is None or w[1] is None), None)
        if found is None:
            return None
        self._waiting.remove(found)
        return found[0]

    def back(self, turn: Turn, content: Json | None) -> list[Json]:
        """A changed turn's content."""
        role = "model" if turn.role == "assistant" else "user"
        parts = [self._part(block) for block in turn.blocks]
        return [{**(content or {}), "role": role, "parts": parts}]

    def _part(self, block: Block) -> Any:  # noqa: ANN401 - a part
        if isinstance(block, TextBlock):
            return {"text": block.text}
        if isinstance(block, ToolResultBlock) and OWN not in block.raw:
            call = self._calls[block.tool_use_id]
            own = {"id": call["id"]} if call.get("id") is not None else {}
            return {"functionResponse": {**own, "name": call.get("name"), "response": {"error": NO_RESULT}}}
        return block.raw.get(OWN, block.raw)


EDITS: dict[str, Edit] = {
    "gemini/content": lambda _, __: None,
    "gemini/role": lambda content, _: {**content, "role": "user"},
    "gemini/parts": lambda _, __: None,
    "gemini/part": _parts(lambda _: ()),
    "gemini/call": _parts(_call),
    "gemini/response": _parts(_response),
    "gemini/place": _parts(lambda part: [{"text": quoted(part)}]),
}
MENDER = Mender(
    EDITS,
    {
        "gemini/call-name": _rename,
        "gemini/first-user": _open,
        "gemini/call-order": _join,
        "gemini/split": _join,
        "gemini/mixed": _unmix,
    },
    _order,
)
