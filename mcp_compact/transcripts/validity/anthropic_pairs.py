"""Calls and results in a list of Anthropic messages: each pair in two neighbouring turns, or in one answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_compact.messages.blocks import OBJECT, Raw
from mcp_compact.transcripts.validity.rules import Log

Place: TypeAlias = tuple[int, int]
"""A message's place, and a block's in it."""


@dataclass(slots=True)
class _Turn:
    """Neighbours of one role, as the API takes them."""

    role: str
    blocks: list[tuple[Place, Raw]] = field(default_factory=list)

    def of(self, *kinds: str) -> Iterator[tuple[Place, Raw]]:
        """The blocks of these types."""
        return ((place, block) for place, block in self.blocks if block.get("type") in kinds)

    @property
    def only_results(self) -> bool:
        """Does it hold nothing but results?"""
        return all(block.get("type") == "tool_result" for _, block in self.blocks)


def check_pairs(messages: Sequence[Any], log: Log) -> None:
    """Add what is wrong with the order of turns, and with calls and results in them."""
    turns = _turns(messages)
    if turns and turns[0].role != "user":
        log.add("first-user", turns[0].blocks[0][0][0] if turns[0].blocks else 0)
    seen: dict[str, int] = {}
    open_turn = _open_turn(turns)
    results: dict[str, int] = {}
    for place, block in (item for turn in turns for item in turn.of("tool_result")):
        results.setdefault(str(block.get("tool_use_id")), place[0])
    for number, turn in enumerate(turns):
        before = turns[number - 1] if number else None
        if turn.role == "assistant":
            following = turns[number + 1] if number + 1 < len(turns) else None
            _calls(turn, following, log, _Known(seen, results, is_open=number == open_turn))
            _servers(turn, log, is_last=following is None)
        else:
            _results(turn, before, log)


def _turns(messages: Sequence[Any]) -> list[_Turn]:
    turns: list[_Turn] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, OBJECT) else None
        if not isinstance(role, str) or role == "system":
            continue
        role = "assistant" if role == "assistant" else "user"
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role))
        content = message.get("content")
        if isinstance(content, list):
            turns[-1].blocks += [((index, at), block) for at, block in enumerate(content) if isinstance(block, OBJECT)]
        else:
            turns[-1].blocks.append(((index, 0), {"type": "text", "text": content}))
    return turns


def _open_turn(turns: Sequence[_Turn]) -> int:
    """The last answer if nothing but results of its own calls follows it; -1 where it is not so."""
    last = next((number for number in range(len(turns) - 1, -1, -1) if turns[number].role == "assistant"), -1)
    if last < 0:
        return -1
    calls = {str(block.get("id")) for _, block in turns[last].of("tool_use")}
    following = [block for turn in turns[last + 1 :] for _, block in turn.blocks]
    is_open = all(block.get("type") == "tool_result" and str(block.get("tool_use_id")) in calls for block in following)
    return last if is_open else -1


@dataclass(frozen=True, slots=True)
class _Known:
    """What calls are compared with: the calls so far, every result, and whether this answer may be open."""

    calls: dict[str, int]
    results: dict[str, int]
    is_open: bool


def _calls(turn: _Turn, following: _Turn | None, log: Log, known: _Known) -> None:
    answered = {str(block.get("tool_use_id")) for _, block in following.of("tool_result")} if following else set()
    for place, block in turn.of("tool_use"):
        call = str(block.get("id"))
        if call in known.calls:
            log.add("id-twice", *place, detail=f"{call} stands in messages[{known.calls[call]}] too")
        elif call not in answered and known.is_open:
            log.add("open", *place, detail=call)
        elif call not in answered:
            where = (
                f", its result stands in messages[{known.results[call]}]" if call in known.results else ", it has none"
            )
            log.add("unanswered", *place, detail=f"{call}{where}")
        known.calls.setdefault(call, place[0])


def _results(turn: _Turn, before: _Turn | None, log: Log) -> None:
    calls = {str(block.get("id")) for _, block in before.of("tool_use")} if before else set()
    taken: set[str] = set()
    is_late = False
    for place, block in turn.blocks:
        if block.get("type") != "tool_result":
            is_late = True
            continue
        call = str(block.get("tool_use_id"))
        if call not in calls:
            log.add("orphan", *place, detail=call)
        elif call in taken:
            log.add("result-twice", *place, detail=call)
        elif is_late:
            log.add("results-first", *place, detail=call)
        taken.add(call)


def _servers(turn: _Turn, log: Log, *, is_last: bool) -> None:
    """A server's calls and results: both halves in the turn. An answer that such a call ends may be sent back."""
    calls = {str(block.get("id")): place for place, block in turn.of("server_tool_use", "mcp_tool_use")}
    given = {
        str(block.get("tool_use_id")): place
        for place, block in turn.blocks
        if str(block.get("type")).endswith("_tool_result") and block.get("type") != "tool_result"
    }
    for half in given.keys() - calls.keys() if is_last else calls.keys() ^ given.keys():
        place = calls.get(half) or given[half]
        log.add("server-pair", *place, detail=f"{half} has no {'result' if half in calls else 'call'}")
