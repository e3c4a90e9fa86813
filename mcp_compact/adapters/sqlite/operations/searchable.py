"""Texts for the search: what of a record can be read, and whether the words of a query stand in it.

Words are literal: `foo/bar.py`, `it's` or `#12` must occur as they are, in any case of letters, and not inside
of a longer word. Scripts that are written without spaces (Chinese, Japanese, Thai, ...) are indexed character
by character, and their words may stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_compact.messages.blocks import (
    Block,
    MediaBlock,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.masking import all_masked, masked
from mcp_compact.messages.message import Record

SNIPPET_CHARS = 200
MASKED_CHARS = 4_000
"""So far on both sides of a snippet a key may reach that goes over several lines."""
WORD_CHARS = 120
"""And so far on both sides is looked for words that tell that what stands beside them is a key."""
OPAQUE_CHARS = 1000
"""Longer text without a blank is data (base64), no reading matter."""
PHRASE_CHARS = 200
PHRASES = 32
"""The index is asked for so much of a query at most; the rest is checked in the text."""
_ENVELOPE = frozenset({
    "uuid", "parentUuid", "logicalParentUuid", "sessionId", "session_id", "timestamp", "version", "cwd", "gitBranch",
    "type", "userType", "requestId", "toolUseResult", "isSidechain", "isMeta", "level",
})  # fmt: skip
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u303b\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_KNOWN = re.compile(
    "[0-9A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0388-\u038a\u038e-\u03a1\u03a3-\u03ce\u0400-\u0481\u048a-\u0527"
    "\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3]"
)
"""Characters that every release of the index takes for parts of words."""


def readable(record: Record) -> str:
    """Everything of a record that can be read: text, thinking, calls with their inputs, results."""
    return _joined(_of_blocks(record.blocks) if record.message is not None else _flat(_without_envelope(record.raw)))


def readable_content(content: object) -> str | None:
    """`readable` of a message by its content as JSON, where that is of a few plain kinds; None where it is not."""
    parts: list[str] = []
    return _joined(parts) if _take_plain(content, parts) else None


def _take_plain(content: object, parts: list[str]) -> bool:
    if isinstance(content, str):
        parts.append(content)
        return True
    return isinstance(content, list) and all(isinstance(item, dict) and _take_block(item, parts) for item in content)


def _take_block(item: dict[str, object], parts: list[str]) -> bool:
    match item.get("type"):
        case "text":
            said = item.get("text")
            parts.append(said if isinstance(said, str) else "")
            return isinstance(said, str)
        case "tool_use" if item.get("id"):
            name = item.get("name")
            parts.append(name if isinstance(name, str) else "")
            parts.extend(_flat(item.get("input")))
            return True
        case "tool_result" if item.get("tool_use_id"):
            return _take_plain(item.get("content"), parts)
    return False


def _joined(parts: Iterable[str]) -> str:
    return well_formed("\n".join([part for part in parts if part and not _is_opaque(part)]))


def _of_blocks(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextBlock() | ThinkingBlock():
                yield block.text
            case ToolUseBlock():
                yield block.name
                yield from _flat(block.input)
            case ToolResultBlock():
                yield from _of_blocks(block.parts)
            case MediaBlock():
                yield from _flat({key: value for key, value in block.raw.items() if key in ("title", "context")})
            case OtherBlock():
                yield from _flat(_without_envelope(block.raw))


def _without_envelope(raw: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in raw.items() if key not in _ENVELOPE}


def _flat(value: object) -> Iterator[str]:
    """The texts and numbers of a JSON value, keys included, in order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += [part for key in reversed(list(item)) for part in (item[key], key)]
        elif isinstance(item, Sequence) and not isinstance(item, str | bytes):
            waiting += reversed(item)
        elif isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)


def _is_opaque(text: str) -> bool:
    return len(text) > OPAQUE_CHARS and text.isascii() and not re.search(r"\s", text[:OPAQUE_CHARS])


def for_index(text: str) -> str:
    """The text as the index takes it: in small letters, each character of a spaceless script a word, NUL a blank.

    Small already, since the index knows the letters of an older Unicode only.
    """
    return _SPACELESS.sub(r" \g<0> ", text.lower().replace("\0", " "))


