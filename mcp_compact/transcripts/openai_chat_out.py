"""Writes live turns as messages of OpenAI's chat API.

What came as such a message and stands unchanged goes out as it came. Thinking has no place in this API and
stays in the archive; an image in a result follows it as a user's message, since results are text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from mcp_compact.messages.blocks import (
    OBJECT,
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from mcp_compact.messages.codec import clean
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.beside import NOTHING, Beside, is_system
from mcp_compact.transcripts.cleared_out import naming
from mcp_compact.transcripts.openai_chat_messages import INSTRUCTING, decode_chat, is_plain
from mcp_compact.transcripts.responses_out import FOREIGN, signs
from mcp_compact.transcripts.responses_out import text_of as quoted_text

Json: TypeAlias = dict[str, Any]
OF_RESULT = "[From the result of call {id}]"
OF_FILES = FOREIGN | {"id"}


def to_chat(
    turns: Iterable[Turn], records: Mapping[MessageUuid, Record] | None = None, beside: Beside = NOTHING
) -> list[Json]:
    """The messages of valid turns; the records of one answer become one message."""
    known = records or {}
    out = [_system(record) for record in beside.leading]
    for group in _answers_together(turns):
        told = beside.before.get(group[0].uuid, ()) if group[0].uuid is not None else ()
        out += [_system(record) for record in told if is_system(record)]
        out += _group(group, known)
    out += [_system(record) for record in beside.closing if is_system(record)]
    return [clean(message) for message in out]


def _system(record: Record) -> Json:
    if record.raw.get("role") in INSTRUCTING and is_plain(record.raw):
        return _own(record.raw)
    return {"role": "system", "content": record.text}


def _is_own(record: Record) -> bool:
    """Did it come as such a message? Other formats' messages look like one, and mean more than they say."""
    return is_plain(record.raw) and signs(decode_chat(record.raw).blocks) == signs(record.blocks)


def _own(raw: Mapping[str, Any]) -> Json:
    """A message as it came, without what stands beside it in a session file, and without fields that say nothing."""
    return {key: value for key, value in raw.items() if key not in OF_FILES and (value is not None or key == "content")}


def _answers_together(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Assistant turns of one message id together; results and what follows them apart."""
    held: list[Turn] = []
    for turn in turns:
        if held and not (turn.role == "assistant" and turn.message_id and turn.message_id == held[0].message_id):
            yield held
            held = []
        held.append(turn)
    if held:
        yield held


def _group(group: Sequence[Turn], known: Mapping[MessageUuid, Record]) -> list[Json]:
    first = group[0]
    record = known.get(first.uuid) if first.uuid is not None else None
    if len(group) == 1 and first.whole and record is not None and _is_own(record):
        return [_own(record.raw)]
    blocks = [block for turn in group for block in turn.blocks]
    return _answer(blocks) if first.role == "assistant" else _user(blocks)


def _answer(blocks: Sequence[Block]) -> list[Json]:
    """One assistant message; none where nothing but thinking was left of it."""
    texts = [text for block in blocks if (text := _text_of(block))]
    calls = [_call(block) for block in blocks if isinstance(block, ToolUseBlock) and not block.server]
    if not texts and not calls:
        return []
    message: Json = {"role": "assistant", "content": "\n\n".join(texts) or None}
    return [message | ({"tool_calls": calls} if calls else {})]


def _user(blocks: Sequence[Block]) -> list[Json]:
    """Results first, each a message of its own; then what else the turn holds."""
    results = [block for block in blocks if isinstance(block, ToolResultBlock) and not block.server]
    rest = [part for block in blocks if (part := _part(block))]
    shown = [part for result in results for part in _media_of(result)]
    parts = [*shown, *rest]
    messages: list[Json] = [_result(result) for result in results]
    if len(parts) == 1 and parts[0]["type"] == "text":
        messages.append({"role": "user", "content": parts[0]["text"]})
    elif parts:
        messages.append({"role": "user", "content": parts})
    return messages


def _call(block: ToolUseBlock) -> Json:
    value = block.input
    is_text = isinstance(value, OBJECT) and set(value) == {"arguments"} and isinstance(value["arguments"], str)
    arguments = value["arguments"] if is_text else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _result(block: ToolResultBlock) -> Json:
    texts = [text for part in block.parts if (text := _text_of(part))]
    texts += [f"[{part.kind}]" for part in block.parts if isinstance(part, MediaBlock)]
    said = naming("\n".join(texts), block.tool_use_id)
    return {"role": "tool", "tool_call_id": block.tool_use_id, "content": said}


def _media_of(block: ToolResultBlock) -> list[Json]:
    media = [part for part in map(_part, (p for p in block.parts if isinstance(p, MediaBlock))) if part is not None]
    return [{"type": "text", "text": OF_RESULT.format(id=block.tool_use_id)}, *media] if media else []


def _part(block: Block) -> Json | None:
    """A block as a part of a user's message; None where there is nothing to send."""
    if isinstance(block, MediaBlock):
        return _media(block)
    text = _text_of(block)
    return {"type": "text", "text": text} if text else None


def _media(block: MediaBlock) -> Json:
    source = block.raw.get("source")
    url = source.get("url") if isinstance(source, OBJECT) else None
    data = f"data:{block.media_type or 'image/png'};base64,{block.data}" if block.data else url
    if block.kind == "image" and isinstance(data, str):
        return {"type": "image_url", "image_url": {"url": data}}
    if block.data:
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": data}}
    return {"type": "text", "text": f"[{block.kind}]"}


def _text_of(block: Block) -> str:
    """A block's text; what this API has no form for as its JSON; empty for media, thinking, calls and results."""
    match block:
        case TextBlock():
            return block.text
        case MediaBlock() | ThinkingBlock():
            return ""
        case ToolUseBlock() | ToolResultBlock() if not block.server:
            return ""
        case _:
            return quoted_text(block)
