"""How each rule of the Anthropic Messages API is mended."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from mcp_compact.messages.blocks import OBJECT, parse_content
from mcp_compact.messages.ids import ApiMessageId
from mcp_compact.messages.valid import OPENING, Turn
from mcp_compact.transcripts.validity.anthropic_rules import HEADS
from mcp_compact.transcripts.validity.repairing import Edit, Item, Mender, in_order, quoted, with_block
from mcp_compact.transcripts.validity.rules import Finding, Json

OTHER_NAMES = {"model": "assistant", "developer": "system"}
"""Roles as other providers call them."""
FAILED = "[The call failed.]"
THINKING = ("thinking", "redacted_thinking")
_NOT_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")
NAME_CHARS = 128


def _block(change: Callable[[Any], Sequence[Any]]) -> Edit:
    """An edit of the block at the finding's place."""
    return lambda message, finding: with_block(message, "content", finding.at, change)


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _quote(block: object) -> list[Json]:
    return _text(quoted(block))


def _medium(block: Any) -> list[Json]:  # noqa: ANN401 - a block
    return _text(f"[{block.get('type')} left out: the API would refuse it]")


def _misplaced(block: Any) -> list[Json]:  # noqa: ANN401 - a block
    return _medium(block) if block.get("type") in ("image", "document") else _quote(block)


def _named(block: Any) -> list[Json]:  # noqa: ANN401 - a call
    return [{**block, "name": _NOT_IN_ID.sub("_", block["name"])[:NAME_CHARS] or "tool"}]


def _given(block: Any) -> list[Json]:  # noqa: ANN401 - a call
    value = block.get("input")
    return [{**block, "input": {} if value is None else {"input": value}}]


def _real_type(block: Any) -> list[Json]:  # noqa: ANN401 - an image
    source = block["source"]
    real = next(kind for head, kind in HEADS.items() if source["data"].startswith(head))
    return [{**block, "source": {**source, "media_type": real}}]


def _without_mark(block: Any) -> list[Json]:  # noqa: ANN401 - a block
    return [{key: value for key, value in block.items() if key != "cache_control"}]


def _role(message: Json, _: Finding) -> Json:
    if str(message.get("role")) in OTHER_NAMES:
        return {**message, "role": OTHER_NAMES[message["role"]]}
    content = message["content"]
    told = _text(f"[Message of the role {str(message.get('role'))[:40]!r}]")
    blocks = content if isinstance(content, list) else _text(content) if isinstance(content, str) else _quote(content)
    return {**message, "role": "user", "content": [*told, *blocks]}


def _blank(message: Json, finding: Finding) -> Json | None:
    return with_block(message, "content", finding.at, lambda _: ()) if finding.at else None


def _end(message: Json, _: Finding) -> Json:
    blocks = list(message["content"])
    while blocks and isinstance(blocks[-1], OBJECT) and blocks[-1].get("type") in THINKING:
        blocks.pop()
    return {**message, "content": blocks}


def _space(message: Json, finding: Finding) -> Json:
    if not finding.at:
        return {**message, "content": message["content"].rstrip()}
    return with_block(message, "content", finding.at, lambda block: [{**block, "text": block["text"].rstrip()}])


def _open(items: Sequence[Item], found: Sequence[Finding]) -> list[Item]:
    at = found[0].index
    return [*items[:at], Item(-1, {"role": "user", "content": OPENING}), *items[at:]]


def _rename(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    """Ids without the characters that are not taken, in calls and results alike; none becomes another one's."""
    taken: dict[str, str] = {}
    for name in dict.fromkeys(name for item in items for block in _blocks(item) for name in _ids(block)):
        told = _NOT_IN_ID.sub("_", name) or "call"
        while told in taken.values():
            told += "_"
        taken[name] = told
    return [Item(item.index, _renamed(item.message, taken)) for item in items]


def _blocks(item: Item) -> list[Any]:
    content = item.message.get("content") if isinstance(item.message, OBJECT) else None
    return [block for block in content if isinstance(block, OBJECT)] if isinstance(content, list) else []


def _ids(block: Any) -> list[str]:  # noqa: ANN401 - a block
    return [block[key] for key in ("id", "tool_use_id") if isinstance(block.get(key), str)]


def _renamed(message: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - a message
    if not any(names[name] != name for block in _blocks(Item(0, message)) for name in _ids(block)):
        return message
    return {**message, "content": [_with_ids(block, names) for block in message["content"]]}


def _with_ids(block: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - a block
    if not isinstance(block, OBJECT):
        return block
    told = {key: names[block[key]] for key in ("id", "tool_use_id") if isinstance(block.get(key), str)}
    return {**block, **told}


def _order(items: Sequence[Item], _: Sequence[Finding]) -> list[Item]:
    """Neighbours among the answers are taken as one, as the API does."""
    runs: dict[int, int] = {}
    last_role, number = "", 0
    for place, item in enumerate(items):
        role = item.message.get("role")
        number += role != last_role
        runs[place], last_role = number, role

    def turn_of(place: int, message: Json) -> Turn | None:
        if message.get("role") not in ("user", "assistant"):
            return None
        own = ApiMessageId(f"run-{runs[place]}") if message["role"] == "assistant" else None
        return Turn(message["role"], parse_content(message["content"]), message_id=own)

    return in_order(items, turn_of, _back)


def _back(turn: Turn, message: Json | None) -> list[Json]:
    return [{**(message or {}), "role": turn.role, "content": [dict(block.raw) for block in turn.blocks]}]


EDITS: dict[str, Edit] = {
    "anthropic/message": lambda _, __: None,
    "anthropic/role": _role,
    "anthropic/content": lambda message, _: {**message, "content": quoted(message["content"])},
    "anthropic/empty": lambda _, __: None,
    "anthropic/blank-text": _blank,
    "anthropic/block": _block(_quote),
    "anthropic/place": _block(_misplaced),
    "anthropic/call-name": _block(_named),
    "anthropic/call-input": _block(_given),
    "anthropic/error-text": _block(lambda block: [{**block, "content": FAILED}]),
    "anthropic/unsigned": _block(lambda _: ()),
    "anthropic/thinking-last": _end,
    "anthropic/final-space": _space,
    "anthropic/media-type": _block(_medium),
    "anthropic/media-bytes": _block(_real_type),
    "anthropic/image-size": _block(_medium),
    "anthropic/image-sides": _block(_medium),
    "anthropic/cache-marks": _block(_without_mark),
}
MENDER = Mender(EDITS, {"anthropic/call-id": _rename, "anthropic/first-user": _open}, _order)
