"""What an import met: counted whole, listed up to a limit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp_compact.messages.blocks import OtherBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.message import Record
from mcp_compact.transcripts.lines import Problem

LISTED = 50
"""How many problems, warnings and places of what was not understood are listed; all are counted."""
KINDS = 100
"""How many kinds are counted by name; what else a file holds is counted together."""
KIND_CHARS = 60
OTHER_KINDS = "(other kinds)"
UNNAMED = "(none)"
PART = "part "
"""Begins the name under which a part of a message is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was imported, but that somebody should know of."""

    code: str
    """`missing_parent`, `result_without_call`, `no_content`, `no_role`, `repeated_uuid`."""
    line: int
    uuid: str
    detail: str = ""


FINDINGS = {
    "missing_parent": "follows a record that is not in the file",
    "result_without_call": "a result whose call is not in the file",
    "no_content": "a message without content",
    "no_role": "a message without a role of its own",
    "repeated_uuid": "an id that an earlier record has",
}
"""What the codes of findings mean."""


class Place(NamedTuple):
    """Where something stands that was not understood: its line, or its place in a list."""

    line: int
    kind: str


@dataclass(slots=True)
class ImportReport:
    """Counts and findings of one reading."""

    records: int = 0
    messages: int = 0
    types: dict[str, int] = field(default_factory=dict)
    sub_agents: Counter[str] = field(default_factory=Counter)
    """Records of each sub-agent."""
    unknown_types: Counter[str] = field(default_factory=Counter)
    unknown_blocks: Counter[str] = field(default_factory=Counter)
    unknown_places: list[Place] = field(default_factory=list)
    """The first places of unknown types and blocks."""
    copied: int = 0
    """Records that stem from another session: the copied start of a resumed or forked one."""
    glued: int = 0
    """Lines that held several objects."""
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    warnings: list[Finding] = field(default_factory=list)
    warning_counts: Counter[str] = field(default_factory=Counter)

    def count(self, kind: str) -> None:
        """Count a record of this kind."""
        self.records += 1
        types = self.types
        if kind in types:
            types[kind] += 1
        else:
            _tally(types, kind)

    def note_unknown(self, kind: str, line: int) -> None:
        """Count a record, or a part of one, that was not understood, and list its place while there is room."""
        _tally(self.unknown_types, kind)
        self._place(line, kind)

    def note_block(self, kind: str, line: int) -> None:
        """The same for a block of a message."""
        _tally(self.unknown_blocks, kind or UNNAMED)
        self._place(line, PART + (kind or UNNAMED))

    def _place(self, line: int, kind: str) -> None:
        if len(self.unknown_places) < LISTED:
            self.unknown_places.append(Place(line, kind[:KIND_CHARS]))

    @property
    def not_understood(self) -> dict[str, int]:
        """How often each kind was met that was not understood."""
        found = Counter(self.unknown_types)
        for kind, number in self.unknown_blocks.items():
            found[kind if kind == OTHER_KINDS else PART + kind] += number
        return dict(found)

    def add_problem(self, problem: Problem) -> None:
        """Count a problem, and list it while there is room."""
        self.problem_count += 1
        if len(self.problems) < LISTED:
            self.problems.append(problem)

    def warn(self, code: str, line: int, uuid: str, detail: str = "") -> None:
        """Count a finding, and list it while there is room."""
        self.warning_counts[code] += 1
        if len(self.warnings) < LISTED:
            self.warnings.append(Finding(code, line, uuid, detail))

    def as_json(self) -> dict[str, Any]:
        """For an answer: everything but the excerpts, which are content of the file."""
        return {
            "records": self.records,
            "messages": self.messages,
            "types": dict(self.types),
            "sub_agents": dict(self.sub_agents),
            "unknown_types": dict(self.unknown_types),
            "unknown_blocks": dict(self.unknown_blocks),
            "unknown_places": [{"line": place.line, "kind": place.kind} for place in self.unknown_places],
            "copied": self.copied,
            "glued": self.glued,
            "problem_count": self.problem_count,
            "problems": [{"line": problem.line, "reason": problem.reason} for problem in self.problems],
            "warning_counts": dict(self.warning_counts),
            "warnings": [
                {"code": w.code, "line": w.line, "uuid": w.uuid} | ({"detail": w.detail} if w.detail else {})
                for w in self.warnings
            ],
        }


def _tally(counts: dict[str, int], kind: str) -> None:
    kind = kind[:KIND_CHARS]
    name = kind if kind in counts or len(counts) < KINDS else OTHER_KINDS
    counts[name] = counts.get(name, 0) + 1


class PairCheck:
    """Reports results whose call was not met before them."""

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._calls: set[str] = set()

    def look(self, record: Record, line: int, *, known_call: bool = False) -> None:
        """Look at the blocks of a message. `known_call`: earlier calls may have been read before."""
        for block in record.message.blocks if record.message is not None else ():
            # By the class itself: to ask whether it is one that a block is not of costs more than all else here.
            if type(block) is ToolUseBlock:
                self._calls.add(block.id)
            elif type(block) is ToolResultBlock:
                if block.tool_use_id not in self._calls and not known_call:
                    self._report.warn("result_without_call", line, record.uuid, block.tool_use_id)
            elif type(block) is OtherBlock:
                self._report.note_block(block.type, line)
