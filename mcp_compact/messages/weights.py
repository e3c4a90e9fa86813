"""What content weighs, in integer units that never change; a model family turns them into tokens.

1,000 units are one token of the o200k vocabulary, counted or estimated. Factors per family,
the overhead of each tool call and media are applied when a weight is read, so a stored
number stays right when a session changes its model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TypeAlias

from mcp_compact.messages.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    parse_content,
)
from mcp_compact.messages.image_header import image_size
from mcp_compact.messages.json_writer import writer
from mcp_compact.messages.values import value

UNITS_PER_TOKEN = 1000
ASCII_UNITS = 293
"""Per character: English code sessions have 3.4 characters a token."""
BYTE_UNITS = 250
"""Per UTF-8 byte of any other character: a CJK character (3 bytes) is 0.75 tokens."""
SIGNATURE_UNITS = 230
"""Per character of a signature whose thinking text is hidden (0.16 to 0.29 were measured)."""

UNKNOWN_MEDIA_TOKENS = 2000
IMAGE_PATCH = 28
IMAGE_LONG_EDGE = 1568
IMAGE_MAX_TOKENS = 1568
"""Claude: a patch of 28 x 28 pixels is a token, after scaling down to this edge and number."""

CountUnits = Callable[[Sequence[str]], Sequence[int]]
"""Texts to units, one number a text."""


@value
class Weight:
    """Additive weight of a record, a block or a list of records."""

    units: int = 0
    results: int = 0
    """Answered calls: each costs a family's `per_result` tokens beside its text."""
    media: int = 0
    """Tokens of images and documents; no factor applies."""
    messages: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.units + other.units,
            self.results + other.results,
            self.media + other.media,
            self.messages + other.messages,
        )

    def __sub__(self, other: Weight) -> Weight:
        return Weight(
            self.units - other.units,
            self.results - other.results,
            self.media - other.media,
            self.messages - other.messages,
        )


NOTHING = Weight()


def total_weight(weights: Sequence[Weight]) -> Weight:
    """The sum of many weights, without a new one for each step."""
    return Weight(
        sum([weight.units for weight in weights]),
        sum([weight.results for weight in weights]),
        sum([weight.media for weight in weights]),
        sum([weight.messages for weight in weights]),
    )


@dataclass(frozen=True, slots=True)
class Family:
    """How a family of models counts: factor on the units in thousandths, tokens a result, tokens a message."""

    name: str
    permille: int
    per_result: int
    per_message: int = 0
    known: bool = True

    def tokens(self, weight: Weight) -> int:
        """Tokens of a weight, rounded up."""
        scaled = weight.units * self.permille
        text = -(-scaled // (UNITS_PER_TOKEN * 1000))
        return text + weight.results * self.per_result + weight.media + weight.messages * self.per_message

    def frees(self, weight: Weight) -> bool:
        """Does leaving out a weight (which may hold negative parts) save a token at least?"""
        tokens = weight.media + weight.results * self.per_result + weight.messages * self.per_message
        return weight.units * self.permille + tokens * UNITS_PER_TOKEN * 1000 >= UNITS_PER_TOKEN * 1000

    def units(self, tokens: int) -> int:
        """Units of text that fit into so many tokens."""
        return max(0, tokens) * UNITS_PER_TOKEN * 1000 // self.permille


CLAUDE = Family("claude", 1146, 89)
"""Claude 3 to 4.6: o200k x 1.146 and 89 a call errs 3.5 % (median) over 40,000 tokens of real sessions."""
CLAUDE_NEW = Family("claude-4.7+", 1460, 75)
"""Claude 4.7 and later have another vocabulary, about 1.46 x o200k."""
OPENAI = Family("openai", 1000, 0, 4)
GEMINI = Family("gemini", 1080, 0)
UNKNOWN = Family("unknown", 1200, 0, known=False)


def family_of(model: str | None) -> Family:
    """The family of a model's name; `UNKNOWN` (x 1.2) where none fits."""
    name = (model or "").lower()
    if "claude" in name:
        return CLAUDE_NEW if _claude_version(name) >= (4, 7) else CLAUDE
    if name.startswith(("gpt", "o1", "o3", "o4", "chatgpt", "codex", "openai")):
        return OPENAI
    return GEMINI if "gemini" in name else UNKNOWN


_CLAUDE_VERSION = re.compile(r"claude[^0-9]*([0-9]{1,2})(?:[-.]([0-9]{1,2}))?(?![0-9])")
"""The first number after the name and, of one or two digits, the one after it: dates and revisions are none."""


def _claude_version(name: str) -> tuple[int, int]:
    found = _CLAUDE_VERSION.search(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def estimate_units(text: str) -> int:
    """Units of a text without a tokenizer: by its characters. Never raises."""
    if text.isascii():
        return len(text) * ASCII_UNITS
    ascii_chars = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "surrogatepass")) - ascii_chars
    return ascii_chars * ASCII_UNITS + other_bytes * BYTE_UNITS


