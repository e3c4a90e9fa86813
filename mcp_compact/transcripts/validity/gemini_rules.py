"""What the Gemini API refuses in a list of contents. Names of fields may be written either way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import OBJECT, Raw
from mcp_compact.transcripts.validity.rules import DEPENDS, LEFT, OPEN, STRUCTURE, Finding, Log, Rule, by_id, shown

RULES = (
    Rule("gemini/not-empty", "there must be a content", LEFT),
    Rule("gemini/content", "a content is an object with a list of parts", "left out"),
    Rule("gemini/role", "a role is user or model", "made the user's"),
    Rule("gemini/parts", "a content must have parts", "left out"),
    Rule("gemini/part", "a part holds text, media, a call or its response", "left out"),
    Rule("gemini/call", "a call has a name, and its arguments are an object", "completed"),
    Rule("gemini/call-name", "a name begins with a letter or `_`, 64 characters at most", "renamed, its response too"),
    Rule("gemini/response", "a response has the name of its call, and is an object", "completed"),
    Rule("gemini/place", "calls are the model's, responses the user's", "quoted as text"),
    Rule("gemini/first-user", "the first content must be the user's", "an opening content was added before it"),
    Rule("gemini/call-order", "calls follow a content of the user", "put into the content before"),
    Rule("gemini/unanswered", "each call needs its response in the very next content", STRUCTURE),
    Rule("gemini/orphan", "a response follows the content that holds its call", STRUCTURE),
    Rule("gemini/response-twice", "there are as many responses as calls", STRUCTURE),
    Rule("gemini/split", "the responses to one content stand in one content", "put into one"),
    Rule("gemini/mixed", "responses stand in a content of their own", "what stood beside them follows in another"),
    Rule("gemini/signature", "newer models want a signature with the first call of a step", LEFT, DEPENDS),
    Rule("gemini/alternate", "older models want the user and the model to take turns", LEFT, DEPENDS),
    Rule("gemini/ends-with-model", "newer models refuse a list that ends with the model", LEFT, DEPENDS),
    Rule("gemini/open", "a call of the last content waits for its response", LEFT, OPEN),
)  # fmt: skip
_RULES = by_id(RULES)
USERS, MODEL = ("user", "function"), "model"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
DATA = frozenset(
    ("text", "inlineData", "inline_data", "fileData", "file_data", "functionCall", "function_call", "functionResponse",
     "function_response", "executableCode", "executable_code", "codeExecutionResult", "code_execution_result",
     "toolCall", "tool_call", "toolResponse", "tool_response", "thoughtSignature", "thought_signature")
)  # fmt: skip


def check(contents: Sequence[Any]) -> list[Finding]:
    """Every rule that the list breaks, in the order of the contents."""
    log = Log("contents", _RULES, inner="parts")
    if not contents:
        log.add("not-empty", -1)
    parts = [_content(index, content, log) for index, content in enumerate(contents)]
    if contents and is_model(contents[0]):
        log.add("first-user", 0)
    _order(contents, parts, log)
    if contents and is_model(contents[-1]) and not any(map(call_of, parts[-1])):
        log.add("ends-with-model", len(contents) - 1)
    return sorted(log.found, key=lambda finding: finding.index)


def is_model(content: object) -> bool:
    """Is it the model's?"""
    return isinstance(content, OBJECT) and content.get("role") == MODEL


def call_of(part: object) -> Raw | None:
    """The call in a part."""
    return _named(part, "functionCall", "function_call")


def response_of(part: object) -> Raw | None:
    """The response in a part."""
    return _named(part, "functionResponse", "function_response")


def _named(part: object, *names: str) -> Raw | None:
    if not isinstance(part, OBJECT):
        return None
    for name in names:
        found = part.get(name)
        if found is not None and isinstance(found, OBJECT):
            return found
    return None


def _content(index: int, content: object, log: Log) -> Sequence[Any]:
    """Look at a content by itself; its parts."""
    parts = content.get("parts") if isinstance(content, OBJECT) else None
    if not isinstance(content, OBJECT) or not isinstance(parts, list):
        log.add("content", index)
        return ()
    role = content.get("role", "user")
    if role != MODEL and role not in USERS:
        log.add("role", index, detail=shown(role))
    if not parts:
        log.add("parts", index)
    for at, part in enumerate(parts):
        _part(index, at, part, role, log)
    return parts


