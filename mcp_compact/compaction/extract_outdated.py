"""What later work made outdated: what a call said that failed and went well since, the lines of a file that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mcp_compact.compaction.extract_passages import (
    COMMAND,
    EDIT,
    MEMORY,
    READ,
    Passage,
    call_origin,
    call_path,
    call_text,
    short_path,
    strings,
)
from mcp_compact.compaction.rules import refusal_in
from mcp_compact.messages.blocks import ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.lazily import pattern
from mcp_compact.messages.memory_document import ERRORS, FILES, WORKFLOW
from mcp_compact.messages.message import Record

LOOKED_AT_CHARS = 4000
"""Of an output, its end: there a run says how it went."""
SHORTEST_COMMAND = 4

_FAILED = pattern(
    r"^(?:-+ )?(?:FAIL(?:ED|URE)?|ERROR)\b|\b[1-9]\d* (?:failed|failures?|errors?|failing)\b|^Traceback \(|"
    r"^error(?:\[\w+\])?:|\bexit (?:code|status) [1-9]",
    re.MULTILINE,
)
_CHANGES_FOLDER = pattern(r"^cd\s+\S+\s*(?:&&|;)\s*")
_SHOWN = pattern(r"\s*(?:\d?>&\d)?\s*(?:\|.*)?$", re.DOTALL)
"""How the output of a command is cut: it is the same command without."""
_REMOVES = pattern(r"(?:^|&&|;|\n)\s*(?:sudo\s+)?(?:git\s+rm|rm|unlink|del|Remove-Item)\s+([^&;|\n]+)")


@dataclass(slots=True)
class _Found:
    """What the calls of some records came to; an order is the position of the record with the result."""

    failed: dict[ToolUseId, tuple[str, int]] = field(default_factory=dict)
    """Failed calls: what was tried, and when."""
    well: dict[str, int] = field(default_factory=dict)
    """What was tried -> when it last went well."""
    gone: dict[str, int] = field(default_factory=dict)
    """Files that were removed -> when."""

    def note(self, call: ToolUseBlock, result: ToolResultBlock, order: int, cwd: str) -> None:
        """Go on with a result."""
        origin, tried = call_origin(call.name), _tried(call, cwd)
        if result.is_error or (origin == COMMAND and _FAILED.search(result.text[-LOOKED_AT_CHARS:])):
            self.failed[result.tool_use_id] = (tried, order)
            return
        self.well[tried] = order
        if origin == COMMAND:
            self.gone.update(dict.fromkeys(_removed(call, cwd), order))
        elif "delete" in call.name.lower() and (path := call_path(call.input)):
            self.gone[short_path(path, cwd)] = order


def without_outdated(made: Sequence[Passage], records: Sequence[Record], cwd: str) -> list[Passage]:
    """The passages, old memory's too, all lines of those marked as stale that later work made outdated."""
    found = _Found()
    calls: dict[ToolUseId, ToolUseBlock] = {}
    names: dict[ToolUseId, str] = {}
    for order, record in enumerate(records):
        calls.update((call.id, call) for call in record.calls)
        names.update((call.id, call.name.lower()) for call in record.calls)
        # What a user said when they turned a call down is no failure of it.
        for result in () if refusal_in(record, names) else record.results:
            if result.tool_use_id in calls:
                found.note(calls[result.tool_use_id], result, order, cwd)
    fixed = {call for call, (tried, order) in found.failed.items() if found.well.get(tried, -1) > order}
    commands = tuple(tried for tried in found.well if " " in tried)
    return [
        replace(passage, stale=frozenset(range(len(passage.lines))))
        if passage.answers in fixed or _is_gone(passage, found) or _was_fixed(passage, commands)
        else passage
        for passage in made
    ]


def _tried(call: ToolUseBlock, cwd: str) -> str:
    """What a call tried, the same for calls that differ only in how their output is shown."""
    origin, path = call_origin(call.name), call_path(call.input)
    if origin == COMMAND:
        command = next(iter(strings(call.input)), "")
        return f"{call.name} {_SHOWN.sub('', _CHANGES_FOLDER.sub('', ' '.join(command.split())), count=1)}"
    if path and origin in (READ, EDIT):
        return f"{origin}:{short_path(path, cwd)}"
    return call_text(call)


def _removed(call: ToolUseBlock, cwd: str) -> Iterator[str]:
    """The files that a command removed, as far as it names them."""
    for command in strings(call.input)[:1]:
        for match in _REMOVES.finditer(command):
            yield from (short_path(part.strip("'\""), cwd) for part in match[1].split() if not part.startswith("-"))


def _is_gone(passage: Passage, found: _Found) -> bool:
    """Is it of a file that was removed later?"""
    return passage.section == FILES and found.gone.get(passage.head, passage.order) > passage.order


def _was_fixed(passage: Passage, commands: tuple[str, ...]) -> bool:
    """Is it an old memory's failure of a command that went well since?"""
    if passage.origin != MEMORY or not passage.from_tool or passage.section not in (ERRORS, WORKFLOW):
        return False
    failed = passage.section == ERRORS or any(_FAILED.search(line.text) for line in passage.lines)
    return failed and passage.head.startswith(commands)
