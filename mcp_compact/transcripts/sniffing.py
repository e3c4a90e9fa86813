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
MOST_LEVELS = 500
"""What is nested deeper is no transcript, and not worth the time of looking at all of it."""
LISTS = ("messages", "history", "contents", "input", "output", "steps")
"""Keys under which a file's one value holds its entries."""
VALUE_CHARS = 80
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)


@dataclass(slots=True)
class Outline:
    """The keys of one object, with the values that are texts; the same of its first message, if it has a list."""

    keys: dict[str, str | None] = field(default_factory=dict)
    items: dict[str, str | None] = field(default_factory=dict)
    """Keys of the objects in the first list of entries that it holds."""
    list_name: str = ""
    """The key of that list: `messages`, or what other formats call it."""
    parts: set[str] = field(default_factory=set)
    """The types of the parts that its content, or its items' content, is made of."""
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
            if depth > MOST_LEVELS:
                return
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
    if not inside:
        if outline.keys.get(key) is None:
            outline.keys[key] = value
        return
    if key == "type" and value is not None and len(inside) > 1 and inside[-2] == "content":
        outline.parts.add(value)
    if inside[0] == "request":
        inside = inside[1:]
    if len(inside) == 2 and inside[0] in LISTS and outline.list_name in ("", inside[0]):  # noqa: PLR2004 - list, object
        outline.list_name = inside[0]
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
    if outline.items and outline.list_name != "messages":
        return False
    if outline.items:
        return "role" in outline.items or {"type", "message"} <= outline.items.keys()
    if outline.has("role"):
        return outline.has("content") or outline.keys["role"] in ("user", "assistant")
    return outline.type_is("user", "assistant", "system") and (outline.has("message") or outline.is_list)


def is_openai(outline: Outline) -> bool:
    """A chat message list in OpenAI's form, by what only that form has; or the log of a request of it."""
    if outline.has("messages", "response"):
        return True
    if outline.items and outline.list_name != "messages":
        return False
    keys: Mapping[str, str | None] = outline.items or outline.keys
    roles = {keys.get("role"), *(key.removeprefix("role ") for key in keys if key.startswith("role "))}
    return "tool_calls" in keys or "tool_call_id" in keys or bool(roles & {"tool", "function", "developer"})


def is_codex(outline: Outline) -> bool:
    """A line of a rollout of Codex."""
    types = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
    return outline.has("type", "payload") and outline.type_is(*types)


def is_entire(outline: Outline) -> bool:
    """A line of a transcript in Entire's own form."""
    return outline.has("v", "agent", "cli_version", "type")


def is_raw_export(outline: Outline) -> bool:
    """The first line of an archive's own export: no transcript, but rows of its tables."""
    return outline.has("mcp_compact_raw_export", "schema", "sessions")


def is_copilot(outline: Outline) -> bool:
    """An event of Copilot CLI."""
    return outline.has("type", "data") and "." in (outline.keys["type"] or "")


def is_gemini_cli(outline: Outline) -> bool:
    """A chat of Gemini CLI, or its first line."""
    return outline.has("sessionId", "projectHash")


def is_atif(outline: Outline) -> bool:
    """A trajectory in ATIF."""
    return outline.has("schema_version", "steps")


def is_swe_agent(outline: Outline) -> bool:
    """A trajectory of SWE-agent, or of mini-swe-agent in its newer form."""
    if (outline.keys.get("trajectory_format") or "").startswith("mini-swe"):
        return True
    if outline.has("environment", "trajectory"):
        return True
    is_history = outline.list_name in ("", "history") and not ({"source", "parts"} & outline.items.keys())
    return is_history and outline.has("history") and (outline.has("trajectory") or not outline.has("messages"))


def is_opencode(outline: Outline) -> bool:
    """An export of opencode."""
    return outline.has("info", "messages") and "parts" in outline.items


def is_cline(outline: Outline) -> bool:
    """A session of Cline."""
    return outline.has("version", "sessionId", "messages")


def is_pi(outline: Outline) -> bool:
    """The first line of a session of pi."""
    return outline.type_is("session") and outline.has("id", "cwd")


def is_openhands(outline: Outline) -> bool:
    """An event of OpenHands, of either kind, or a row that holds a history of them."""
    keys = outline.items if outline.list_name == "history" else outline.keys
    if "source" not in keys or "role" in keys:
        return False
    kind = keys.get("kind") or ""
    return "action" in keys or "observation" in keys or kind.endswith("Event") or kind == "Condensation"


def is_api_log(outline: Outline) -> bool:
    """A request to the Anthropic Messages API and its answer, which may stand far behind a long request."""
    if outline.has("request", "response"):
        return outline.list_name in ("", "messages")
    return outline.has("request") and outline.list_name == "messages" and not outline.has("messages")


_ITEMS = frozenset(
    ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call",
     "reasoning", "web_search_call", "file_search_call", "mcp_call", "mcp_list_tools", "code_interpreter_call",
     "image_generation_call", "computer_call", "item_reference", "shell_call", "apply_patch_call")
)  # fmt: skip


def is_responses(outline: Outline) -> bool:
    """An item of OpenAI's Responses API, a request of it, or its response."""
    if outline.has("request", "response"):
        return outline.list_name in ("input", "output")
    if outline.list_name in ("input", "output") or isinstance(outline.keys.get("input"), str):
        return outline.has("model") or bool(outline.parts & {"input_text", "output_text", "input_image"})
    if outline.has("type", "payload") or outline.has("message"):
        return False
    return (outline.keys.get("type") in _ITEMS and not outline.has("uuid")) or (
        outline.has("role") and bool(outline.parts & {"input_text", "output_text", "input_image"})
    )


def is_gemini_contents(outline: Outline) -> bool:
    """A content of the Gemini API, or a request of it."""
    keys = outline.items if outline.list_name in ("contents", "history") else outline.keys
    return "parts" in keys and ("role" in keys or outline.list_name == "contents") and "info" not in keys


_LANGCHAIN = ("human", "ai", "HumanMessageChunk", "AIMessageChunk")


def is_langchain(outline: Outline) -> bool:
    """A message of LangChain, or the state of one of its agents."""
    keys = outline.items if outline.list_name == "messages" else outline.keys
    if keys.get("type") in _LANGCHAIN:
        return "content" in keys or "data" in keys
    return "lc" in keys and "kwargs" in keys


SNIFFERS: tuple[tuple[str, Callable[[Outline], bool]], ...] = (
    ("entire", is_entire),
    ("raw", is_raw_export),
    ("copilot-cli", is_copilot),
    ("gemini-cli", is_gemini_cli),
    ("atif", is_atif),
    ("swe-agent", is_swe_agent),
    ("opencode", is_opencode),
    ("cline", is_cline),
    ("pi", is_pi),
    ("openhands", is_openhands),
    ("responses", is_responses),
    ("gemini", is_gemini_contents),
    ("langchain", is_langchain),
    ("api-log", is_api_log),
)
"""Formats that one object tells for sure: name, how it is told. In this order."""
UNREADABLE: Mapping[str, str] = {
    "entire": "an Entire transcript",
    "raw": "an export of whole sessions, which `mcp-compact import FILE` takes on the command line",
}
"""Formats that are known by name only: name, what it looks like."""
MINI_SWE = "```mswea_bash_command\\n"
"""What commands of mini-swe-agent begin with, as JSON writes it. Its older trajectories are plain message lists."""