def estimate_all(texts: Sequence[str]) -> list[int]:
    """`estimate_units` of each text: the counter that is always there."""
    return [len(text) * ASCII_UNITS if text.isascii() else estimate_units(text) for text in texts]


Mark: TypeAlias = tuple[int, int, int, int]
"""How far a `Countable` had come: number of texts, and the sums beside them: units, results, media.

Two of them bound what stands between.
"""


@dataclass(slots=True)
class Countable:
    """The texts of blocks that a model is sent, and sums of the weight that is no text.

    Copies that a transcript keeps beside the content, envelopes and base64 are not among them.
    """

    texts: list[str] = field(default_factory=list)
    units: int = 0
    results: int = 0
    media: int = 0

    def add(self, blocks: Sequence[Block]) -> None:
        """Go on with some blocks."""
        for block in blocks:
            if isinstance(block, TextBlock):
                self.texts.append(block.text)
            elif isinstance(block, ToolResultBlock):
                self.results += 1
                self.add(block.parts)
            elif isinstance(block, ToolUseBlock):
                self.texts += (block.name, json_text(block.input))
            elif isinstance(block, ThinkingBlock):
                self._add_thinking(block)
            elif isinstance(block, MediaBlock):
                self.media += media_tokens(block)
            else:
                self.texts.append(json_text(block.raw))

    def _add_thinking(self, block: ThinkingBlock) -> None:
        if block.text:
            self.texts.append(block.text)
        else:
            self.units += len(block.signature) * SIGNATURE_UNITS

    def mark(self) -> Mark:
        """How far it has come."""
        return len(self.texts), self.units, self.results, self.media


def countable(blocks: Sequence[Block]) -> tuple[list[str], Weight]:
    """The texts of some blocks that a model is sent, and the weight that is no text."""
    found = Countable()
    found.add(blocks)
    return found.texts, Weight(found.units, found.results, found.media)


def weigh(messages: Sequence[Sequence[Block]], count: CountUnits = estimate_all) -> list[Weight]:
    """The weight of each message, given by its blocks; all texts go to the counter at once."""
    texts: list[str] = []
    parts: list[tuple[int, Weight]] = []
    for blocks in messages:
        own, rest = countable(blocks)
        texts += own
        parts.append((len(own), rest))
    units = count(texts)
    weights, at = [], 0
    for number, rest in parts:
        weights.append(rest + Weight(units=sum(units[at : at + number]), messages=1))
        at += number
    return weights


def media_tokens(block: MediaBlock) -> int:
    """Tokens of an image by its size, of a document that is text by its text, of anything else a fixed 2,000."""
    if block.kind == "document" and (inner := _document_parts(block)):
        texts, rest = countable(inner)
        return max(1, ceil(sum(estimate_all(texts)) / UNITS_PER_TOKEN) + rest.media)
    size = image_size(block.data, block.media_type) if block.kind == "image" and block.data else None
    return image_tokens(*size) if size else UNKNOWN_MEDIA_TOKENS


def media_bytes(block: MediaBlock) -> int:
    """What an image or document takes in a request: base64 as it stands, or its text; 0 for an address or a file."""
    if block.data:
        return len(block.data)
    inner = _document_parts(block)
    texts = sum(len(part.text.encode("utf-8", "surrogatepass")) for part in inner if isinstance(part, TextBlock))
    return texts + sum(media_bytes(part) for part in inner if isinstance(part, MediaBlock))


def _document_parts(block: MediaBlock) -> tuple[Block, ...]:
    """What a document holds in plain sight: a text, or blocks; nothing for a file."""
    match block.raw.get("source"):
        case {"type": "text", "data": str(text)}:
            return parse_content(text)
        case {"type": "content", "content": inner}:
            return parse_content(inner)
        case _:
            return ()


def image_tokens(width: int, height: int) -> int:
    """Tokens of an image of so many pixels, scaled down first where it is too large."""
    scale = min(1.0, IMAGE_LONG_EDGE / max(width, height, 1))
    patches = ceil(width * scale / IMAGE_PATCH) * ceil(height * scale / IMAGE_PATCH)
    return max(1, min(patches, IMAGE_MAX_TOKENS))


json_text = writer(default=str)
"""JSON as it is counted: no blanks, nothing escaped that need not be."""
