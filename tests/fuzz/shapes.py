"""What the Messages API says of the fields of a block: our own reading of its reference, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.service.validating import Validation
from mcp_compact.transcripts.validity.rules import REFUSED
from tests.problems import problems

TEXTS = {
    "text": ("text",),
    "thinking": ("thinking",),
    "redacted_thinking": ("data",),
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use"), ("id", "name")),
    "tool_result": ("tool_use_id",),
}
"""The fields of a block that are texts."""
IN_RESULTS = ("text", "image", "document", "search_result", "tool_reference")

OF_ONE_SIDE = {
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use", "thinking", "redacted_thinking"), "assistant"),
    **dict.fromkeys(("web_search_tool_result", "mcp_tool_result"), "assistant"),
    "tool_result": "user",
}
"""Who may say it."""


def check(messages: Sequence[dict[str, Any]]) -> None:
    """Raises AssertionError for the first thing that makes the messages no valid request."""
    found = misshapen(messages) or problems(messages)
    if found:
        raise AssertionError(found[0])


def check_refused(found: Validation) -> None:
    """The same by the product's own rules, of any provider."""
    refused = [finding for finding in found.findings if finding.severity == REFUSED]
    if refused:
        raise AssertionError(f"{found.provider}: {refused[0].text}")


def misshapen(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields that hold what no provider takes."""
    return [problem for message in messages for problem in _of_message(message)]


def _of_message(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("role") not in ("user", "assistant"):
        yield f"role {message.get('role')!r}"
    content = message.get("content")
    if isinstance(content, list):
        for block in content:
            yield from _of_block(block)
            kind = block.get("type") if isinstance(block, Mapping) else None
            if isinstance(kind, str) and kind in OF_ONE_SIDE and OF_ONE_SIDE[kind] != message.get("role"):
                yield f"{kind} of the {message.get('role')}"
    elif not isinstance(content, str):
        yield f"content is {type(content).__name__}"


def _of_block(block: object) -> Iterator[str]:
    if not isinstance(block, Mapping):
        yield f"a block is {type(block).__name__}"
        return
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        yield f"type {kind!r:.40}"
        return
    yield from _texts(block, *TEXTS.get(kind, ()))
    match kind:
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            if not isinstance(block.get("input"), Mapping):
                yield f"input is {type(block.get('input')).__name__}"
        case "tool_result":
            yield from _of_result(block)
        case "image" | "document":
            if not isinstance(block.get("source"), Mapping) or not isinstance(block["source"].get("type"), str):
                yield "a medium without a source"


def _of_result(block: Mapping[str, Any]) -> Iterator[str]:
    content = block.get("content")
    if isinstance(content, list):
        for part in content:
            if not isinstance(part, Mapping) or part.get("type") not in IN_RESULTS:
                yield f"a result holds {part!r:.60}"
            else:
                yield from _of_block(part)
    elif content is not None and not isinstance(content, str):
        yield f"a result's content is {type(content).__name__}"


def _texts(block: Mapping[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        if not isinstance(block.get(name), str):
            yield f"{name} of {block.get('type')} is {type(block.get(name)).__name__}"
