"""Results that a later one stands for: a file read again or written since, a call made again."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.snapshot import CallFacts, ResultFacts
from mcp_compact.messages.tool_inputs import Lines, covers
from mcp_compact.messages.tool_kinds import EDIT, EDITORS, READ, tool_kind

MOST_RANGES = 64
"""Of a file that is read in many pieces the newest pieces are compared, so that the work stays linear."""


@dataclass(slots=True)
class _Later:
    """What the results after the one that is looked at hold."""

    written: set[str] = field(default_factory=set)
    reads: dict[str, list[Lines]] = field(default_factory=dict)
    calls: set[tuple[str, bytes, bool]] = field(default_factory=set)
    """Tool, input, did it fail: a success stands for failures too, a failure only for failures."""

    def stand_for(self, result: ResultFacts, call: CallFacts, policy: MicroPolicy) -> bool:
        return (policy.clear_outdated_reads and self._outdate(result, call)) or (
            policy.clear_repeated_calls and (result.tool, call.input.hash, result.is_error) in self.calls
        )

    def _outdate(self, result: ResultFacts, call: CallFacts) -> bool:
        path, lines = call.input.path, call.input.lines
        if not _reads(result.tool) or not path:
            return False
        if path in self.written or (result.tool, call.input.hash, result.is_error) in self.calls:
            return True
        return lines is not None and any(covers(later, lines) for later in self.reads.get(path, ()))

    def note(self, result: ResultFacts, call: CallFacts) -> None:
        """A result that stays."""
        given = call.input
        if given.hash:
            self.calls.add((result.tool, given.hash, True))
        if result.is_error:
            return
        if given.hash:
            self.calls.add((result.tool, given.hash, False))
        if _reads(result.tool) and given.path and given.lines is not None:
            ranges = self.reads.setdefault(given.path, [])
            if len(ranges) < MOST_RANGES:
                ranges.append(given.lines)


def _reads(tool: str) -> bool:
    return tool_kind(tool) == READ


def looks_at_later(policy: MicroPolicy) -> bool:
    """Is a switch on that compares results with later ones?"""
    return policy.clear_outdated_reads or policy.clear_repeated_calls


def superseded(
    results: Sequence[ResultFacts], leaving: Container[tuple[int, int]], policy: MicroPolicy
) -> set[tuple[int, int]]:
    """Places (seq, block) of those results, old to new, that a later one stands for.

    Only what stays can stand for an older result: `leaving` are the places of those that are cleared anyway.
    A file that was written is another one, whatever becomes of the call that wrote it.
    """
    found: set[tuple[int, int]] = set()
    if not looks_at_later(policy):
        return found
    later = _Later()
    for result in reversed(results):
        call, place = result.call, (result.seq, result.block)
        if call is None or result.cleared:
            continue
        if later.stand_for(result, call, policy):
            found.add(place)
        elif place not in leaving:
            later.note(result, call)
        if tool_kind(result.tool) == EDIT and result.tool not in EDITORS and not result.is_error and call.input.path:
            later.written.add(call.input.path)
    return found
