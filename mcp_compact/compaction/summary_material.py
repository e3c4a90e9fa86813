"""The material in the room of whoever writes: as few old results as will do are left out, then the oldest rounds.

The session is micro-compacted for the writer only: what stays in its context and in the archive is not touched. The
newest results always stand; of the others the newest stay as long as there is room, and those of errors before all
other ones: what failed is to be told letter for letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.material import Rendered, render, result_text, tools_of
from mcp_compact.compaction.micro_request import is_compactable
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.messages.blocks import ToolResultBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import UNITS_PER_TOKEN, CountUnits

LEAST_ROOM = 100 * UNITS_PER_TOKEN
"""With less no further result is looked at."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The records as text, from the first one that is not left out."""

    rendered: Sequence[Rendered]
    dropped: int
    """So many of the oldest are left out."""


@dataclass(frozen=True, slots=True)
class _Barest:
    """The material with all results left out that may be, and what it costs."""

    records: Sequence[Record]
    policy: MicroPolicy
    count: CountUnits
    clearable: frozenset[ToolUseId]
    units: int

    def within(self, room: int) -> tuple[frozenset[ToolUseId], int]:
        """What is left out so that it takes at most so many units, where that can be, and what it takes then."""
        kept: set[ToolUseId] = set()
        units, tools = self.units, tools_of(self.records)
        for result in self._by_need():
            if room - units < LEAST_ROOM:
                break
            whole, bare = self.count([result_text(result, tools, cleared=cleared) for cleared in (False, True)])
            if units + whole - bare <= room:
                units += whole - bare
                kept.add(result.tool_use_id)
        return self.clearable - kept, units

    def _by_need(self) -> Iterator[ToolResultBlock]:
        """The newest first, all errors before the others."""
        results = [r for record in self.records for r in record.results if r.tool_use_id in self.clearable]
        yield from (result for result in reversed(results) if result.is_error)
        yield from (result for result in reversed(results) if not result.is_error)


def fitted(records: Sequence[Record], policy: MicroPolicy, room: int, drop: int, count: CountUnits) -> Fitted:
    """The records as text in at most `room` units, as far as leaving out results gets there.

    The writer has said that this is `drop` units too long: so much less then, by whole rounds where results are not
    enough.
    """
    barest = _barest(records, policy, count)
    cleared, units = barest.within(room)
    if drop:
        allowed = units - drop
        cleared, units = barest.within(allowed)
        drop = max(0, units - allowed)
    rendered = render(records, cleared)
    first = _first_kept(rendered, count([item.text for item in rendered]), drop) if drop else 0
    return Fitted(rendered[first:], first)


def _barest(records: Sequence[Record], policy: MicroPolicy, count: CountUnits) -> _Barest:
    tools = tools_of(records)
    ours = [
        result.tool_use_id
        for record in records
        for result in record.results
        if is_compactable(tools.get(result.tool_use_id, ""), policy)
    ]
    clearable = frozenset(ours[: max(0, len(ours) - policy.keep_recent)])
    units = sum(count([item.text for item in render(records, clearable)]))
    return _Barest(records, policy, count, clearable, units)


def _first_kept(rendered: Sequence[Rendered], units: Sequence[int], drop: int) -> int:
    """How many of the oldest records are left out so that so many units go, by whole rounds."""
    gone, last = 0, max((i for i, item in enumerate(rendered) if item.record.type == "assistant"), default=0)
    for index, item in enumerate(rendered):
        if gone >= drop and (index == 0 or item.record.type == "assistant"):
            return index
        if index >= last:
            return last
        gone += units[index]
    return 0
