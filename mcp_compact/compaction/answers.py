"""Is an answer a usable summary? What is not is refused with a reason, and nothing is written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from mcp_compact.messages.blocks import Block, TextBlock, ThinkingBlock, ToolUseBlock, parse_content
from mcp_compact.messages.masking import masked

GOOD_ENDS = ("", "endturn", "stop", "stopsequence", "completed")
"""How answers end, in small letters and without the `_` that some put into these words and others do not."""
CUT_OFF = ("maxtokens", "length", "modelcontextwindowexceeded", "incomplete")
TOOL_ENDS = ("tooluse", "toolcalls")
SHINGLE_WORDS = 8
ERROR_CHARS = 600
"""An error text is short; a long answer that begins with the word is none."""

_ERROR = re.compile(
    r"\s*(?:\{\s*\"(?:type|error)\"\s*:\s*(?:\"error\"|\{)|(?:api |request |internal |server )*error\b"
    r"|prompt is too long"
    r"|(?:request )?timed? ?out|rate limit|overloaded|an error occurred|failed to generate)",
    re.IGNORECASE,
)

_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
"""Thinking that some models write into the text, before what they say."""
_KINDS = ("text", "thinking", "redacted_thinking", "tool_use")


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    """What a writer gave: text or content blocks, and how it ended."""

    content: object
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why an answer is no summary: a stable reason, and what was seen."""

    reason: str
    detail: str


def usable_text(answer: SummaryAnswer, prompt: str) -> str | Refused:
    """The text of a summary, keys and tokens masked, or why the answer is none."""
    blocks = parse_content(_unwrapped(answer.content))
    text = _text(blocks)
    ending = answer.stop_reason.lower().replace("_", "")
    if any(isinstance(block, ToolUseBlock) for block in blocks) or ending in TOOL_ENDS:
        return Refused("tool_call", "the writer called a tool instead of writing")
    if ending in CUT_OFF:
        return Refused("cut_off", f"the writer stopped early ({answer.stop_reason})")
    if ending not in GOOD_ENDS:
        return Refused("refused", f"the writer ended with {answer.stop_reason[:40]!r}")
    if not text.strip():
        thinking = any(
            isinstance(b, ThinkingBlock) or (isinstance(b, TextBlock) and _THINKING.match(b.text)) for b in blocks
        )
        return Refused("thinking_only" if thinking else "blank", "the answer holds no text")
    if len(text) < ERROR_CHARS and _ERROR.match(text):
        return Refused("error_text", "the answer is an error message")
    if copied_share(text, prompt) >= 0.5:  # noqa: PLR2004 - half of it
        return Refused("copy_of_prompt", "half or more of the answer is the prompt")
    return masked(text)


def _unwrapped(content: object) -> object:
    """The blocks where somebody handed in their JSON as text; else the content itself."""
    if not isinstance(content, str) or not content.lstrip().startswith(("[", "{")):
        return content
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content
    items = value if isinstance(value, list) else [value]
    return items if items and all(isinstance(item, dict) and item.get("type") in _KINDS for item in items) else content


def _text(blocks: tuple[Block, ...]) -> str:
    """The text without thinking; the part inside `<summary>` where the writer marked one."""
    text = _THINKING.sub("", "\n".join(block.text for block in blocks if isinstance(block, TextBlock)))
    start = text.find("<summary>")
    if start < 0:
        return text.strip()
    end = text.find("</summary>", start)
    return text[start + len("<summary>") : end if end >= 0 else len(text)].strip()


def copied_share(text: str, source: str) -> float:
    """The share of a text's runs of eight words that stand in the source."""
    own, other = _shingles(text), _shingles(source)
    return len(own & other) / len(own) if own else 0.0


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return {tuple(words[at : at + SHINGLE_WORDS]) for at in range(max(0, len(words) - SHINGLE_WORDS + 1))}
