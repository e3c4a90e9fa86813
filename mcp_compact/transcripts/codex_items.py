"""An item of OpenAI's Responses API, as Codex keeps them, as one of our messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp_compact.messages.blocks import LIST, OBJECT, parse_block, parse_content
from mcp_compact.messages.message import Message
from mcp_compact.transcripts.fields import text_of
from mcp_compact.transcripts.lines import whole_object
from mcp_compact.transcripts.openai_chat_messages import data_source

Raw: TypeAlias = Mapping[str, Any]
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
TEXTS = ("input_text", "output_text", "refusal")
SHELL = "local_shell"
_OWN = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>",
    "<turn_aborted>", "<skills_instructions>", "<user_shell_command>",
)  # fmt: skip
"""How texts begin that the client writes into the user's place."""


def message_of(item: Raw) -> Message | None:
    """The message of an item; None for what is none of the dialogue (reasoning, web searches, what is unknown)."""
    kind = item.get("type")
    if kind == "message":
        return _message(item)
    if kind in CALLS and (call_id := text_of(item, "call_id")):
        name = text_of(item, "name") or SHELL
        return _alone("assistant", {"type": "tool_use", "id": call_id, "name": name, "input": _input(item)})
    if kind in OUTPUTS and (call_id := text_of(item, "call_id")):
        return _alone("user", {"type": "tool_result", "tool_use_id": call_id, **_output(item.get("output"))})
    return _message(item) if "role" in item and text_of(item, "type") is None else None


def summary_message(text: str) -> Message:
    """The user's message that stands for what a compaction took out."""
    return _made("user", text)


def is_clients_own(message: Message) -> bool:
    """Did the client write it in the user's place?"""
    if message.role != "user" or not message.blocks:
        return False
    first = message.blocks[0].raw.get("text")
    return isinstance(first, str) and first.lstrip().startswith(_OWN)


def _message(item: Raw) -> Message:
    role = text_of(item, "role") or "user"
    role = role if role in ("user", "assistant") else "system"
    content = item.get("content")
    if isinstance(content, str):
        return _made(role, content)
    parts = [_part(part) for part in content] if isinstance(content, list) else []
    return _alone(role, parts[0]) if len(parts) == 1 else _made(role, parts)


def _part(part: object) -> object:
    if type(part) is dict and type(text := part.get("text")) is str and part.get("type") in TEXTS:
        return {"type": "text", "text": text}
    if not isinstance(part, OBJECT):
        return part
    match part.get("type"):
        case kind if kind in TEXTS:
            text = part.get("text", part.get("refusal"))
            return {"type": "text", "text": text if isinstance(text, str) else ""}
        case "input_image" if isinstance(part.get("image_url"), str):
            url = part["image_url"]
            return {"type": "image", "source": data_source(url) or {"type": "url", "url": url}}
        case _:
            return part


def _input(item: Raw) -> object:
    """What a call is given, as an object: arguments as JSON, the text of a custom tool, or a shell's action."""
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        value = whole_object.quickly(arguments.encode("utf-8", "surrogatepass"))
        if value is None:
            value = _object(arguments)
        return value if value is not None else {"arguments": arguments}
    action = item.get("action")
    return action if isinstance(action, OBJECT) else {"input": item.get("input")}


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _output(output: object) -> Raw:
    """What a call gave: text, a list of parts, or an object with its text under `content` or `output`."""
    if isinstance(output, str):
        return {"content": output}
    if isinstance(output, OBJECT):
        text = text_of(output, "content", "output")
        failed = {"is_error": True} if output.get("success") is False else {}
        return {"content": text if text is not None else json.dumps(output, ensure_ascii=False), **failed}
    if isinstance(output, LIST):
        return {"content": [_part(part) for part in output]}
    return {"content": json.dumps(output, ensure_ascii=False)}


def _alone(role: str, block: object) -> Message:
    """A message of one block, as nearly all are."""
    return Message(role, [block], (parse_block(block),))


def _made(role: str, content: Any) -> Message:  # noqa: ANN401 - text or blocks
    return Message(role, content, parse_content(content))
