"""Repairs a list rule by rule: what concerns one message first, then their order, until nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

from mcp_compact.messages.blocks import TextBlock, ToolResultBlock, ToolUseBlock, parse_content
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.valid import Turn, valid_turns
from mcp_compact.transcripts.validity.rules import LEFT, STRUCTURE, Change, Finding, Json, Rule, refused

ROUNDS = 12
"""A repair may uncover what another one has to mend: no chain of them is as long as this."""
BROKEN = "[Content that could not be sent as it was]"


@dataclass(frozen=True, slots=True)
class Item:
    """A message, and its place in the list that was given; -1 for what a repair added."""

    index: int
    message: Any


Edit: TypeAlias = Callable[[Json, Finding], Json | None]
"""Mends one message; None leaves it out."""
Reorder: TypeAlias = Callable[[Sequence[Item], Sequence[Finding]], list[Item]]
"""Mends what concerns several messages."""


@dataclass(frozen=True, slots=True)
class Mender:
    """How the rules of one provider are mended; `order` mends all that are marked as structure."""

    edits: Mapping[str, Edit]
    lists: Mapping[str, Reorder]
    order: Reorder


@dataclass(frozen=True, slots=True)
class Provider:
    """Whose rules they are: how a list is checked and mended."""

    name: str
    title: str
    rules: tuple[Rule, ...]
    check: Callable[[Sequence[Any]], list[Finding]]
    mender: Mender

    def rule(self, rule_id: str) -> Rule:
        """A rule by its id."""
        return next(rule for rule in self.rules if rule.id == rule_id)


@dataclass(frozen=True, slots=True)
class Repaired:
    """A list that was mended, what was changed, and what is still found in it."""

    messages: list[Any]
    changes: tuple[Change, ...] = ()
    left: tuple[Finding, ...] = field(default=())


def repair(provider: Provider, messages: Sequence[Any], leaving: Collection[str] = ()) -> Repaired:
    """The list with as few changes as its provider's rules ask for; the messages given are not changed.

    `leaving` are ids of rules whose findings stay as they are.
    """
    items = [Item(index, message) for index, message in enumerate(messages)]
    changes: list[Change] = []
    found: list[Finding] = []
    for _ in range(ROUNDS):
        found = provider.check([item.message for item in items])
        known = {rule.id: rule for rule in provider.rules}
        todo = [f for f in refused(found) if known[f.rule].mend != LEFT and f.rule not in leaving]
        if not todo:
            break
        local = [finding for finding in todo if finding.rule in provider.mender.edits]
        several = [finding for finding in todo if finding.rule in provider.mender.lists]
        done = local or several or todo
        changes += [_change(finding, items, known[finding.rule]) for finding in done]
        if local:
            items = _edited(items, local, provider.mender.edits)
        elif several:
            # One rule at a time: each moves places.
            first = provider.mender.lists[several[0].rule]
            same = [finding for finding in several if provider.mender.lists[finding.rule] is first]
            changes = [*changes[: len(changes) - len(several)], *(_change(f, items, known[f.rule]) for f in same)]
            items = first(items, same)
        else:
            items = provider.mender.order(items, todo)
    return Repaired([item.message for item in items], tuple(changes), tuple(found))


def _change(finding: Finding, items: Sequence[Item], rule: Rule) -> Change:
    index = items[finding.index].index if 0 <= finding.index < len(items) else -1
    path = finding.path
    if index != finding.index:
        head, _, rest = path.partition("]")
        name = head.partition("[")[0]
        path = f"{name}[{index}]{rest}" if index >= 0 else f"an added message{rest}"
    return Change(finding.rule, index, path, f"{finding.text}; {how_mended(rule)}")


def how_mended(rule: Rule) -> str:
    """What a repair does about a rule, in words; empty where it does nothing."""
    if rule.mend == LEFT:
        return ""
    return rule.mend if rule.mend != STRUCTURE else MENDED[rule.id.partition("/")[2]]


MENDED = {
    "id-twice": "one was kept, the others quoted as text",
    "unanswered": "its late result was moved behind it, or a short error result was put there",
    "orphan": "moved behind its call, or quoted as text",
    "result-twice": "the last one that is no error was kept",
    "response-twice": "the first ones were kept, the others quoted as text",
    "results-first": "moved before the other content",
    "server-pair": "quoted as text",
    "calls-count": "the others went to a further answer",
}
"""What putting in order does about each rule that asks for it."""


def _edited(items: Sequence[Item], found: Sequence[Finding], edits: Mapping[str, Edit]) -> list[Item]:
    by_index: dict[int, list[Finding]] = {}
    for finding in found:
        by_index.setdefault(finding.index, []).append(finding)
    out: list[Item] = []
    for at, item in enumerate(items):
        message: Any = item.message
        # From the last block on, so that the places of those before it hold; one repair for each place.
        done: set[tuple[int, ...]] = set()
        for finding in sorted(by_index.get(at, ()), key=lambda f: f.at, reverse=True):
            if message is not None and finding.at not in done:
                message = edits[finding.rule](message, finding)
                done.add(finding.at)
        if message is not None:
            out.append(Item(item.index, message))
    return out


def with_block(message: Json, key: str, at: Sequence[int], change: Callable[[Any], Sequence[Any]]) -> Json:
    """The message with the block at a place replaced by what `change` makes of it (none: left out).

    What was mended behind it may have taken it along: then nothing is left to do.
    """
    blocks = list(message[key])
    first, *rest = at
    if first >= len(blocks):
        return message
    if rest:
        blocks[first] = with_block(dict(blocks[first]), "content", rest, change)
    else:
        blocks[first : first + 1] = change(blocks[first])
    return {**message, key: blocks}


def quoted(value: object) -> str:
    """A value as text, for a place where it cannot stand as it is."""
    return f"{BROKEN}\n{canonical(value).decode(errors='replace')}"


def short_id(name: str) -> str:
    """A short id that stands for one that a provider does not take: the same for the same."""
    return f"call_{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"


OWN = "own"
"""The key of a block of ours under which the provider's own part or message stands."""


