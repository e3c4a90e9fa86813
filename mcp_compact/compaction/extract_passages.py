"""Turns records into passages: consecutive lines of one source, with the section and the head they belong under."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mcp_compact.compaction.extract_envelopes import without_envelope
from mcp_compact.compaction.extract_lines import Line, Splitter
from mcp_compact.compaction.extract_tasks import is_full_list
from mcp_compact.messages import tool_kinds
from mcp_compact.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.memory_document import (
    ERRORS,
    FILES,
    LEARNINGS,
    REQUESTS,
    RESULTS,
    SYSTEM,
    TASK,
    WORKFLOW,
    WORKLOG,
)
from mcp_compact.messages.message import Record
from mcp_compact.messages.tool_kinds import RUN, tool_kind
from mcp_compact.messages.words import NOT_TYPED, PASTED_CHARS, typed, users_words, without_injected

USER, ASSISTANT, MEMORY = "user", "assistant", "memory"
COMMAND, EDIT, READ, TODO, CALL = "command", "edit", "read", "todo", "call"
OUTPUT, CHANGED, FILE, FOUND, ERROR, INJECTED = "output", "changed", "file", "found", "error", "injected"
PASTED = "pasted"
"""A document that a user handed over: a plan, a log. It is data, and no words of theirs."""

WRITTEN = frozenset((USER, ASSISTANT, COMMAND, EDIT, READ, TODO, CALL))
"""What a person or the model wrote: words and calls, not what tools answered."""
CALLS = frozenset((COMMAND, EDIT, READ, TODO, CALL))
FROM_TOOLS = frozenset((OUTPUT, CHANGED, FILE, FOUND, ERROR, PASTED))
"""Quoted as data."""
Told: TypeAlias = Callable[[int], None]
"""Is told the place of a record that is looked at now."""
JOINT = " / "
"""Between lines that stand one below the other in their source."""
SECTION_OF = {
    USER: REQUESTS, ASSISTANT: WORKLOG, MEMORY: WORKLOG, INJECTED: SYSTEM,
    COMMAND: WORKFLOW, OUTPUT: WORKFLOW, ERROR: ERRORS, TODO: TASK,
    EDIT: FILES, READ: FILES, CHANGED: FILES, FILE: FILES, CALL: SYSTEM, FOUND: SYSTEM, PASTED: SYSTEM,
}  # fmt: skip
_ANSWER_OF = {COMMAND: OUTPUT, EDIT: CHANGED, READ: FILE, TODO: INJECTED, CALL: FOUND}

_TOOL_WORDS = (
    (TODO, ("todo", "taskcreate", "taskupdate", "update_plan", "planmode")),
    (COMMAND, ("bash", "shell", "terminal", "exec", "command", "powershell")),
    (EDIT, ("edit", "write", "patch", "replace", "create_file", "insert")),
    (READ, ("read", "view", "open_file", "cat_file")),
)
_OURS = frozenset((
    "append_messages", "import_transcript", "get_context_status", "compact_session", "submit_summary",
    "microcompact_tool_results", "get_messages_after_boundary", "undo_compaction", "get_session_memory",
    "update_session_memory", "pin_instruction", "unpin", "extract_session_memory", "list_boundaries",
    "list_sessions", "audit_loss", "apply_plan",
))  # fmt: skip
"""Tools of this product that tell of contexts and memories, where more of the same would be quoted from. Searches and
originals are not among them: what they bring back is of the work."""
_ORIGIN_OF = {RUN: COMMAND, tool_kinds.EDIT: EDIT, tool_kinds.READ: READ}
_PATH_KEYS = ("file_path", "filePath", "notebook_path", "path", "absolute_path", "target_file", "filename", "file")
_OLD_TEXT_KEYS = frozenset(("old_string", "old_str", "oldString", "old_text"))
"""What an edit took away: it is not there any more, so it is not quoted."""
_REPORT = re.compile(r"<(task-notification|teammate-message)\b[^<>]{0,200}>(.*?)</\1>", re.DOTALL)
"""How a client hands on what an agent in the background found."""
_RESULT = re.compile(r"\d.*\b(?:pass|fail|ok\b|green|coverage|faster|slower|tests?\b)|\d ?%|\d ?ms\b", re.IGNORECASE)
_ERROR = re.compile(
    r"\b(?:error|fail(?:s|ed|ure|ing)?|broken|bug|crash\w*|exception|panic|wrong|revert\w*)\b", re.IGNORECASE
)
_LEARNT = re.compile(
    r"\b(?:because|since|turns out|root cause|the (?:issue|problem|reason|cause)|actually|note that|so that|means|"
    r"therefore|instead of|only when|already)\b",
    re.IGNORECASE,
)
LONGEST_PATH_CHARS = 300
HEAD_CHARS = 120


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of one block of one record, or of one part of an old memory."""

    order: int
    """Position of the record; old memory stands before 0."""
    origin: str
    section: str
    head: str
    """The file or the call that the lines are about; empty where they speak for themselves."""
    lines: tuple[Line, ...]
    quotable: bool = True
    from_tool: bool = False
    """Did a tool say it? Then it is quoted as data."""
    tells_head: bool = False
    """Is its first line the head in full?"""
    stale: frozenset[int] = frozenset()
    """Lines of a file that a later edit took away: they are not quoted."""
    stays: bool = False
    """Does it stand in the new context anyway?"""
    answers: ToolUseId | None = None
    """The call whose result it is."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is known of a call when its result comes."""

    origin: str
    head: str


