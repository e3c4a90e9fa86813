"""Reads messages of LangChain in each of the ways that it writes them: `{type, data}`, `{lc, id, kwargs}`, and plain.

A list, an object with `messages` (the state of an agent), or one message a line. Calls stand in `tool_calls`; where an
answer's content repeats them they are taken once. The summary that LangChain's own middleware puts in the place of
earlier messages is a boundary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import (
    as_text,
    call,
    each_object,
    image,
    image_at,
    made,
    part_kind,
    result,
    text,
    texts,
    usage_of,
)
from mcp_compact.transcripts.report import PART, UNNAMED
from mcp_compact.transcripts.translated import TranslatedReader

ROLES = {
    "human": "user", "ai": "assistant", "system": "system", "developer": "system", "tool": "user", "function": "user",
}  # fmt: skip
"""What the types of messages are to us; `chat` names its role itself, `remove` is no message."""
SUMMARIZED = "summarization"
_CALLS = frozenset(("tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk"))
_THOUGHTS = frozenset(("thinking", "redacted_thinking", "reasoning", "reasoning_content"))


class LangChainReader(TranslatedReader):
    """Turns messages into records."""

    lists = ("messages",)

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """What else an agent's state holds."""
        self.session.session_id = uuid_of(value.get("thread_id"))
        if value:
            yield Entry(HEADER, value)

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of a message, and a boundary before it where it is a summary."""
        kind, own = _plain(raw)
        role = ROLES.get(kind.removesuffix("messagechunk")) or (
            _chat_role(own) if kind in ("chat", "chatmessagechunk") else None
        )
        uuid = uuid_of(own.get("id"))
        if role is None:
            yield Entry(kind, raw, uuid=uuid, body=body, unknown=() if kind == "remove" else (kind or "(none)",))
            return
        more = object_of(own, "additional_kwargs")
        is_summary = role == "user" and more.get("lc_source") == SUMMARIZED
        if is_summary:
            yield boundary({"of": uuid, "lc_source": SUMMARIZED}, uuid=f"{uuid}:boundary" if uuid else None)
        message, unknown = _message(kind, role, own)
        yield Entry(kind, raw, message, uuid, body=body, is_summary=is_summary, unknown=unknown)


def _plain(raw: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The type of a message, in small letters, and its fields."""
    if isinstance(raw.get("data"), dict):
        return (text_of(raw, "type") or "").lower(), raw["data"]
    if raw.get("lc") is not None and isinstance(raw.get("kwargs"), dict):
        names = raw.get("id")
        name = str(names[-1]) if isinstance(names, list) and names else ""
        name = name.removesuffix("Chunk").removesuffix("Message")
        kwargs = raw["kwargs"]
        return (text_of(kwargs, "type") or name).lower(), kwargs
    return (text_of(raw, "type") or "").lower(), raw


def _chat_role(own: Mapping[str, Any]) -> str:
    role = own.get("role")
    return role if role in ("user", "assistant", "system") else "user"


def _message(kind: str, role: str, own: Mapping[str, Any]) -> tuple[Message, tuple[str, ...]]:
    blocks, unknown = _content(own.get("content"))
    if kind.startswith("tool") and (call_id := text_of(own, "tool_call_id")):
        content: object = own.get("content") if isinstance(own.get("content"), str) else blocks
        return made("user", [result(call_id, content, failed=own.get("status") == "error")]), unknown
    if kind.startswith("function"):
        return made("user", [text(f"[Result of {own.get('name') or 'a function'}]"), *blocks]), unknown
    if role != "assistant":
        return made(role, own["content"] if isinstance(own.get("content"), str) else blocks), unknown
    blocks += _calls(own)
    told = object_of(own, "response_metadata")
    message = made(
        role,
        blocks,
        # Ids that LangChain gives itself are the run's; those of an answer are the provider's. Both are one answer's.
        id=own.get("id"),
        model=told.get("model_name") or told.get("model"),
        usage=usage_of(own.get("usage_metadata"), ("input_tokens",), ("output_tokens",)),
    )
    return message, unknown


def _calls(own: Mapping[str, Any]) -> list[Any]:
    found = [
        call(call_id, each.get("name"), each.get("args"))
        for key in ("tool_calls", "invalid_tool_calls")
        for each in each_object(own.get(key))
        if (call_id := text_of(each, "id"))
    ]
    if found:
        return found
    # Older answers keep OpenAI's own form.
    more = object_of(own, "additional_kwargs")
    return [
        call(call_id, object_of(each, "function").get("name"), object_of(each, "function").get("arguments"))
        for each in each_object(more.get("tool_calls"))
        if (call_id := text_of(each, "id"))
    ]


def _content(content: object) -> tuple[list[Any], tuple[str, ...]]:
    if not isinstance(content, list):
        return texts(as_text(content)), ()
    blocks: list[Any] = []
    unknown: list[str] = []
    for part in content:
        if isinstance(part, str):
            blocks += texts(part)
        elif not isinstance(part, dict):
            unknown.append(PART + UNNAMED)
        elif part.get("type") not in _CALLS | _THOUGHTS:
            block = _block(part)
            blocks += [block] if block else []
            unknown += [] if block else [part_kind(part)]
        elif part.get("type") in ("thinking", "redacted_thinking") and (part.get("signature") or part.get("data")):
            own = {key: part[key] for key in ("type", "thinking", "signature", "data") if key in part}
            blocks.append(own)
    return blocks, tuple(unknown)


def _block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    match part.get("type"):
        case "text" | "input_text" | "output_text" | "text-plain":
            return text(as_text(part.get("text")))
        case "image_url":
            value = part.get("image_url")
            url = value.get("url") if isinstance(value, dict) else value
            return image_at(url) if isinstance(url, str) else None
        case "image" | "file" | "document":
            return _medium(part)
        case _:
            return None


def _medium(part: Mapping[str, Any]) -> dict[str, Any] | None:
    source = object_of(part, "source")
    if source:
        return {"type": "document" if part.get("type") == "document" else "image", "source": dict(source)}
    data = text_of(part, "base64", "data")
    if data:
        return image(text_of(part, "mime_type") or "image/png", data)
    url = text_of(part, "url")
    return image_at(url) if url else None
