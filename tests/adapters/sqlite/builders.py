"""Records for the archive's tests, prepared as the service prepares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mcp_compact.compaction.snapshot import MediaFacts
from mcp_compact.messages.blocks import MediaBlock, ToolResultBlock, parse_block
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.codec import body_hash, canonical, decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import NOTHING, Weight, media_bytes, media_tokens, weigh
from mcp_compact.ports.store import Batch, Prepared, SessionFacts, SessionKey

KEY = SessionKey("local", "s")


def record(
    uuid: str,
    role: str = "user",
    content: Any = None,
    *,
    parent: str | None = None,
    root: bool = False,
    message_id: str | None = None,
    type: str | None = None,
    usage: int = 0,
    at_ms: int | None = None,
    subtype: str = "",
    is_meta: bool = False,
    model: str | None = None,
) -> Record:
    """A record as an import gives it: a transcript's line with a message (none for content None)."""
    line: dict[str, Any] = {"type": type or role, "uuid": uuid, "parentUuid": parent}
    if content is not None:
        line["message"] = {"role": role, "content": content}
        if message_id is not None:
            line["message"]["id"] = message_id
        if model is not None:
            line["message"]["model"] = model
        if usage:
            line["message"]["usage"] = {"input_tokens": usage, "output_tokens": 1}
    return Record(
        uuid=MessageUuid(uuid),
        type=type or role,
        body=canonical(line),
        raw=line,
        message=decode_message(line.get("message"), role),
        parent_uuid=MessageUuid(parent) if parent is not None else None,
        is_root=root,
        at_ms=at_ms,
        subtype=subtype,
        is_meta=is_meta,
    )


def prepared(
    item: Record, *, exact: int | None = None, instructions: Sequence[str] = (), tools: Sequence[str] = ()
) -> Prepared:
    """The record counted by estimate (and, in tokens, exactly)."""
    results = list(item.results)
    cleared = [parse_block({**block.raw, "content": ClearedText().result(block)}) for block in results]
    weight = weigh([item.blocks])[0] if item.is_message else NOTHING
    return Prepared(
        record=item,
        weight=weight,
        exact_units=None if exact is None else exact * 1000,
        result_weights=tuple(weigh([[block]])[0] - Weight(messages=1) for block in results),
        cleared_weights=tuple(weigh([[block]])[0] - Weight(messages=1) for block in cleared),
        media=tuple(_media(item)),
        instructions=tuple(instructions),
        tools=tuple(tools),
        content_hash=body_hash(canonical({"role": item.message.role, "content": item.message.content}))
        if item.message
        else b"",
    )


def _media(item: Record) -> Iterable[MediaFacts]:
    for at, block in enumerate(item.blocks):
        match block:
            case MediaBlock():
                yield MediaFacts(block.kind, item.uuid, 0, at, None, media_tokens(block), bytes=media_bytes(block))
            case ToolResultBlock():
                for part_at, part in enumerate(block.parts):
                    if isinstance(part, MediaBlock):
                        facts = MediaFacts(part.kind, item.uuid, 0, at, part_at, media_tokens(part), block.tool_use_id)
                        yield replace(facts, bytes=media_bytes(part))
            case _:
                pass


def batch(*items: Record | Prepared, **facts: Any) -> Batch:
    """A batch of records; the keywords are the session's facts."""
    return Batch(tuple(item if isinstance(item, Prepared) else prepared(item) for item in items), SessionFacts(**facts))


def use(call: str, name: str = "Read", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def answer(call: str, text: str = "done", *, is_error: bool = False) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {**out, "is_error": True} if is_error else out


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


IMAGE: dict[str, Any] = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


def dialogue(number: int, start: int = 0) -> list[Record]:
    """A plain linear conversation: a prompt, then calls and their results, an answer every tenth record."""
    out: list[Record] = []
    for at in range(start, start + number):
        match at % 10:
            case 0:
                out.append(record(f"r{at}", "user", f"please do step {at}"))
            case 9:
                out.append(record(f"r{at}", "assistant", [text(f"step {at} is done")], message_id=f"m{at}"))
            case odd if odd % 2:
                content = [text(f"looking {at}"), use(f"t{at}", file_path=f"/src/file{at}.py")]
                out.append(record(f"r{at}", "assistant", content, message_id=f"m{at}", at_ms=at * 1000 + 1))
            case _:
                out.append(
                    record(
                        f"r{at}", "user", [answer(f"t{at - 1}", f"line {at} of the file\n" * 20)], at_ms=at * 1000 + 1
                    )
                )
    return out
