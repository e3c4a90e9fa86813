"""Splits a session into the whole lines and sentences that a memory may quote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_compact.compaction.identifiers import identifiers
from mcp_compact.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.message import Record
from mcp_compact.messages.words import typed

USER, ASSISTANT, MEMORY, COMMAND, EDIT, READ, CALL, TODO = (
    "user", "assistant", "memory", "command", "edit", "read", "call", "todo",
)  # fmt: skip
OUTPUT, ERROR, FILE, CHANGED, FOUND, INJECTED = "output", "error", "file", "changed", "found", "injected"
WRITTEN = frozenset((USER, ASSISTANT, COMMAND, EDIT, READ, CALL, TODO))
"""Origins that a person or the model wrote, tools' answers left out."""

FEW_WORDS = 6
"""A line with fewer words says nothing by itself: it is read on into the next ones."""
LONG_LINE = 240
"""Characters; a longer line or sentence is cut into windows at blanks."""
MAX_JOINED = 5
MAX_LINES_PER_BLOCK = 4000

_VIEWER = re.compile(r"[ \t]*(\d{1,7})(?:→|\t)(.*)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？；])")  # noqa: RUF001
_WORD = re.compile(r"\w+(?:[./\-]+\w+)*")
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_RULE = re.compile(r"[\W_]*")


@dataclass(slots=True)
class Line:
    """One line, sentence or window of a long line."""

    text: str
    """As it is quoted: outer white space away."""
    number: str
    """The line number of a file viewer; empty where there is none."""
    words: int
    names: tuple[tuple[str, str], ...]
    clipped: bool = False


@dataclass(slots=True)
class Passage:
    """Consecutive lines of one block of one record."""

    order: int
    """Position of the record among all."""
    origin: str
    label: str
    """The file or command that the lines are about; empty where none is known."""
    lines: list[Line]
    section: str = ""


class Splitter:
    """Lines of texts; equal lines are worked out once."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd.rstrip("/") + "/" if cwd else ""
        self._cache: dict[str, tuple[int, tuple[tuple[str, str], ...]]] = {}

    def lines(self, text: str) -> list[Line]:
        made: list[Line] = []
        for raw in text.splitlines()[:MAX_LINES_PER_BLOCK]:
            number = ""
            body = raw
            if "→" in raw[:12] or "\t" in raw[:12]:
                match = _VIEWER.fullmatch(raw)
                if match:
                    number, body = match[1], match[2]
            body = body.strip()
            if not body:
                continue
            if len(body) > 60 and number == "":
                made.extend(self._pieces(body))
            else:
                words, names = self._facts(body)
                made.append(Line(body, number, words, names))
        return made

    def _pieces(self, body: str) -> Iterator[Line]:
        for sentence in _SENTENCE.split(body):
            if len(sentence) <= LONG_LINE + 60:
                words, names = self._facts(sentence)
                yield Line(sentence, "", words, names)
            else:
                for window in _windows(sentence):
                    words, names = self._facts(window)
                    yield Line(window, "", words, names, clipped=True)

    def _facts(self, text: str) -> tuple[int, tuple[tuple[str, str], ...]]:
        facts = self._cache.get(text)
        if facts is None:
            own = text.replace(self._cwd, "") if self._cwd else text
            words = len(_WORD.findall(text))
            if not text.isascii():
                words += sum(1 for _ in _DENSE.finditer(text)) // 2
            facts = self._cache[text] = (words, tuple(identifiers(own).items()))
        return facts


def _windows(text: str) -> Iterator[str]:
    """Windows of a long line, cut at blanks (or commas), so that no name is cut."""
    at = 0
    while at < len(text):
        if len(text) - at <= LONG_LINE + 60:
            yield text[at:].strip()
            return
        end = text.rfind(" ", at + LONG_LINE // 2, at + LONG_LINE)
        if end < 0:
            end = text.rfind(",", at + LONG_LINE // 2, at + LONG_LINE) + 1
        if end <= 0:
            nxt = [p for p in (text.find(" ", at + LONG_LINE), text.find(",", at + LONG_LINE)) if p >= 0]
            end = min(nxt) + 1 if nxt else len(text)
        piece = text[at:end].strip()
        if piece and len(piece) < 4 * LONG_LINE:
            yield piece
        at = end


COMMAND_TOOLS = ("bash", "shell", "terminal", "exec", "run_command", "execute", "powershell", "cmd")
EDIT_TOOLS = ("edit", "write", "patch", "replace", "notebook", "create", "insert")
READ_TOOLS = ("read", "view", "open", "cat")
FIND_TOOLS = ("grep", "glob", "search", "find", "ls", "list", "web", "fetch")
TODO_TOOLS = ("todo", "task", "plan")


def call_origin(name: str) -> str:
    """The kind of a call by its tool's name, whatever the harness."""
    own = name.lower().rsplit("__", 1)[-1]
    for origin, words in ((TODO, TODO_TOOLS), (COMMAND, COMMAND_TOOLS), (EDIT, EDIT_TOOLS), (READ, READ_TOOLS)):
        if any(word in own for word in words):
            return origin
    return CALL


RESULT_ORIGIN = {COMMAND: OUTPUT, EDIT: CHANGED, READ: FILE, CALL: FOUND, TODO: FOUND}
PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "target_file", "absolute_path", "filePath")


def call_path(input_: object) -> str:
    """The file that a call is about; empty where it names none."""
    if isinstance(input_, Mapping):
        for key in PATH_KEYS:
            value = input_.get(key)
            if isinstance(value, str) and 0 < len(value) < 300 and "\n" not in value:
                return value
    return ""


def strings(value: Any) -> list[str]:
    """All text in a JSON value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [s for item in value.values() for s in strings(item)]
    if isinstance(value, list | tuple):
        return [s for item in value for s in strings(item)]
    return [str(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def passages(records: Sequence[Record], cwd: str, first: int = 0) -> list[Passage]:
    """The quotable passages of message records, old to new; summaries are left to the caller."""
    splitter = Splitter(cwd)
    calls: dict[ToolUseId, tuple[str, str]] = {}
    made: list[Passage] = []
    for order, record in enumerate(records, first):
        for block in record.blocks:
            passage = _passage(order, record, block, calls, splitter, cwd)
            if passage and passage.lines:
                made.append(passage)
    return made


def _passage(order: int, record: Record, block: Block, calls: dict[ToolUseId, tuple[str, str]],
             splitter: Splitter, cwd: str) -> Passage | None:
    match block:
        case TextBlock(text=text) if record.type == "assistant":
            return Passage(order, ASSISTANT, "", splitter.lines(text))
        case TextBlock(text=text):
            if record.is_summary:
                return None
            if record.is_meta:
                return Passage(order, INJECTED, "", splitter.lines(text))
            own = typed(text)
            if own:
                return Passage(order, USER, "", splitter.lines(own))
            return Passage(order, INJECTED, "", splitter.lines(text))
        case ToolUseBlock():
            origin = call_origin(block.name)
            label = _short(call_path(block.input), cwd)
            calls[block.id] = (origin, label)
            return Passage(order, origin, label, splitter.lines(" ".join([block.name, *strings(block.input)])))
        case ToolResultBlock():
            origin, label = calls.get(block.tool_use_id, (CALL, ""))
            kind = ERROR if block.is_error else RESULT_ORIGIN[origin]
            return Passage(order, kind, label, splitter.lines(block.text))
    return None


def _short(path: str, cwd: str) -> str:
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