def section_of(passage: Passage, text: str) -> str:
    """The section of a line; what the model said is told apart by the words it used."""
    if passage.origin != ASSISTANT:
        return passage.section
    for section, cue in ((RESULTS, _RESULT), (ERRORS, _ERROR), (LEARNINGS, _LEARNT)):
        if cue.search(text):
            return section
    return WORKLOG


def working_directory(records: Sequence[Record]) -> str:
    """The first working directory that a record names; empty where none does."""
    return next((r.raw["cwd"] for r in records if isinstance(r.raw.get("cwd"), str)), "")


def passages(
    records: Sequence[Record],
    splitter: Splitter,
    cwd: str,
    stay_from: int | None = None,
    cleared: Container[ToolUseId] = (),
    told: Told | None = None,
) -> list[Passage]:
    """The passages of message records, old to new. Summaries are no part of them.

    Records from `stay_from` on stay in the context, their `cleared` results aside. `told` is called before each record.
    """
    calls: dict[ToolUseId, Call] = {}
    ours: set[ToolUseId] = set()
    made: list[Passage] = []
    for order, record in enumerate(records):
        if told is not None:
            told(order)
        if record.is_summary:
            continue
        stays = stay_from is not None and order >= stay_from
        for passage, call in _of_record(order, record, calls, ours, splitter, cwd):
            if passage.lines:
                if call is not None or stays:
                    made.append(replace(passage, answers=call, stays=stays and call not in cleared))
                else:
                    made.append(passage)
    return made


def _of_record(
    order: int, record: Record, calls: dict[ToolUseId, Call], ours: set[ToolUseId], splitter: Splitter, cwd: str
) -> Iterator[tuple[Passage, ToolUseId | None]]:
    """The passages of a record, each with the call that it answers."""
    if record.type == "user":
        words = users_words(record)
        if words:
            yield _passage(order, USER, "", splitter.lines(words)), None
        for origin, text in handed_over(record):
            yield _passage(order, origin, "", splitter.lines(text)), None
    for block in _of_the_work(record.blocks, ours):
        match block:
            case TextBlock(text=text) if record.type == "assistant":
                yield _passage(order, ASSISTANT, "", splitter.lines(text)), None
            case TextBlock(text=text) if not users_words(record):
                yield _passage(order, INJECTED, "", splitter.lines(text)), None
            case ToolUseBlock():
                for passage in _of_call(order, block, calls, splitter, cwd):
                    yield passage, None
            case ToolResultBlock():
                call = calls.get(block.tool_use_id, Call(CALL, ""))
                origin = ERROR if block.is_error else _ANSWER_OF[call.origin]
                lines = splitter.lines(block.text)
                own = lines if origin == FILE else without_envelope(block.text, lines)
                yield _passage(order, origin, call.head, own), block.tool_use_id
            case _:
                pass


def handed_over(record: Record) -> Iterator[tuple[str, str]]:
    """Documents that a user pasted, without what they typed beside them, and reports of agents in the background."""
    if record.is_meta or record.is_summary or record.agent_id:
        return
    for block in record.blocks:
        if not isinstance(block, TextBlock):
            continue
        if "</t" in block.text:
            yield from ((FOUND, match[2]) for match in _REPORT.finditer(block.text))
        own = without_injected(block.text).strip()
        if len(own) > PASTED_CHARS and not own.startswith(NOT_TYPED):
            beside = set(typed(block.text).splitlines())
            yield PASTED, "\n".join(line for line in own.splitlines() if line not in beside)


