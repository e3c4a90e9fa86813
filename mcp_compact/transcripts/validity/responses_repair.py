"""How each rule of OpenAI's Responses API is mended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.valid import NO_RESULT
from mcp_compact.transcripts.responses_out import ANSWERS, FIXED_ANSWERS
from mcp_compact.transcripts.validity.repairing import Edit, Item, Mender, quoted, short_id, with_block
from mcp_compact.transcripts.validity.responses_rules import ID_CHARS, INPUT_PARTS, OUTPUT_PARTS, is_call, kind_of
from mcp_compact.transcripts.validity.rules import Finding, Json

NAME_CHARS = 64
ORPHAN = "[Output of a call that is not here]"
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def _part(message: Json, finding: Finding) -> Json:
    kinds = OUTPUT_PARTS if message.get("role") == "assistant" else INPUT_PARTS
    text_kind = "output_text" if "output_text" in kinds else "input_text"
    return with_block(message, "content", finding.at, lambda part: [{"type": text_kind, "text": _told(part)}])


def _told(part: Any) -> str:  # noqa: ANN401 - a part
    if isinstance(part, str):
        return part
    if isinstance(part, OBJECT):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        if str(part.get("type")).endswith(("image", "image_url")):
            return "[image]"
    return quoted(part)


def _call(item: Json, _: Finding) -> Json:
    kind = kind_of(item)
    key = "arguments" if kind == "function_call" else "input"
    given = item.get(key)
    told = given if isinstance(given, str) else canonical({} if given is None else given).decode(errors="replace")
    made = {**item, key: told}
    return made if is_call(made, kind) else {"type": "message", "role": "assistant", "content": quoted(item)}


def _named(item: Json, _: Finding) -> Json:
    return {**item, "name": _NOT_IN_NAME.sub("_", item["name"])[:NAME_CHARS]}


def _output(item: Json, _: Finding) -> Json:
    given = item.get("output")
    told = given.get("content") if isinstance(given, OBJECT) else None
    text = told if isinstance(told, str) else "" if given is None else canonical(given).decode(errors="replace")
    return {**item, "output": text}


def _without_id(item: Json, _: Finding) -> Json | None:
    if item.get("type") == "reasoning":
        return None
    return {key: value for key, value in item.items() if key != "id"}


def _orphan(item: Json, _: Finding) -> Json:
    output = item.get("output")
    text = output if isinstance(output, str) else canonical(output).decode(errors="replace")
    return {"type": "message", "role": "user", "content": f"{ORPHAN}\n{text}"}


def _rename(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    return [Item(item.index, _renamed(item.message)) for item in items]


def _renamed(item: Any) -> Any:  # noqa: ANN401 - an item
    call = item.get("call_id") if isinstance(item, OBJECT) else None
    return {**item, "call_id": short_id(call)} if isinstance(call, str) and len(call) > ID_CHARS else item


def _part_names(items: Sequence[Item], found: Sequence[Finding]) -> list[Item]:
    """The later ones of calls that are open at a time under one name, and their outputs, under names of their own."""
    later = {finding.index for finding in found}
    names: dict[str, str] = {}
    out: list[Item] = []
    for at, item in enumerate(items):
        call = item.message.get("call_id") if isinstance(item.message, OBJECT) else None
        if isinstance(call, str) and at in later:
            names[call] = short_id(f"{call}:{at}")
        elif isinstance(call, str) and kind_of(item.message) in (*ANSWERS, *FIXED_ANSWERS):
            names.pop(call, None)
        told = names.get(call) if isinstance(call, str) else None
        out.append(Item(item.index, {**item.message, "call_id": told}) if told else item)
    return out


def _answer(items: Sequence[Item], found: Sequence[Finding]) -> list[Item]:
    """A short output for each call without one, behind the calls that were made with it."""
    missing = {finding.index for finding in found}
    out: list[Item] = []
    held: list[Item] = []
    for at, item in enumerate(items):
        is_of_calls = isinstance(item.message, OBJECT) and kind_of(item.message) in (*ANSWERS, *FIXED_ANSWERS)
        if not is_of_calls:
            out, held = [*out, *held], []
        out.append(item)
        if at in missing:
            held += _missing(item.message)
    return [*out, *held]


def _missing(call: Json) -> list[Item]:
    kind = kind_of(call)
    if kind not in ANSWERS:
        return [Item(-1, {"type": "message", "role": "user", "content": NO_RESULT})]
    return [Item(-1, {"type": ANSWERS[kind], "call_id": call["call_id"], "output": NO_RESULT})]


def _unanswered(items: Sequence[Item], found: Sequence[Finding]) -> list[Item]:
    """Calls of tools whose outputs have forms of their own cannot be answered by a text: they are quoted."""
    own = {finding.index for finding in found if kind_of(items[finding.index].message) in FIXED_ANSWERS}
    told = [Item(item.index, _quoted_call(item.message)) if at in own else item for at, item in enumerate(items)]
    return _answer(told, [finding for finding in found if finding.index not in own])


def _quoted_call(item: Json) -> Json:
    return {"type": "message", "role": "assistant", "content": f"[Call of {kind_of(item)} without its output]"}


EDITS: dict[str, Edit] = {
    "openai-responses/item": lambda _, __: None,
    "openai-responses/role": lambda item, _: {**item, "role": "user"},
    "openai-responses/content": lambda item, _: {**item, "content": quoted(item.get("content"))},
    "openai-responses/empty": lambda _, __: None,
    "openai-responses/part": _part,
    "openai-responses/call": _call,
    "openai-responses/call-name": _named,
    "openai-responses/output": _output,
    "openai-responses/item-id": _without_id,
    "openai-responses/item-twice": _without_id,
    "openai-responses/orphan": _orphan,
    "openai-responses/output-twice": lambda _, __: None,
    "openai-responses/reasoning": lambda _, __: None,
}
MENDER = Mender(
    EDITS,
    {
        "openai-responses/call-id": _rename,
        "openai-responses/call-twice": _part_names,
        "openai-responses/unanswered": _unanswered,
    },
    lambda items, _: list(items),
)
