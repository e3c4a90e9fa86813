"""Ids that stand more than once: which result of a call counts, and which of its calls it answers.

An interrupted call is often written down twice, or with a second result that says that it was aborted. What a call
brought stays what it brought: a note of failure after it takes nothing back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Call = TypeVar("Call", bound=Hashable)
Place = TypeVar("Place")


def counting_results(results: Iterable[tuple[Call, bool, Place]]) -> dict[Call, Place]:
    """Where the result stands that counts for each call: the last one that is no error, else the last one.

    `results` are the call's id, whether it is an error, and the place, from old to new.
    """
    found: dict[Call, tuple[bool, Place]] = {}
    for call, is_error, place in results:
        if not is_error or found.get(call, (True, None))[0]:
            found[call] = (is_error, place)
    return {call: place for call, (_, place) in found.items()}


def answered_call(calls: Iterable[int], result: int) -> int | None:
    """Which of the places of a repeated call a result answers: the nearest one before it; None where none is."""
    return max((place for place in calls if place < result), default=None)