@dataclass(frozen=True, slots=True)
class Query:
    """The words of a search, in small letters."""

    words: tuple[str, ...]

    @property
    def expression(self) -> str:
        """What the index is asked for: a phrase a word; empty where it can tell nothing."""
        phrases = [phrase for word in self.words if (phrase := _phrase(word))]
        return " AND ".join(f'"{phrase}"' for phrase in phrases[:PHRASES])

    def find(self, text: str) -> int | None:
        """Where the first of the words stands; None unless all of them do."""
        small, first = text.lower(), None
        for word in self.words:
            place = _place(small, word)
            if place < 0:
                return None
            first = place if first is None or place < first else first
        return first

    def count(self, text: str) -> int:
        """How often the words stand there, all together."""
        small = text.lower()
        return sum(1 for word in self.words for _ in _places(small, word))


def query_of(text: str) -> Query:
    """The words of a search text: what blanks part."""
    return Query(tuple(dict.fromkeys(well_formed(text).lower().replace("\0", " ").split())))


def _phrase(word: str) -> str:
    if len(word) > PHRASE_CHARS:
        # Not in the middle of a word of the index.
        word = word[:PHRASE_CHARS]
        while word and _is_part(word[-1]):
            word = word[:-1]
    return for_index(word).replace('"', '""') if _KNOWN.search(word) else ""


def _places(text: str, word: str) -> Iterator[int]:
    """The places where the word stands by itself."""
    at = _place(text, word)
    while at >= 0:
        yield at
        at = _place(text, word, at + 1)


def _place(text: str, word: str, start: int = 0) -> int:
    """The first such place from `start` on; -1 where there is none."""
    at = text.find(word, start)
    while at >= 0:
        end = at + len(word)
        begins = at == 0 or not (_is_part(text[at - 1]) and _is_part(word[0]))
        if begins and (end == len(text) or not (_is_part(text[end]) and _is_part(word[-1]))):
            break
        at = text.find(word, at + 1)
    return at


def _is_part(char: str) -> bool:
    """Is it part of a word that spaces part from others?"""
    return (char.isalnum() or char == "_") and not _SPACELESS.match(char)


def snippet(text: str, at: int) -> str:
    """About 200 characters around a place, white space pressed together."""
    start = max(0, at - SNIPPET_CHARS // 3)
    end = min(len(text), start + SNIPPET_CHARS)
    cut = " ".join(text[start:end].replace("\0", " ").split())
    return ("…" if start else "") + cut + ("…" if end < len(text) else "")


def masked_snippets(places: Sequence[tuple[str, int]]) -> list[str]:
    """Snippets around places of texts. Keys are masked before they are cut: of half a key nobody could tell."""
    spans = [_span(text, at) for text, at in places]
    near = [text[start:end] for (text, _), (start, end) in zip(places, spans, strict=True)]
    out: list[str] = []
    for (text, at), (start, _), own, shown in zip(places, spans, near, all_masked(near), strict=True):
        out.append(snippet(shown, at - start if shown == own else min(len(shown), len(masked(text[start:at])))))
    return out


def _span(text: str, at: int) -> tuple[int, int]:
    """What of a text is looked through for keys around a place."""
    start, end = max(0, at - MASKED_CHARS), min(len(text), at + MASKED_CHARS)
    if text.find("PRIVATE KEY", start, end) >= 0:
        return start, end
    # All other keys are single words, and what tells of them stands near.
    return _blank_before(text, at - SNIPPET_CHARS, start), _blank_behind(text, at + SNIPPET_CHARS, end)


def _blank_before(text: str, at: int, least: int) -> int:
    """Where a word begins, some words before a place."""
    for _ in range(2):
        at = max(least, at - WORD_CHARS // 2)
        while at > least and not text[at - 1].isspace():
            at -= 1
    return at


def _blank_behind(text: str, at: int, most: int) -> int:
    """Where a word ends, behind a place."""
    at = min(at, most)
    while at < most and not text[at].isspace():
        at += 1
    return at
