"""What the demo looks for: words and results that left a context, chosen from the data itself."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp_compact.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock, parse_content
from mcp_compact.messages.codec import well_formed

Messages = Sequence[Mapping[str, Any]]

IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{7,47}\b", re.ASCII)
TELLING = re.compile(r"error|fail|exception|assert|warning|must|never|because", re.IGNORECASE)
LETTERS = 0.8
"""Share of letters in a name; hashes have fewer."""
LONGEST_RESULT = 200_000
"""Characters of a result that the demo fetches."""


def forgotten_words(before: Messages, after: Messages, most: int) -> list[str]:
    """Identifiers that stood in the context and no longer do: rare ones, from telling lines first."""
    kept = "\n".join(texts_of(after)).lower()
    numbers: Counter[str] = Counter()
    telling: dict[str, bool] = {}
    for text in texts_of(before):
        for line in text.splitlines():
            found = IDENTIFIER.findall(line)
            numbers.update(found)
            if found:
                hot = TELLING.search(line) is not None
                telling.update({word: telling.get(word, False) or hot for word in found})
    gone = [word for word in numbers if _is_distinctive(word) and word.lower() not in kept]
    return sorted(gone, key=lambda word: (not telling[word], numbers[word], -len(word), word))[:most]


def _is_distinctive(word: str) -> bool:
    """A name of code (a_b, aB), no word of a language and no hash or encoded data."""
    inner = word.strip("_")
    is_compound = "_" in inner or any(map(str.isupper, inner[1:]))
    letters = sum(char.isalpha() for char in inner)
    return is_compound and not inner.isupper() and letters >= len(inner) * LETTERS


def texts_of(messages: Messages) -> Iterator[str]:
    """Every text that a model reads in these messages."""
    for message in messages:
        yield from _texts(parse_content(message.get("content")))


def _texts(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextBlock():
                yield block.text
            case ToolResultBlock():
                yield from _texts(block.parts)
            case ToolUseBlock():
                yield json.dumps(block.input, ensure_ascii=False)
            case _:
                pass


def left_result(before: Messages, after: Messages) -> str:
    """The id of the largest result (up to a size) that was in the context and is not, or is cleared; else empty."""
    kept = {block.tool_use_id for block in results_of(after) if not block.cleared}
    sizes: Counter[str] = Counter()
    for block in results_of(before):
        if block.tool_use_id not in kept:
            sizes[block.tool_use_id] += len(block.text)
    fitting = [(size, name) for name, size in sizes.items() if 0 < size <= LONGEST_RESULT]
    return max(fitting)[1] if fitting else ""


def results_of(messages: Messages) -> Iterator[ToolResultBlock]:
    """The tool results of messages."""
    for message in messages:
        for block in parse_content(message.get("content")):
            if isinstance(block, ToolResultBlock) and not block.server:
                yield block


def result_in_file(path: Path, call_id: str) -> str | None:
    """The text of a call's result as the transcript itself has it, read without our importer; None if it is not there.

    Lone surrogates, which cannot be sent, are replaced as they are in every answer.
    """
    mark = json.dumps(call_id).encode()
    with path.open("rb") as stream:
        for line in stream:
            if mark in line and b"tool_result" in line:
                found = _result_text(_parsed(line), call_id)
                if found is not None:
                    return found
    return _result_text(_parsed(path.read_bytes()), call_id)


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _result_text(value: object, call_id: str) -> str | None:
    """Searches any JSON for the result of a call."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if item.get("tool_use_id") == call_id and item.get("type") == "tool_result":
                return _joined(item.get("content"))
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return None


def _joined(content: object) -> str:
    if isinstance(content, str):
        return well_formed(content)
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | dict)]
    return well_formed("\n".join(text for text in texts if isinstance(text, str)))
