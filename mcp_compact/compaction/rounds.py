"""Rounds: an answer with the user turn that answers it. What is dropped from the head goes by whole rounds."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_compact.compaction.cuts import needed_indices, open_call_index
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import NOTHING, Family


def round_starts(messages: Sequence[Entry]) -> list[int]:
    """Indices at which the head may be cut: the start of each answer, and the first message.

    A cut there parts no call from its result and no message id.
    """
    needed = needed_indices(messages)
    closed: list[int] = [0] * len(messages)
    lowest = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        lowest = min(lowest, needed[index])
        closed[index] = lowest
    return [
        index
        for index, entry in enumerate(messages)
        if index == 0 or (entry.role == "assistant" and closed[index] == index)
    ]


def peel(messages: Sequence[Entry], tokens: int, family: Family) -> int:
    """Index from which on to keep so that at least `tokens` leave from the head, by whole rounds.

    The last round and an open call always stay, so less may leave than asked.
    """
    starts = round_starts(messages)
    last = starts[-1] if starts else 0
    if (still_open := open_call_index(messages)) is not None:
        last = min(last, still_open)
    weight, at = NOTHING, 0
    for start in [*starts[1:], len(messages)]:
        if family.tokens(weight) >= tokens or at >= last:
            break
        for entry in messages[at:start]:
            weight += entry.weight
        at = start
    return min(at, last)
