"""What is still to be done: the newest state of to-do lists, tasks and plans in calls and results of any harness."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_compact.messages.blocks import OBJECT, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.memory_document import TASK, MemoryDocument
from mcp_compact.messages.message import Record

DONE = frozenset(("completed", "done", "complete", "finished", "closed"))
GONE = frozenset(("deleted", "cancelled", "canceled", "removed"))
DONE_SHOWN = 3
"""So many finished tasks, the newest, stay beside the open ones: they tell where the work stands."""
OPEN_SHOWN = 30
SHORTEST_TOLD = 8
"""Characters of a task that is looked for in other texts; `test` stands in many."""
MOST_OF_IT = 0.5

_TEXT_KEYS = ("content", "step", "subject", "title", "description", "text", "task")
_MAKING, _CHANGING = ("taskcreate", "create_task"), ("taskupdate", "update_task")
"""Parts of the names of tools that make a task, or change one."""
_LISTING = ("todo", "plan", "tasklist", "task_list", "list_tasks", "task_tracker")
"""Parts of the names of tools that may answer with a whole list."""
LONGEST_LIST_CHARS = 20_000
_NO_LISTS = frozenset((str, int, bool, float, type(None)))
_NUMBER = re.compile(r"[Tt]ask #?(\d{1,6})\b")
_LINE = re.compile(r"(?:#(\d{1,6}) )?\[([a-z_ ]{2,20})\] (\S.*)")


@dataclass(frozen=True, slots=True)
class Task:
    text: str
    status: str
    number: str = ""
    """The harness's own number of it; empty where its list has none."""

    @property
    def line(self) -> str:
        """As a memory says it: `#3 [in_progress] Fix the parser`."""
        return f"{f'#{self.number} ' if self.number else ''}[{self.status}] {self.text}"


def tasks(records: Sequence[Record], previous: MemoryDocument | None = None) -> list[Task]:
    """The tasks as they stand after these records, old to new; gone ones left out."""
    now = {str(i): task for i, task in enumerate(_remembered(previous))}
    made: dict[ToolUseId, Task] = {}
    listing: set[ToolUseId] = set()
    for record in records:
        for call in record.calls:
            now = _after_call(call, now, made)
            if any(part in call.name.lower() for part in _LISTING):
                listing.add(call.id)
        for result in record.results:
            created = made.pop(result.tool_use_id, None)
            if result.is_error:
                continue
            if created is not None:
                _put(replace(created, number=_number(result, record)), now)
            elif result.tool_use_id in listing and (listed := _told(result.text)):
                now = {str(i): task for i, task in enumerate(listed)}
    for created in made.values():
        # Its result is missing: it was asked for all the same.
        _put(created, now)
    return [task for task in now.values() if task.status not in GONE]


def _put(task: Task, now: dict[str, Task]) -> None:
    now[f"#{task.number}" if task.number else task.text] = task


def _number(result: ToolResultBlock, record: Record) -> str:
    """The number of a task that was made; where the result was cleared, as the client noted it beside the message."""
    if match := _NUMBER.search(result.text[:200]):
        return match[1]
    match record.raw.get("toolUseResult"):
        case {"task": {"id": str(number)}} if number.isdecimal():
            return number
        case _:
            return ""


def _told(text: str) -> list[Task]:
    """The tasks of a list that a tool answered with: as JSON, or a task a line; empty where it is none."""
    own = text.strip()
    if not own or len(own) > LONGEST_LIST_CHARS:
        return []
    if own[0] in "[{" and (listed := _listed_json(own)):
        return listed
    found = [_LINE.fullmatch(line.strip().removeprefix("- ")) for line in own.splitlines() if line.strip()]
    return [Task(m[3], m[2], m[1] or "") for m in found if m] if all(found) else []


def _listed_json(text: str) -> list[Task]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    # Some answer with the list as it was, too.
    values = [own for key, own in value.items() if not key.startswith("old")] if isinstance(value, dict) else [value]
    return next((found for own in values if (found := _listed(own))), [])


def task_lines(found: Sequence[Task]) -> list[str]:
    """The open tasks, and the last finished ones, in their order."""
    done = [task for task in found if task.status in DONE][-DONE_SHOWN:]
    still = [task for task in found if task.status not in DONE][:OPEN_SHOWN]
    shown = {id(task) for task in (*done, *still)}
    return [task.line for task in found if id(task) in shown] if still else []


def is_task(text: str) -> bool:
    """Is this a task as `Task.line` writes it?"""
    return _LINE.fullmatch(text.strip()) is not None


def tells_of(text: str, known: Iterable[str]) -> bool:
    """Does a text say one of these tasks, or several, and little else?"""
    own = text.casefold()
    said = sum(len(task) for task in known if len(task) >= SHORTEST_TOLD and task.casefold() in own)
    return said >= len(own) * MOST_OF_IT and said > 0


def is_full_list(call: ToolUseBlock) -> bool:
    """Does the call give all tasks, so that those before are void?"""
    given = call.input
    if not isinstance(given, OBJECT):
        return False
    # Nearly no input holds a list, and this is asked of every call.
    for value in given.values():  # noqa: SIM110 - see above
        if type(value) not in _NO_LISTS and _listed(value):
            return True
    return False


def tells_tasks(call: ToolUseBlock) -> bool:
    """Does the call make or change tasks?"""
    name = call.name.lower()
    # Every such name holds the word.
    return is_full_list(call) or ("task" in name and any(part in name for part in (*_MAKING, *_CHANGING)))


def noted_tasks(value: object) -> list[Task]:
    """The tasks of a list that a client noted beside a message; empty where it is no such list."""
    return _listed(value)


def _remembered(previous: MemoryDocument | None) -> Iterable[Task]:
    for raw in previous.body(TASK).splitlines() if previous else ():
        match = _LINE.fullmatch(raw.strip().removeprefix("- "))
        if match:
            yield Task(match[3], match[2], match[1] or "")


def _after_call(call: ToolUseBlock, now: dict[str, Task], made: dict[ToolUseId, Task]) -> dict[str, Task]:
    if not isinstance(call.input, Mapping):
        return now
    listed = next((found for value in call.input.values() if (found := _listed(value))), None)
    if listed is not None:
        return {str(i): task for i, task in enumerate(listed)}
    name = call.name.lower()
    if any(part in name for part in _MAKING):
        text = _text(call.input)
        if text:
            made[call.id] = Task(text, "pending")
    elif any(part in name for part in _CHANGING):
        _update(call.input, now)
    return now


def _listed(value: object) -> list[Task]:
    """The tasks of a list in which every item has a text and a status; empty where it is no such list."""
    # Most values are texts and numbers, and to ask for an abstract class costs more than all else here.
    if not value or isinstance(value, str | int | float) or not isinstance(value, Sequence):
        return []
    found = []
    for item in value:
        if not isinstance(item, Mapping) or not isinstance(item.get("status"), str) or not _text(item):
            return []
        found.append(Task(_text(item), item["status"].strip().lower() or "pending"))
    return found


def _text(item: Mapping[str, object]) -> str:
    for key in _TEXT_KEYS:
        value = item.get(key)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:300]
    return ""


def _update(input_: Mapping[str, object], now: dict[str, Task]) -> None:
    number = str(input_.get("taskId") or input_.get("task_id") or input_.get("id") or "").lstrip("#")
    status = input_.get("status")
    for key, task in now.items():
        if number and task.number == number and isinstance(status, str) and status:
            now[key] = replace(task, status=status.strip().lower())