def call_block(name: str, tool: object, own: Any) -> ToolUseBlock:  # noqa: ANN401 - JSON
    """A call of a tool in our form, by which it is put in order."""
    called = tool if isinstance(tool, str) and tool else "a tool"
    raw = {"type": "tool_use", "id": name, "name": called, "input": {}, OWN: own}
    return ToolUseBlock(ToolUseId(name), called, {}, server=False, raw=raw)


def result_block(name: str, said: object, own: Any) -> ToolResultBlock:  # noqa: ANN401 - JSON
    """A result in our form."""
    parts = parse_content(said)
    content = "\n".join(part.text for part in parts if isinstance(part, TextBlock))
    raw = {"type": "tool_result", "tool_use_id": name, "content": content, OWN: own}
    return ToolResultBlock(ToolUseId(name), parts, is_error=False, server=False, raw=raw)


def in_order(
    items: Sequence[Item],
    turn_of: Callable[[int, Any], Turn | None],
    back: Callable[[Turn, Any], Iterable[Any]],
    *,
    first_user: bool = True,
) -> list[Item]:
    """The items with calls and results in order, by the same rules as any context that is given out.

    `turn_of` makes a turn of the message at a place, None for what has no part in it; `back` makes messages of a
    changed turn, given the message that it came from (None for an added one).
    """
    turns: list[Turn] = []
    before: dict[int, list[Item]] = {}
    held: list[Item] = []
    for place, item in enumerate(items):
        turn = turn_of(place, item.message)
        if turn is None:
            held.append(item)
            continue
        before[place], held = held, []
        turns.append(Turn(turn.role, turn.blocks, MessageUuid(str(place)), turn.message_id))
    out: list[Item] = []
    for turn in valid_turns(turns, first_user=first_user)[0]:
        place = int(turn.uuid) if turn.uuid is not None else -1
        out += before.pop(place, ())
        item = items[place] if place >= 0 else Item(-1, None)
        if turn.whole and place >= 0:
            out.append(item)
        else:
            out += [Item(item.index, message) for message in back(turn, item.message)]
    return [*out, *(item for kept in before.values() for item in kept), *held]