def _part(index: int, at: int, part: object, role: object, log: Log) -> None:
    held = [key for key in part if key in DATA and part[key] is not None] if isinstance(part, OBJECT) else ()
    if not isinstance(part, OBJECT) or not held or (part.get("text") == "" and len(held) == 1):
        log.add("part", index, at)
        return
    if "text" in part and len(held) == 1:
        return
    asked, given = call_of(part), response_of(part)
    if asked is not None:
        name = asked.get("name")
        if not isinstance(name, str) or not name or not isinstance(asked.get("args") or {}, OBJECT):
            log.add("call", index, at)
        elif NAME.fullmatch(name) is None:
            log.add("call-name", index, at, detail=shown(name))
    if given is not None and not (
        isinstance(given.get("name"), str) and given["name"] and isinstance(given.get("response"), OBJECT)
    ):
        log.add("response", index, at)
    if (asked is not None and role != MODEL) or (given is not None and role == MODEL):
        log.add("place", index, at)


def _order(contents: Sequence[Any], parts: Sequence[Sequence[Any]], log: Log) -> None:
    """Turns, and calls with their responses: each in the very next content, as many as there are calls."""
    last_open = _last_calls(contents, parts)
    newest_asked = _newest_asked(contents, parts)
    taken_by = -1
    for index, own in enumerate(parts):
        before = contents[index - 1] if index else None
        if before is not None and isinstance(contents[index], OBJECT) and is_model(before) == is_model(contents[index]):
            log.add("alternate", index)
        calls = [(at, call) for at, part in enumerate(own) if (call := call_of(part)) is not None]
        if is_model(contents[index]):
            if calls and is_model(before):
                log.add("call-order", index, calls[0][0])
            if calls and index > newest_asked and not any(_is_signed(part) for part in own):
                log.add("signature", index, calls[0][0])
            answered = parts[index + 1] if index + 1 < len(parts) else ()
            _unanswered(
                index, calls, [r for part in answered if (r := response_of(part)) is not None], log, index == last_open
            )
            continue
        taken_by = _responses(index, parts, taken_by, log, is_model(before))


def _unanswered(index: int, calls: Sequence[tuple[int, Raw]], given: Sequence[Raw], log: Log, is_open: bool) -> None:  # noqa: FBT001
    waiting = [(response.get("id"), response.get("name")) for response in given]
    for at, call in calls:
        answer = (call.get("id"), call.get("name"))
        found = (
            answer
            if answer in waiting
            else next((w for w in waiting if w[1] == answer[1] and None in (w[0], answer[0])), None)
        )
        if found is None:
            log.add("open" if is_open else "unanswered", index, at, detail=shown(call.get("name")))
        else:
            waiting.remove(found)


def _responses(index: int, parts: Sequence[Sequence[Any]], taken_by: int, log: Log, follows_model: bool) -> int:  # noqa: FBT001
    """Look at the responses of a content of the user; the place of the content that last held any, or -1."""
    own = parts[index]
    given = [at for at, part in enumerate(own) if response_of(part) is not None]
    if not given:
        return -1
    if len(given) < len(own):
        log.add("mixed", index, given[0])
    calls = [part for part in parts[index - 1] if call_of(part) is not None] if follows_model else []
    if not calls:
        rule = "split" if taken_by == index - 1 and taken_by >= 0 else "orphan"
        for at in given:
            log.add(rule, index, at)
    else:
        for at in given[len(calls) :]:
            log.add("response-twice", index, at)
    return index


def _last_calls(contents: Sequence[Any], parts: Sequence[Sequence[Any]]) -> int:
    """The model's last content, if nothing but responses follows it; -1 where it is not so."""
    last = next((at for at in range(len(contents) - 1, -1, -1) if is_model(contents[at])), -1)
    following = [part for own in parts[last + 1 :] for part in own]
    return last if all(response_of(part) is not None for part in following) else -1


def _newest_asked(contents: Sequence[Any], parts: Sequence[Sequence[Any]]) -> int:
    """The last content in which the user spoke."""
    for at in range(len(contents) - 1, -1, -1):
        if not is_model(contents[at]) and any(response_of(part) is None for part in parts[at]):
            return at
    return -1


def _is_signed(part: object) -> bool:
    return isinstance(part, OBJECT) and bool(part.get("thoughtSignature") or part.get("thought_signature"))
