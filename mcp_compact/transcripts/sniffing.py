"""Tells a transcript's format by its content, never by its name.

Only the beginning is looked at, and it may end anywhere: the keys of the first few objects are
read off without parsing them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mcp_compact.transcripts.kinds import KNOWN_TYPES

HEADS_BYTES = (1 << 16, 1 << 22)
"""How much of a file is looked at: nearly always the first is enough; a document may begin with a long prompt."""
OBJECTS = 40
VALUE_CHARS = 80
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)


@dataclass(slots=True)
class Outline:
    """The keys of one object, with the values that are texts; the same of its first message, if it has a list."""

    keys: dict[str, str | None] = field(default_factory=dict)
    items: dict[str, str | None] = field(default_factory=dict)
    """Keys of the objects in its `messages`."""
    is_list: bool = False
    """The object stands in a list."""

    def has(self, *keys: str) -> bool:
        """Are all these keys there?"""
        return all(key in self.keys for key in keys)

    def type_is(self, *types: str) -> bool:
        """Is its type one of these?"""
        return self.keys.get("type") in types


def outlines(text: str) -> Iterator[Outline]:
    """The outlines of the objects a text begins with; the last one may be unfinished."""
    is_list = text.lstrip("\ufeff \t\r\n").startswith("[")
    base = 2 if is_list else 1
    outline, depth, key, found = Outline(is_list=is_list), 0, "", 0
    path: list[str] = []
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in "{[":
            depth += 1
            path.append(key)
            if depth == base and outline.keys:
                yield outline
                outline, found = Outline(is_list=is_list), found + 1
        elif mark in "}]":
            depth, key = max(depth - 1, 0), ""
            path = path[:depth]
        elif match[2]:
            key = match[1]
            _note(outline, path[base:], key, None)
        else:
            _note(outline, path[base:], key, match[1][:VALUE_CHARS])
        if found >= OBJECTS:
            return
    if outline.keys:
        yield outline


def _note(outline: Outline, inside: list[str], key: str, value: str | None) -> None:
    """Note a key or a text. `inside`: the keys of what it stands in, below the object itself."""
    if not inside and outline.keys.get(key) is None:
        outline.keys[key] = value
    elif len(inside) == 2 and inside[0] == "messages":  # noqa: PLR2004 - the list, and an object in it
        outline.items[key] = outline.items.get(key) or value
        if value is not None and key == "role":
            outline.items[f"role {value}"] = value


def is_claude_code(outline: Outline) -> bool:
    """A line of a Claude Code session."""
    type_ = outline.keys.get("type")
    if type_ is None or outline.is_list:
        return False
    envelope = any(key in outline.keys for key in ("parentUuid", "sessionId", "session_id", "isSidechain", "leafUuid"))
    return (type_ in KNOWN_TYPES and (envelope or outline.has("uuid") or outline.has("messageId"))) or (
        envelope and outline.has("uuid")
    )


def is_anthropic(outline: Outline) -> bool:
    """A message, an item of a message list, or a request with messages."""
    if outline.items:
        return "role" in outline.items or {"type", "message"} <= outline.items.keys()
    if outline.has("role"):
        return outline.has("content") or outline.keys["role"] in ("user", "assistant")
    return outline.type_is("user", "assistant", "system") and (outline.has("message") or outline.is_list)


def is_openai(outline: Outline) -> bool:
    """A chat message list in OpenAI's form, by what only that form has; or the log of a request of it."""
    if outline.has("messages", "response"):
        return True
    keys: Mapping[str, str | None] = outline.items or outline.keys
    roles = {keys.get("role"), *(key.removeprefix("role ") for key in keys if key.startswith("role "))}
    return "tool_calls" in keys or "tool_call_id" in keys or bool(roles & {"tool", "function", "developer"})


def is_codex(outline: Outline) -> bool:
    """A line of a rollout of Codex."""
    types = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
    return outline.has("type", "payload") and outline.type_is(*types)


def _is_copilot(outline: Outline) -> bool:
    return outline.has("type", "data") and "." in (outline.keys["type"] or "")


def _is_opencode(outline: Outline) -> bool:
    return outline.has("info", "messages") and "parts" in outline.items


def _is_swe_agent(outline: Outline) -> bool:
    return outline.has("history") and (outline.has("trajectory") or not outline.has("messages"))


def _is_entire(outline: Outline) -> bool:
    return outline.has("v", "agent", "cli_version", "type")


def _is_openhands(outline: Outline) -> bool:
    return outline.has("source") and (outline.has("action") or outline.has("observation")) and not outline.has("role")


FOREIGN: tuple[tuple[str, str, Callable[[Outline], bool]], ...] = (
    ("entire", "an Entire transcript", _is_entire),
    ("copilot-cli", "a Copilot CLI event log", _is_copilot),
    ("gemini-cli", "a Gemini CLI chat", lambda o: o.has("sessionId", "projectHash")),
    ("atif", "an ATIF trajectory", lambda o: o.has("schema_version", "steps")),
    ("swe-agent", "a SWE-agent trajectory", _is_swe_agent),
    ("opencode", "an opencode export", _is_opencode),
    ("cline", "a Cline session", lambda o: o.has("version", "sessionId", "messages")),
    ("pi", "a pi session", lambda o: o.type_is("session") and o.has("id", "cwd")),
    ("openhands", "an OpenHands event list", _is_openhands),
    ("api-log", "a log of API requests", lambda o: o.has("request", "response")),
)
"""Formats that are known by name: name, what it looks like, how it is told."""
