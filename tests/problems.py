"""What makes a list of messages no valid request: our own reading of the Messages API's rules, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def problems(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The rules that the messages break, after neighbours of one role were merged; an open last call is none."""
    found: list[str] = []
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if not blocks:
            found.append("a message without content")
        found += ["empty text" for block in blocks if block.get("type") == "text" and not block["text"].strip()]
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], blocks))
    if turns and turns[0][0] != "user":
        found.append("the first message is not the user's")
    return found + _pairs(turns)


def _pairs(turns: list[tuple[str, list[dict[str, Any]]]]) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for at, (role, blocks) in enumerate(turns):
        calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        found += [f"call {call} twice" for call in calls if call in seen or calls.count(call) > 1]
        seen.update(calls)
        following = _results(turns[at + 1][1]) if at + 1 < len(turns) else None
        if role == "assistant" and following is not None:
            is_last = at + 2 == len(turns) and all(b.get("type") == "tool_result" for b in turns[at + 1][1])
            found += [f"call {call} unanswered" for call in calls if call not in following and not is_last]
        if role == "user":
            asked = [b["id"] for b in turns[at - 1][1] if b.get("type") == "tool_use"] if at else []
            found += [f"result {call} without call" for call in _results(blocks) if call not in asked]
            found += [f"result {call} twice" for call in set(_results(blocks)) if _results(blocks).count(call) > 1]
            kinds = [block.get("type") == "tool_result" for block in blocks]
            found += ["a result after other content"] if kinds != sorted(kinds, reverse=True) else []
        servers = {b["id"] for b in blocks if b.get("type") in ("server_tool_use", "mcp_tool_use")}
        answered = {
            b["tool_use_id"]
            for b in blocks
            if str(b.get("type")).endswith("_tool_result") and b.get("type") != "tool_result"
        }
        found += [f"server call or result {half} alone" for half in servers ^ answered]
    return found


def _results(blocks: Sequence[dict[str, Any]]) -> list[str]:
    return [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
