"""Snipping: single messages leave the live context, calls and results together. The archive keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mcp_compact.compaction.cuts import last_round_index, open_call_index
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.snapshot import Base
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import MarkerKind
from mcp_compact.messages.message import Entry, Record
from mcp_compact.messages.tool_inputs import path_of
from mcp_compact.messages.tool_kinds import EDIT, EDITORS, READ, tool_kind
from mcp_compact.messages.weights import NOTHING, Family, Weight
from mcp_compact.messages.words import standing_instructions, users_words

PATH = "snip"
NUDGE_PERCENT = 10
"""The status speaks of snipping when so much of the live tokens could go."""


@dataclass(frozen=True, slots=True)
class SnipRequest:
    """What to take out: messages by uuid, a range (both ends included), or what a rule finds.

    Rules: `errors` (failed calls with their results), `stale_reads` (reads of a file that was read
    again or written since), `tool:GLOB` (calls of a tool with their results).
    """

    uuids: tuple[MessageUuid, ...] = ()
    ranges: tuple[tuple[MessageUuid, MessageUuid], ...] = ()
    rules: tuple[str, ...] = ()
    force: bool = False
    """Takes what was named even if it is protected; an open call never leaves."""


@dataclass(frozen=True, slots=True)
class Snippable:
    """A live context with bodies: entries and records in the same order, service records left out."""

    base: Base
    family: Family
    live_weight: Weight
    entries: tuple[Entry, ...]
    records: tuple[Record, ...]
    pinned: frozenset[MessageUuid] = frozenset()


@dataclass(frozen=True, slots=True)
class SnipPlan:
    """Messages that would leave. `spared` were asked for, but are protected: uuid and why."""

    base: Base
    snipped: tuple[MessageUuid, ...]
    freed: Weight
    tokens_before: int
    tokens_after: int
    spared: tuple[tuple[MessageUuid, str], ...] = ()

    @property
    def kind(self) -> MarkerKind:
        return MarkerKind.SNIP


def plan_snip(live: Snippable, request: SnipRequest) -> SnipPlan | Declined:
    """What would leave; declines for a name that is not live, a rule that there is not, and where nothing leaves."""
    chosen = _chosen(live, request)
    if isinstance(chosen, Declined):
        return chosen
    places, names = _links(live.entries)
    groups = [_closed(places, names, index) for index in sorted(chosen)]
    protected = _protected(live)
    going: set[int] = set()
    spared: dict[MessageUuid, str] = {}
    for group in groups:
        why = _why_not(group, protected, force=request.force)
        if why:
            spared |= {live.entries[i].uuid: why for i in group & chosen}
        else:
            going |= group
    if not going:
        reasons = ", ".join(sorted(set(spared.values()))) or "nothing was found"
        return Declined(PATH, "nothing_to_snip", reasons)
    freed = sum((live.entries[i].weight for i in going), NOTHING)
    return SnipPlan(
        live.base,
        tuple(live.entries[i].uuid for i in sorted(going)),
        freed,
        live.family.tokens(live.live_weight),
        live.family.tokens(live.live_weight - freed),
        tuple(spared.items()),
    )


def could_snip_tokens(live: Snippable) -> int:
    """Tokens that the rules `errors` and `stale_reads` would free."""
    plan = plan_snip(live, SnipRequest(rules=("errors", "stale_reads")))
    return 0 if isinstance(plan, Declined) else plan.tokens_before - plan.tokens_after


def _chosen(live: Snippable, request: SnipRequest) -> set[int] | Declined:
    at = {entry.uuid: index for index, entry in enumerate(live.entries)}
    named = [*request.uuids, *(end for pair in request.ranges for end in pair)]
    missing = [uuid for uuid in named if uuid not in at]
    if missing:
        return Declined(PATH, "not_live", f"not in the live context: {', '.join(missing[:5])}")
    chosen = {at[uuid] for uuid in request.uuids}
    for first, last in request.ranges:
        chosen |= set(range(min(at[first], at[last]), max(at[first], at[last]) + 1))
    for rule in request.rules:
        find = _rule(rule)
        if find is None:
            return Declined(PATH, "unknown_rule", f"{rule[:40]!r}: there is errors, stale_reads and tool:GLOB")
        chosen |= find(live.records)
    return chosen


def _rule(rule: str) -> Callable[[Sequence[Record]], set[int]] | None:
    if rule == "errors":
        return _errors
    if rule == "stale_reads":
        return _stale_reads
    if rule.startswith("tool:"):
        pattern = rule.removeprefix("tool:").strip()
        return lambda records: {
            i for i, record in enumerate(records) if any(fnmatchcase(call.name, pattern) for call in record.calls)
        }
    return None


def _errors(records: Sequence[Record]) -> set[int]:
    return {i for i, record in enumerate(records) if any(result.is_error for result in record.results)}


def _stale_reads(records: Sequence[Record]) -> set[int]:
    """Calls that read a file which is read again, or written, later on."""
    later: set[str] = set()
    found: set[int] = set()
    for index in range(len(records) - 1, -1, -1):
        for call in reversed(records[index].calls):
            path = path_of(call.input)
            kind = tool_kind(call.name)
            if path and kind == READ and path in later:
                found.add(index)
            if path and kind in (READ, EDIT) and call.name not in EDITORS:
                later.add(path)
    return found


_Link = tuple[str, str]


def _links(entries: Sequence[Entry]) -> tuple[dict[_Link, set[int]], dict[int, list[_Link]]]:
    """What must leave together: the places of each call (with its result) and message id, and those of each place."""
    places: dict[_Link, set[int]] = {}
    for index, entry in enumerate(entries):
        for call in (*entry.calls, *entry.results):
            places.setdefault(("call", call), set()).add(index)
        if entry.message_id is not None and entry.role == "assistant":
            places.setdefault(("id", entry.message_id), set()).add(index)
    names: dict[int, list[_Link]] = {}
    for name, indices in places.items():
        for index in indices:
            names.setdefault(index, []).append(name)
    return places, names


def _closed(places: Mapping[_Link, set[int]], names: Mapping[int, list[_Link]], index: int) -> set[int]:
    """The place with whole message ids, and every call with its result."""
    done, waiting = {index}, [index]
    while waiting:
        for name in names.get(waiting.pop(), ()):
            fresh = places[name] - done
            done |= fresh
            waiting += fresh
    return done


def _protected(live: Snippable) -> dict[int, str]:
    """Places that no rule takes, and why; the reason `open call` holds even against force."""
    out: dict[int, str] = {}
    entries = live.entries
    first = next((i for i, e in enumerate(entries) if e.role == "user" and e.text_holding), None)
    for index in range(last_round_index(entries), len(entries)):
        out[index] = "the last round"
    for index, record in enumerate(live.records):
        if record.uuid in live.pinned:
            out[index] = "pinned"
        elif standing_instructions(users_words(record)):
            out[index] = "a standing instruction"
    if first is not None:
        out[first] = "the first message of the user"
    still_open = open_call_index(entries)
    if still_open is not None:
        for index in range(still_open, len(entries)):
            out[index] = "open call"
    return out


def _why_not(group: Iterable[int], protected: Mapping[int, str], *, force: bool) -> str:
    reasons = [protected[index] for index in sorted(group) if index in protected]
    if "open call" in reasons:
        return "open call"
    return "" if force or not reasons else reasons[0]
