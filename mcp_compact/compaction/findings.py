"""What of a conversation could be put back after a compaction: plan, to-dos, tools found, skills loaded, files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_compact.compaction.attachments import FILE, PLAN, SKILL, TODOS, Item, nameable, tools_in
from mcp_compact.compaction.extract_tasks import Task, is_full_list, noted_tasks, task_lines, tasks, tells_tasks
from mcp_compact.messages.blocks import CLEARED_RESULT, OBJECT, OtherBlock, TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.memory_document import TASK, MemoryDocument, Section
from mcp_compact.messages.message import Record
from mcp_compact.messages.tool_inputs import Lines, covers, lines_of, path_of

PLAN_TOOLS = frozenset({"exitplanmode", "exit_plan_mode"})
SKILL_TOOLS = frozenset({"skill"})
SEARCH_TOOLS = ("toolsearch", "tool_search")
"""How their names begin."""
READERS = frozenset({"read", "read_file", "readfile", "view_file", "fs_read"})
WRITERS = frozenset({"write", "write_file", "writefile", "create_file", "write_to_file"})
CHANGING = ("edit", "write", "replace", "patch", "insert", "create", "delete", "move")
"""A call of a tool with such a part in its name changes the file that its input names."""
CONTENT_KEYS = ("content", "file_text", "text")
SKILL_OPENING = "Base directory for this skill:"
_PARTS = frozenset(("offset", "limit", "pages"))
UNCHANGED = "File unchanged since last read"
"""A client answers so where it has given the same content before."""
_MCP_NAME = re.compile(r"\bmcp__[A-Za-z0-9_\-]+")
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


@dataclass(frozen=True, slots=True)
class Findings:
    """The newest of each kind; lists go from old to new."""

    plan: Item | None = None
    todos: Item | None = None
    tools: tuple[str, ...] = ()
    skills: tuple[Item, ...] = ()
    files: tuple[Item, ...] = ()
    skill_seqs: frozenset[int] = frozenset()
    """Records that hold nothing but a skill's text."""


def found(records: Sequence[Record], carried: Sequence[Item] = ()) -> Findings:
    """What these records (old to new) hold, on top of what an earlier compaction put back."""
    work = _Finder()
    for item in carried:
        work.take_over(item)
    for record in records:
        work.look(record)
    work.leave_open_changes_out()
    return Findings(
        plan=work.plan,
        todos=_todos(records, work.about_tasks, next((item for item in carried if item.kind == TODOS), None)),
        tools=tuple(sorted(work.tools)),
        skills=tuple(work.skills.values()),
        files=tuple(work.files.values()),
        skill_seqs=frozenset(work.skill_seqs),
    )


def tool_references(record: Record) -> tuple[str, ...]:
    """Names of tools that a tool search brought: the `tool_reference` parts of results.

    A client's own search answers with the parts themselves, the provider's with a list of them.
    """
    # Most results are one text, and most records none at all.
    others: list[OtherBlock] = []
    for block in record.blocks:
        if isinstance(block, ToolResultBlock):
            others += [part for part in block.parts if isinstance(part, OtherBlock)]
    if not others:
        return ()
    references: list[object] = []
    for part in others:
        inner = part.raw.get("tool_references")
        references += inner if isinstance(inner, list) else [part.raw]
    names = [_reference(item) for item in references]
    return tuple(name for name in names if name)


def _reference(item: object) -> str:
    match item:
        case {"type": "tool_reference", "tool_name": str(name)} | {"type": "tool_reference", "name": str(name)}:
            return name
        case _:
            return ""