def with_stale(made: Sequence[Passage], records: Sequence[Record], cwd: str) -> list[Passage]:
    """The passages, old memory's too, lines of a file marked that a later edit of it took away."""
    removed: dict[str, dict[str, int]] = {}
    for order, record in enumerate(records):
        for call in record.calls:
            if call_origin(call.name) == EDIT:
                own = removed.setdefault(short_path(call_path(call.input), cwd), {})
                own.update(dict.fromkeys(removed_lines(call.input), order))
    return [replace(p, stale=stale) if p.head in removed and (stale := _stale(p, removed[p.head])) else p for p in made]


def _stale(passage: Passage, removed: Mapping[str, int]) -> frozenset[int]:
    if passage.section != FILES:
        return frozenset()
    lines = enumerate(passage.lines)
    return frozenset(i for i, line in lines if removed.get(line.text, passage.order) > passage.order)


def removed_lines(input_: object) -> set[str]:
    """Lines of the old text of an edit (or of each of several) that its new text has no more."""
    if isinstance(input_, list | tuple):
        return {line for item in input_ for line in removed_lines(item)}
    if not isinstance(input_, Mapping):
        return set()
    old = "\n".join(value for key, value in input_.items() if key in _OLD_TEXT_KEYS and isinstance(value, str))
    if not old:
        return {line for item in input_.values() if isinstance(item, list | tuple) for line in removed_lines(item)}
    new = {line.strip() for text in strings(_without_old_text(input_)) for line in text.splitlines()}
    return {own for line in old.splitlines() if (own := line.strip()) and own not in new}


def _passage(order: int, origin: str, head: str, lines: tuple[Line, ...]) -> Passage:
    return Passage(order, origin, SECTION_OF[origin], head, lines, origin != INJECTED, origin in FROM_TOOLS)


def _of_call(
    order: int, block: ToolUseBlock, calls: dict[ToolUseId, Call], splitter: Splitter, cwd: str
) -> Iterator[Passage]:
    origin = call_origin(block.name)
    path = call_path(block.input)
    if path and origin in (EDIT, READ):
        calls[block.id] = Call(origin, short_path(path, cwd))
        kept = _without_old_text(block.input) if origin == EDIT else block.input
        texts = [text for text in strings(kept) if text != path]
        naming = splitter.line(f"{block.name} {path}")
        yield Passage(order, origin, FILES, short_path(path, cwd), (naming,), quotable=False)
        for text in texts:
            yield _passage(order, origin, short_path(path, cwd), splitter.lines(text))
        return
    told = call_text(block)
    head = told.split("\n", 1)[0]
    calls[block.id] = Call(origin, head)
    lines = splitter.lines(told)
    if origin == TODO:
        # Lists and tasks are read as a whole elsewhere; a plan is text like any other.
        is_plan = "plan" in block.name.lower() and len(lines) > 1 and not is_full_list(block)
        yield Passage(order, TODO, TASK, "", lines, quotable=is_plan)
    else:
        yield replace(_passage(order, origin, head, lines), tells_head=True)


def _of_the_work(blocks: Sequence[Block], ours: set[ToolUseId]) -> Iterator[Block]:
    """The blocks without the calls of our own tools and what they answered; `ours` remembers those calls."""
    for block in blocks:
        if isinstance(block, ToolUseBlock) and block.name.rsplit("__", 1)[-1] in _OURS:
            ours.add(block.id)
        elif not (isinstance(block, ToolResultBlock) and block.tool_use_id in ours):
            yield block


def call_text(block: ToolUseBlock) -> str:
    """A call in words: its tool, then every text of its input in order."""
    return " ".join([block.name, *strings(block.input)])


def call_origin(name: str) -> str:
    """The kind of a call, by words that tools of many harnesses have in their names."""
    own = name.lower().rsplit("__", 1)[-1]
    known = _ORIGIN_OF.get(tool_kind(own))
    return known or next((origin for origin, words in _TOOL_WORDS if any(word in own for word in words)), CALL)


def call_path(input_: object) -> str:
    """The file that a call is about; empty where it names none."""
    if isinstance(input_, Mapping):
        for key in _PATH_KEYS:
            value = input_.get(key)
            if isinstance(value, str) and 0 < len(value) < LONGEST_PATH_CHARS and "\n" not in value:
                return value
    return ""


def short_path(path: str, cwd: str) -> str:
    """The path as seen from the working directory."""
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd else path


def _without_old_text(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_old_text(item) for key, item in value.items() if key not in _OLD_TEXT_KEYS}
    if isinstance(value, list | tuple):
        return [_without_old_text(item) for item in value]
    return value


def strings(value: object) -> list[str]:
    """All texts and numbers in a JSON value, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings(item)]
    return [str(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []
