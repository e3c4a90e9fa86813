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
BESIDE_CALL_CHARS = 200
"""So much text beside a call is an announcement of it; a summary that quotes a call is longer."""
REFUSAL_CHARS = 1_200
"""A refusal is short, with reasons and offers too, and has no headings; what is longer is about something."""

_ERROR = re.compile(
    r"\s*(?:\{\s*\"(?:type|error)\"\s*:\s*(?:\"error\"|\{)|(?:api |request |internal |server )*error\b"
    r"|prompt is too long"
    r"|(?:request )?timed? ?out|rate limit|overloaded|an error occurred|failed to generate)",
    re.IGNORECASE,
)

_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
"""Thinking that some models write into the text, before what they say."""
_CALL_AS_TEXT = re.compile(
    r"^[ \t]*<(?P<name>(?:antml:)?(?:tool_use|tool_calls?|function_calls?|invoke|function))(?=[\s>=/])"
    r".*?(?:</(?P=name)>|\Z)|^[ \t]*(?:<\|tool_calls?(?:_begin)?\|>|\[TOOL_CALLS?\]).*",
    re.DOTALL | re.MULTILINE,
)
"""Calls as models write them where they are offered no tools."""
_ARGUMENTS = {"arguments", "parameters", "input"}
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s|\d+\.\s|\*\*[^*\n]+\*\*:?\s*$)", re.MULTILINE)
_REFUSAL = re.compile(
    r"\W*(?:(?:oh|ok|okay|well|hello|hi|thank you|thanks)\b[^.!?\n]{0,60}[.!,]\s+)?(?:(?:i['’]?m|i am|we are|we['’]re) "  # noqa: RUF001
    r"(?:(?:very|so|really|truly) )?(?:sorry|afraid|unable|not able|not comfortable|not allowed)|"
    r"(?:my )?(?:sincere )?apologies|sorry\b|"
    r"(?:i|we) (?:can['’]?t|can ?not|could not|couldn['’]t|won['’]t|will not|must (?:respectfully )?decline|"  # noqa: RUF001
    r"have to decline|am going to decline|apologi[sz]e|refuse|do not (?:have|see)|don['’]t (?:have|see))|"  # noqa: RUF001
    r"unfortunately,? (?:i|we)\b|as an ai\b|(?:this|that|your) request (?:cannot|can['’]t|violates|goes against)|"  # noqa: RUF001
    r"there (?:is|are|was) (?:no|nothing)\b[^.\n]{0,60}(?:summar|conversation|transcript)|"
    r"(?:please|could you|can you)\b[^.\n]{0,40}\b(?:provide|share|paste|send)|"
    r"(?:es )?tut mir leid|entschuldigung|ich kann (?:das |dies |diese |leider |hier )*(?:nicht|kein)|leider kann ich|"
    r"je suis désolé|désolé|je ne (?:peux|suis)|lo siento|no puedo|desculpe|não posso|mi dispiace|non posso|"
    r"извините|к сожалению|я не могу|抱歉|对不起|對不起|很遗憾|我无法|我不能|申し訳|すみません|죄송)",
    re.IGNORECASE,
)
"""How models decline, at the beginning of what they say."""
_SAYS_NOTHING = re.compile(
    r"\W*(?:done|ok(?:ay)?|sure|certainly|understood|got it|of course|absolutely|here (?:is|it is|you go)|"
    r"(?:the |your )?(?:summary|conversation|context|session) (?:has been|is now|was|is) (?:now )?(?:successfully )?"
    r"(?:summari[sz]ed|compacted|written|ready|complete|done)|i(?:['’]ve| have) (?:now )?(?:summari[sz]ed|compacted))"  # noqa: RUF001
    r"\b[^\n]{0,120}\Z",
    re.IGNORECASE,
)
"""That it was done, in place of what was asked for."""
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
    if (refused := _no_summary(text)) is not None:
        return refused
    if copied_share(text, prompt) >= 0.5:  # noqa: PLR2004 - half of it
        return Refused("copy_of_prompt", "half or more of the answer is the prompt")
    return masked(text)


def _no_summary(text: str) -> Refused | None:
    """What is said in place of a summary: a call in the form of text, a polite refusal, next to nothing."""
    beside = _CALL_AS_TEXT.sub("", text).strip()
    if _is_json_call(text) or (beside != text and len(beside) < BESIDE_CALL_CHARS):
        return Refused("tool_call", "the writer wrote a call of a tool as text")
    if len(text) < REFUSAL_CHARS and not _HEADING.search(text) and _REFUSAL.match(text):
        return Refused("refused", "the writer declined to write a summary")
    if _SAYS_NOTHING.match(text):
        return Refused("too_short", "the writer says that it is done, and nothing else")
    return None


def _is_json_call(text: str) -> bool:
    """Is the whole of it a call as JSON, bare or in a code block? Nothing else has a name and arguments."""
    bare = text.strip().removeprefix("```json").strip("`\n ")
    if not bare.startswith(("{", "[")):
        return False
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return False
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(item, dict) and isinstance(item.get("name"), str) and _ARGUMENTS & item.keys() for item in items
    )


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