@dataclass(slots=True)
class _Finder:
    """Goes through the records once, old to new."""

    plan: Item | None = None
    tools: set[str] = field(default_factory=set)
    skills: dict[str, Item] = field(default_factory=dict)
    skill_seqs: set[int] = field(default_factory=set)
    about_tasks: tuple[ToolUseBlock, Record] | None = None
    """The newest call that makes or changes tasks."""
    files: dict[str, Item] = field(default_factory=dict)
    _lines: dict[str, Lines | None] = field(default_factory=dict)
    _calls: dict[ToolUseId, tuple[ToolUseBlock, Record]] = field(default_factory=dict)
    """Calls whose results have not come yet."""
    _skill_names: dict[str, str] = field(default_factory=dict)

    def take_over(self, item: Item) -> None:
        """Begin with what an earlier compaction put back."""
        match item.kind:
            case "plan":
                self.plan = item
            case "tools":
                self.tools.update(tools_in(item.text))
            case "skill":
                self.skills[item.name] = item
            case "file":
                self.files[item.name] = item
            case _:
                pass

    def look(self, record: Record) -> None:
        """Go on with one record."""
        plan = record.raw.get("planContent")
        if isinstance(plan, str) and plan.strip():
            self.plan = Item(PLAN, "", plan.strip(), record.seq, record.uuid)
        calls, results, has_text = _parts(record)
        if has_text and record.type == "user":
            self._look_for_skill(record)
        for call in calls:
            self._look_at_call(call, record)
        if results:
            self.tools.update(tool_references(record))
        for result in results:
            made = None if result.server else self._calls.pop(result.tool_use_id, None)
            if made is not None and not result.is_error:
                self._look_at_result(*made, result, record)

    def leave_open_changes_out(self) -> None:
        """A file that a call without a result was about to change is not known any more."""
        for call, _ in self._calls.values():
            if _changes(call.name.lower()):
                self.files.pop(path_of(call.input), None)

    def _look_for_skill(self, record: Record) -> None:
        source = record.raw.get("sourceToolUseID")
        is_asked_for = record.is_meta and source in self._skill_names
        text = record.text.strip()
        if not text or not (is_asked_for or text.startswith(SKILL_OPENING)):
            return
        folder = text.split("\n", 1)[0].removeprefix(SKILL_OPENING).strip()
        name = self._skill_names.get(str(source)) or re.split(r"[/\\]", folder.rstrip("/\\"))[-1]
        if nameable(name):
            self.skills.pop(name, None)
            self.skills[name] = Item(SKILL, name, text, record.seq, record.uuid)
            self.skill_seqs.add(record.seq)

    def _look_at_call(self, call: ToolUseBlock, record: Record) -> None:
        self._calls[call.id] = (call, record)
        if tells_tasks(call):
            self.about_tasks = (call, record)
        given, tool = call.input, call.name.lower()
        if not isinstance(given, OBJECT):
            return
        if tool in PLAN_TOOLS and isinstance(given.get("plan"), str) and given["plan"].strip():
            self.plan = Item(PLAN, "", given["plan"].strip(), record.seq, record.uuid)
        if tool in SKILL_TOOLS:
            name = given.get("skill") or given.get("command") or given.get("name")
            if isinstance(name, str):
                self._skill_names[call.id] = name.strip()

    def _look_at_result(self, call: ToolUseBlock, caller: Record, result: ToolResultBlock, record: Record) -> None:
        tool, path = call.name.lower(), path_of(call.input)
        if tool.startswith(SEARCH_TOOLS):
            self.tools.update(_MCP_NAME.findall(result.text))
        elif not nameable(path):
            return
        elif tool in READERS:
            self._read(path, call, result, record)
        elif tool in WRITERS:
            self._written(path, call, caller)
        elif _changes(tool):
            # The result of an edit shows a part of the file only, and what was read before is outdated.
            self.files.pop(path, None)

    def _read(self, path: str, call: ToolUseBlock, result: ToolResultBlock, record: Record) -> None:
        lines, whole = lines_of(call.input), result.text
        text = _without_reminder(whole)
        known = self.files.pop(path, None)
        if (CLEARED_RESULT in whole and result.cleared) or text.startswith(UNCHANGED):
            self._again(known)
            return
        before = self._lines.get(path)
        if known is not None and before and lines and covers(before, lines) and lines != before:
            self._again(known)
        elif text:
            note = "" if _is_whole(call.input) else "These are the lines that were asked for, not the whole file."
            self.files[path] = Item(FILE, path, text, record.seq, call.id, note)
            self._lines[path] = lines

    def _again(self, known: Item | None) -> None:
        """The same content was asked for once more: it is the newest now, though it stands where it stood."""
        if known is not None:
            self.files[known.name] = known

    def _written(self, path: str, call: ToolUseBlock, caller: Record) -> None:
        self.files.pop(path, None)
        self._lines.pop(path, None)
        text = next((v for key in CONTENT_KEYS if isinstance(v := call.input.get(key), str)), "")
        if text:
            self.files[path] = Item(FILE, path, text, caller.seq, caller.uuid)


def _parts(record: Record) -> tuple[list[ToolUseBlock], list[ToolResultBlock], bool]:
    """Calls that are answered later, all results, and is there a text: in one walk, for hundreds are looked at."""
    calls: list[ToolUseBlock] = []
    results: list[ToolResultBlock] = []
    has_text = False
    for block in record.blocks:
        if isinstance(block, ToolResultBlock):
            results.append(block)
        elif isinstance(block, ToolUseBlock):
            if not block.server:
                calls.append(block)
        elif isinstance(block, TextBlock):
            has_text = True
    return calls, results, has_text


def _changes(tool: str) -> bool:
    return tool not in READERS and any(part in tool for part in CHANGING)


def _is_whole(given: object) -> bool:
    return isinstance(given, OBJECT) and _PARTS.isdisjoint(given)


def _without_reminder(text: str) -> str:
    """What a client wrote under a file's content is no part of the file."""
    own = text.rstrip()
    at = own.rfind(_REMINDER) if own.endswith(_REMINDER_END) else -1
    return own[:at].rstrip() if at >= 0 else own


def _todos(records: Sequence[Record], about: tuple[ToolUseBlock, Record] | None, carried: Item | None) -> Item | None:
    """The to-do list as it stands, one task a line; None where nothing is open."""
    if about is not None:
        call, newest = about
        base = MemoryDocument(sections=(Section(TASK, carried.text),)) if carried else None
        # Where the newest call changes one task of a list, the list itself stands nowhere.
        seq = newest.seq if is_full_list(call) else 0
        return _open_list(tasks(records, base), seq)
    listed = (value for record in reversed(records) if (value := record.raw.get("todos")))
    noted = next((own for value in listed if (own := noted_tasks(value))), None)
    return _open_list(noted, 0) if noted else carried


def _open_list(now: Sequence[Task], seq: int) -> Item | None:
    lines = task_lines(now)
    return Item(TODOS, "", "\n".join(f"- {line}" for line in lines), seq) if lines else None
