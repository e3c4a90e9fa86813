"""In and out again in the same format: a provider sees the same, whatever a valid list of its messages holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.validity.providers import findings, repaired
from mcp_compact.transcripts.validity.rules import refused
from tests.transcripts.exporting import dialogue, sent
from tests.transcripts.validity.lists import LISTS

FORMATS = {out.provider: out.name for out in OUTS.values() if out.provider}

OPENERS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"role": "user", "content": "go"}],
    "openai-chat": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "go"}],
    "openai-responses": [{"role": "user", "content": "go"}],
    "gemini": [{"role": "user", "parts": [{"text": "go"}]}],
}
"""A conversation that does not begin with the user is opened by a message of ours."""


def seen(provider: str, messages: list[dict[str, Any]]) -> list[Any]:
    """What a provider makes of messages: neighbours of one role are one, text alone is a block, blanks say nothing."""
    if provider == "openai-responses":
        return _answered(_led_on([told for item in messages if (told := _item(item))]))
    if provider == "openai-chat":
        return [told for message in messages if (told := _message(message))]
    key = "content" if provider == "anthropic" else "parts"
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        if message.get("role") == "system":
            continue  # instructions stand outside of the list
        role = "user" if message.get("role", "user") in ("user", "function") else message["role"]
        content = message[key]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for block in blocks if not _is_blank(block)]
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    if turns and turns[-1][0] == "assistant" and "text" in turns[-1][1][-1]:
        # The end of a last answer is not read.
        turns[-1][1][-1] = {**turns[-1][1][-1], "text": turns[-1][1][-1]["text"].rstrip()}
    return [[role, blocks] for role, blocks in turns]


def _is_blank(block: Mapping[str, Any]) -> bool:
    text = block.get("text")
    return isinstance(text, str) and not text.strip() and set(block) <= {"type", "text"}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if not _is_blank(part)]
        if all(part.get("type") == "text" for part in content):
            content = "\n\n".join(part["text"] for part in content)
    elif isinstance(content, str) and not content.strip():
        content = None
    told = {key: value for key, value in message.items() if key != "content" and value not in (None, [])}
    told |= {"content": content} if content else {}
    return told if set(told) - {"role", "name"} else {}


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Ids are the provider's own names for what stands here whole."""
    told = {key: value for key, value in item.items() if key not in ("id", "status")}
    if told.get("type", "message") != "message":
        return told
    content = told["content"]
    if isinstance(content, list) and all(part.get("type") in ("output_text", "input_text") for part in content):
        content = "\n\n".join(part["text"] for part in content if part["text"].strip())
    return {"role": told["role"], "content": content} if not isinstance(content, str) or content.strip() else {}


def _led_on(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the reasoning that led to an answer of blanks, which says nothing and goes."""
    after = [*items[1:], {"role": "user"}]
    return [
        item
        for item, following in zip(items, after, strict=True)
        if item.get("type") != "reasoning" or following.get("role", "assistant") == "assistant"
    ]


def _answered(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs right behind their calls: this API takes them anywhere after these."""
    outputs = {item["call_id"]: item for item in items if str(item.get("type")).endswith("_output")}
    rest = [item for item in items if not str(item.get("type")).endswith("_output")]
    return [each for item in rest for each in (item, outputs.get(item.get("call_id"))) if each]


def _names(value: object) -> list[str]:
    """The ids of the calls in messages."""
    if isinstance(value, list):
        return [name for item in value for name in _names(item)]
    if not isinstance(value, Mapping):
        return []
    own = [str(value[key]) for key in ("id", "call_id") if key in value and ("name" in value or "function" in value)]
    own = own if "response" not in value else []
    return own + [name for item in value.values() if isinstance(item, list | Mapping) for name in _names(item)]


def _are_named(contents: list[dict[str, Any]]) -> bool:
    """Has every response the id of its call, or both none?"""
    parts = [part for content in contents for part in content["parts"]]
    calls = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
    return calls == [part["functionResponse"].get("id") for part in parts if "functionResponse" in part]


@pytest.mark.parametrize("provider", tuple(LISTS))
@given(data=st.data())
@settings(max_examples=60)
def test_a_valid_list_goes_in_and_comes_out_as_its_provider_saw_it(provider: str, data: st.DataObject):
    messages = repaired(provider, [*OPENERS[provider], *data.draw(LISTS[provider])]).messages
    # Two calls of one id are told apart by their places in some APIs, and by nothing in others.
    # What is not known is kept in the archive and not sent; two answers in a row stay two.
    assume(not any(finding.rule.endswith("/kind") for finding in findings(provider, messages)))
    roles = [message.get("role") for message in messages if message.get("role") != "system"]
    assume(provider != "anthropic" or ("assistant", "assistant") not in pairwise(roles))
    # A call of a server's that ends the list is quoted: what comes next is not known.
    assume("server_tool_use" not in json.dumps(messages[-1]))
    assume(provider != "gemini" or _are_named(messages))
    assume(len(set(_names(messages))) == len(_names(messages)))
    found = dialogue(json.dumps(messages).encode(), FORMATS[provider])
    out = sent(found, FORMATS[provider]) if found else []
    if found:
        assert seen(provider, out) == seen(provider, messages)
        assert not out or not refused(findings(provider, out))
