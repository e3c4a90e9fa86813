"""Where a live list may be cut, and how much of its end is kept.

All functions work on the live list without its service records; its first entry is the floor.
An index `i` means that entries from `i` on are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_compact.compaction.policy import TailLimits
from mcp_compact.messages.ids import ApiMessageId, ToolUseId
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import Family, Weight

NOTHING_COVERED = -1
"""`last_summarized_index` where the memory covers nothing of the list."""


def calculate_messages_to_keep_index(
    messages: Sequence[Entry], last_summarized_index: int | None, limits: TailLimits, family: Family
) -> int:
    """Index of the first kept entry.

    What the memory does not cover is kept; from there it walks back until the minima (tokens and
    text-holding messages) or the maximum are met. None says that the memory covers everything.
    Calls and their results, the records of one message id, the last round and an open call stay whole.
    """
    start = len(messages) if last_summarized_index is None else last_summarized_index + 1
    weight = total(messages[start:])
    texts = sum(entry.text_holding for entry in messages[start:])
    while start > 0 and not _met(limits, family.tokens(weight), texts):
        entry = messages[start - 1]
        if limits.capped and family.tokens(weight + entry.weight) > limits.max_tokens:
            break
        start -= 1
        weight += entry.weight
        texts += entry.text_holding
    needed = needed_indices(messages)
    start = min(start, last_round_index(messages))
    naive, start = start, _closed(needed, start)
    if limits.capped and family.tokens(total(messages[start:])) > limits.max_tokens:
        return _capped(messages, needed, naive, limits, family)
    return start


def _met(limits: TailLimits, tokens: int, texts: int) -> bool:
    if tokens >= limits.max_tokens:
        return True
    return tokens >= limits.min_tokens and texts >= limits.min_text_block_messages


def _capped(messages: Sequence[Entry], needed: Sequence[int], start: int, limits: TailLimits, family: Family) -> int:
    """The earliest safe cut at or after `start` whose tail fits; the last round is always kept."""
    last = _closed(needed, last_round_index(messages))
    weight = total(messages[start:])
    for index in range(start, last):
        if family.tokens(weight) <= limits.max_tokens and _closed(needed, index) == index:
            return index
        weight -= messages[index].weight
    return last


def adjust_index_to_preserve_api_invariants(messages: Sequence[Entry], start: int) -> int:
    """Move a cut back, never forward, until every kept result has its call and no message id is split.

    A call that stands before the list cannot be reached; the view quotes its result.
    """
    return _closed(needed_indices(messages), start)


def is_safe_cut(messages: Sequence[Entry], index: int) -> bool:
    """Does a cut here part no call from its result and no message id?"""
    return adjust_index_to_preserve_api_invariants(messages, index) == index


def needed_indices(messages: Sequence[Entry]) -> list[int]:
    """For each entry the smallest index that must be kept with it: its calls, the start of its message id."""
    first_of_id: dict[ApiMessageId, int] = {}
    call_at: dict[ToolUseId, int] = {}
    for index, entry in enumerate(messages):
        if entry.role == "assistant" and entry.message_id is not None:
            first_of_id.setdefault(entry.message_id, index)
        for call in entry.calls:
            call_at.setdefault(call, index)
    return [
        min(
            [index, *(call_at[result] for result in entry.results if result in call_at)]
            + ([first_of_id[entry.message_id]] if entry.role == "assistant" and entry.message_id is not None else [])
        )
        for index, entry in enumerate(messages)
    ]


def _closed(needed: Sequence[int], start: int) -> int:
    checked = len(needed)
    while checked > start:
        checked -= 1
        start = min(start, needed[checked])
    return start


def open_call_index(messages: Sequence[Entry]) -> int | None:
    """Index of the last answer if calls of it are open: unanswered, with only results after it."""
    at = len(messages) - 1
    answered: set[ToolUseId] = set()
    while at >= 0 and messages[at].role == "user" and messages[at].results and not messages[at].text_holding:
        answered.update(messages[at].results)
        at -= 1
    if at < 0 or messages[at].role != "assistant":
        return None
    first = _start_of_answer(messages, at)
    calls = {call for entry in messages[first : at + 1] for call in entry.calls}
    return first if calls - answered else None


def last_round_index(messages: Sequence[Entry]) -> int:
    """Index of the last round: the last answer and what follows it, or the last message where none does."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "assistant":
            return _start_of_answer(messages, at)
    return max(0, len(messages) - 1)


def _start_of_answer(messages: Sequence[Entry], at: int) -> int:
    message_id = messages[at].message_id
    if message_id is None:
        return at
    return next(i for i, entry in enumerate(messages) if entry.message_id == message_id)


def total(messages: Sequence[Entry]) -> Weight:
    """The weight of some entries together."""
    # By field: a sum of values makes one for each message, and this is asked for again and again.
    units = results = media = number = 0
    for entry in messages:
        weight = entry.weight
        units += weight.units
        results += weight.results
        media += weight.media
        number += weight.messages
    return Weight(units, results, media, number)


def index_of_mark(messages: Sequence[Entry], mark_seq: int | None) -> int:
    """Position of the last entry that a mark covers; `NOTHING_COVERED` where it stands before the floor."""
    if mark_seq is None:
        return NOTHING_COVERED
    covered = [i for i, entry in enumerate(messages) if entry.seq <= mark_seq]
    return covered[-1] if covered else NOTHING_COVERED
