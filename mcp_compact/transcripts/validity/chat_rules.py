"""What OpenAI's chat API refuses in a list of messages. Ids may come again in a later answer; in one they may not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import OBJECT, Raw
from mcp_compact.transcripts.validity.rules import DEPENDS, LEFT, OPEN, STRUCTURE, Finding, Log, Rule, by_id, shown

RULES = (
    Rule("openai-chat/not-empty", "there must be a message", LEFT),
    Rule("openai-chat/message", "a message is an object with a role", "left out"),
    Rule("openai-chat/role", "a role is system, developer, user, assistant, tool or function", "made the user's"),
    Rule("openai-chat/content", "content is text or parts; an answer with calls needs none", "made an empty text"),
    Rule("openai-chat/empty-list", "a list of parts or calls must not be empty", "made an empty text, or left out"),
    Rule("openai-chat/part", "a part is of a kind that the role may send", "quoted as text"),
    Rule("openai-chat/call", "a call has an id, a name, and arguments as text", "completed, or left out"),
    Rule("openai-chat/call-id", "the id of a call has 40 characters at most", "shortened, its result's too"),
    Rule("openai-chat/call-name", "a name holds letters, digits, `_` and `-`, 64 at most", "renamed"),
    Rule("openai-chat/name", "the name of a message's sender has no blanks and no `<|\\/>`, 64 at most", "left out"),
    Rule("openai-chat/calls-count", "an answer makes 128 calls at most", STRUCTURE),
    Rule("openai-chat/id-twice", "in one answer an id names one call", STRUCTURE),
    Rule("openai-chat/unanswered", "each call needs its result before any other message", STRUCTURE),
    Rule("openai-chat/orphan", "a result follows the answer that made its call", STRUCTURE),
    Rule("openai-chat/result-twice", "a call has one result", STRUCTURE),
    Rule("openai-chat/open", "a call of the last answer waits for its result", LEFT, OPEN),
    Rule("openai-chat/count", "requests may hold 2,048 messages", LEFT, DEPENDS),
)  # fmt: skip
_RULES = by_id(RULES)
ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
PARTS = {
    "user": frozenset(("text", "image_url", "input_audio", "file")),
    "assistant": frozenset(("text", "refusal")),
}
TEXT_ALONE = frozenset(("text",))
ID_CHARS = 40
MOST_CALLS = 128
MOST_MESSAGES = 2_048
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SENDER = re.compile(r"[^\s<|\\/>]{1,64}")


def check(messages: Sequence[Any]) -> list[Finding]:
    """Every rule that the list breaks, in the order of the messages."""
    log = Log("messages", _RULES)
    if not messages:
        log.add("not-empty", -1)
    if len(messages) > MOST_MESSAGES:
        log.add("count", -1, detail=f"{len(messages):,}")
    pairs = _Pairs(log)
    for index, message in enumerate(messages):
        if not isinstance(message, OBJECT) or not ("role" in message or "content" in message):
            log.add("message", index)
            continue
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            log.add("role", index, detail=shown(role))
        _content(index, message, role, log)
        if "name" in message and role not in ("tool", "function"):
            _sender(index, message["name"], log)
        pairs.message(index, message, role)
    pairs.end()
    return sorted(log.found, key=lambda finding: finding.index)


def _content(index: int, message: Raw, role: object, log: Log) -> None:
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        needs_none = role == "assistant" and any(
            message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio")
        )
        if not needs_none and role != "function":
            log.add("content", index, detail="it has none")
    elif not isinstance(content, list):
        log.add("content", index, detail=type(content).__name__)
    elif not content:
        log.add("empty-list", index, key="content")
    else:
        kinds = PARTS.get(str(role), TEXT_ALONE)
        for at, part in enumerate(content):
            kind = part.get("type") if isinstance(part, OBJECT) else None
            if not isinstance(kind, str) or kind not in kinds or not _is_whole(part, kind):
                log.add("part", index, at, detail=f"{shown(kind)} from {role}")


def _is_whole(part: Raw, kind: object) -> bool:
    """Does a part hold what its kind needs?"""
    match kind:
        case "text":
            return isinstance(part.get("text"), str)
        case "image_url":
            value = part.get("image_url")
            return isinstance(value, OBJECT) and isinstance(value.get("url"), str) and bool(value["url"])
        case "refusal":
            return isinstance(part.get("refusal"), str)
        case _:
            return isinstance(part.get(str(kind)), OBJECT)


def _sender(index: int, name: object, log: Log) -> None:
    if not isinstance(name, str) or _SENDER.fullmatch(name) is None:
        log.add("name", index, detail=shown(name), key="name")


class _Pairs:
    """Calls that wait for their results."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting: dict[str, tuple[int, int]] = {}
        self._answered: set[str] = set()

    def message(self, index: int, message: Raw, role: object) -> None:
        if role == "tool":
            self._result(index, message.get("tool_call_id"))
            return
        self._close("unanswered")
        self._answered = set()
        calls = message.get("tool_calls")
        if role != "assistant" or calls is None:
            return
        if not isinstance(calls, list) or not calls:
            self._log.add("empty-list", index, key="tool_calls")
            return
        if len(calls) > MOST_CALLS:
            self._log.add("calls-count", index, detail=f"{len(calls)}", key="tool_calls")
        for at, call in enumerate(calls):
            self._call(index, at, call)

    def _call(self, index: int, at: int, call: object) -> None:
        log = self._log
        function = call.get("function") or call.get("custom") if isinstance(call, OBJECT) else None
        if not isinstance(call, OBJECT) or not isinstance(function, OBJECT) or not is_call(call):
            log.add("call", index, at, key="tool_calls")
            if not isinstance(call, OBJECT) or not isinstance(call.get("id"), str):
                return
        call_id = call["id"]
        if len(call_id) > ID_CHARS:
            log.add("call-id", index, at, detail=f"{len(call_id)} characters", key="tool_calls")
        name = function.get("name") if isinstance(function, OBJECT) else None
        if isinstance(name, str) and name and NAME.fullmatch(name) is None:
            log.add("call-name", index, at, detail=shown(name), key="tool_calls")
        if call_id in self._waiting:
            log.add("id-twice", index, at, detail=call_id, key="tool_calls")
        self._waiting[call_id] = (index, at)

    def _result(self, index: int, call: object) -> None:
        if isinstance(call, str) and call in self._waiting:
            del self._waiting[call]
            self._answered.add(call)
        elif isinstance(call, str) and call in self._answered:
            self._log.add("result-twice", index, detail=shown(call))
        else:
            self._log.add("orphan", index, detail=shown(call))

    def _close(self, rule: str) -> None:
        for call, (index, at) in self._waiting.items():
            self._log.add(rule, index, at, detail=call, key="tool_calls")
        self._waiting = {}

    def end(self) -> None:
        """The calls that still wait at the end are open."""
        self._close("open")


def is_call(call: Raw) -> bool:
    """Has a call an id, a name and its arguments as text?"""
    if not isinstance(call.get("id"), str) or not call["id"]:
        return False
    function, custom = call.get("function"), call.get("custom")
    if isinstance(custom, OBJECT) and call.get("type") == "custom":
        return isinstance(custom.get("name"), str) and isinstance(custom.get("input"), str) and bool(custom["name"])
    return (
        isinstance(function, OBJECT)
        and call.get("type") == "function"
        and isinstance(function.get("arguments"), str)
        and isinstance(function.get("name"), str)
        and bool(function["name"])
    )
