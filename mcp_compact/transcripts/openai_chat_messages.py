"""A message of OpenAI's chat API as one of ours: calls, results, images and refusals become blocks.

A pure function of the message: its own JSON stays the record's body, so nothing of it is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp_compact.messages.blocks import LIST, OBJECT, parse_content
from mcp_compact.messages.codec import decode_usage
from mcp_compact.messages.message import Message
from mcp_compact.transcripts.fields import text_of

Raw: TypeAlias = Mapping[str, Any]

ANSWERING = ("tool", "function")
"""Roles of results."""
INSTRUCTING = ("system", "developer")
_ITS_OWN = (*ANSWERING, "developer")
ROLES = ("user", "assistant", *ANSWERING, *INSTRUCTING)
PARTS = ("text", "image_url", "input_audio", "file", "refusal")
"""Kinds of parts that content is made of."""
_OWN_PARTS = frozenset(PARTS) - {"text"}
FUNCTION_CALL = "[Call of {name}: {arguments}]"
"""Calls of the API's first form have no id to be paired by, so they are told as text."""
FUNCTION_RESULT = "[Result of {name}]"


def is_chat(raw: Raw) -> bool:
    """Is it a message that only this API has? Plain text of a user or assistant looks the same everywhere."""
    role = raw.get("role")
    if role in _ITS_OWN or "tool_calls" in raw or "function_call" in raw:
        return True
    if role == "assistant" and isinstance(raw.get("refusal"), str):
        return True
    content = raw.get("content")
    # To ask of a text whether it is a sequence costs much, and it is one.
    if content is None or isinstance(content, str) or not isinstance(content, LIST):
        return False
    return any(_kind(part) in _OWN_PARTS for part in content)


def is_plain(raw: Raw) -> bool:
    """May this API be sent it as it stands? A message of a known role whose parts it knows."""
    content = raw.get("content")
    if raw.get("role") not in ROLES or "message" in raw:
        return False
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, LIST) and all(_kind(part) in PARTS for part in content)


def decode_chat(raw: Raw) -> Message:
    """The message in our form. A result's role is the user's; instructions keep the role `system`."""
    role = raw.get("role")
    content: Any
    if role == "tool" and text_of(raw, "tool_call_id"):
        content = [{"type": "tool_result", "tool_use_id": raw["tool_call_id"], "content": _content(raw.get("content"))}]
    elif role in ANSWERING:
        head = FUNCTION_RESULT.format(name=text_of(raw, "name") or "a function")
        content = [{"type": "text", "text": head}, *_listed(_content(raw.get("content")))]
    elif role == "assistant":
        content = [*_listed(_content(raw.get("content"))), *_refusal(raw), *_calls(raw)]
    else:
        content = _content(raw.get("content"))
    own = "user" if role in ANSWERING else "system" if role in INSTRUCTING else str(role)
    return Message(
        own, content, parse_content(content), model=text_of(raw, "model"), usage=decode_usage(raw.get("usage"))
    )


def _content(content: object) -> Any:  # noqa: ANN401 - text, a list of blocks, or what it was
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, LIST):
        return json.dumps(content, ensure_ascii=False, default=str)
    return [_block(part) for part in content]


def _listed(content: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _refusal(raw: Raw) -> list[Raw]:
    said = text_of(raw, "refusal")
    return [{"type": "text", "text": said}] if said else []


def _calls(raw: Raw) -> list[Raw]:
    calls = raw.get("tool_calls")
    made = [_call(call) for call in calls if isinstance(call, OBJECT)] if isinstance(calls, LIST) else []
    old = raw.get("function_call")
    if old is not None and isinstance(old, OBJECT):
        text = FUNCTION_CALL.format(name=text_of(old, "name") or "?", arguments=old.get("arguments"))
        made.append({"type": "text", "text": text})
    return made


def _call(call: Raw) -> Raw:
    """A call of a function, or of a custom tool, whose input is a text."""
    function = call.get("function")
    if isinstance(function, OBJECT):
        return _use(call, text_of(function, "name"), _arguments(function.get("arguments")))
    custom = call.get("custom")
    if isinstance(custom, OBJECT):
        return _use(call, text_of(custom, "name"), {"input": custom.get("input")})
    return call


def _use(call: Raw, name: str | None, value: object) -> Raw:
    if not text_of(call, "id"):
        return {
            "type": "text",
            "text": FUNCTION_CALL.format(name=name or "?", arguments=json.dumps(value, default=str)),
        }
    return {"type": "tool_use", "id": call["id"], "name": name or "", "input": value}


def _arguments(text: object) -> object:
    """The arguments as an object; as they were where they are none (a model may write broken JSON)."""
    if isinstance(text, OBJECT):
        return text
    try:
        value = json.loads(text) if isinstance(text, str) and text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": text}


def _block(part: object) -> object:
    """A part of content as a block; what is not known stays as it is."""
    if not isinstance(part, OBJECT):
        return part
    match part.get("type"):
        case "image_url":
            return _image(part)
        case "file":
            return _document(part)
        case "refusal" if isinstance(part.get("refusal"), str):
            return {"type": "text", "text": part["refusal"]}
        case _:
            return part


def _image(part: Raw) -> Raw:
    value = part.get("image_url")
    url = text_of(value, "url") if isinstance(value, OBJECT) else value
    if not isinstance(url, str):
        return part
    source = data_source(url) or {"type": "url", "url": url}
    return {"type": "image", "source": source}


def _document(part: Raw) -> Raw:
    value = part.get("file")
    data = text_of(value, "file_data") if isinstance(value, OBJECT) else None
    source = data_source(data) if data else None
    return {"type": "document", "source": source} if source else part


def data_source(url: str) -> Raw | None:
    """The source of a medium in a data URL; None for any other address."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return {"type": "base64", "media_type": head[len("data:") : -len(";base64")].split(";")[0], "data": data}


def _kind(part: object) -> str | None:
    return text_of(part, "type") if isinstance(part, OBJECT) else None
