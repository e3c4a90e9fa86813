from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.memory_due import is_memory_due, tokens_until_due
from mcp_compact.compaction.policy import MemoryPolicy
from mcp_compact.compaction.snapshot import Base, Memory, Snapshot
from mcp_compact.messages.ids import ApiMessageId, MessageUuid, ToolUseId
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import NOTHING, Weight, family_of

KIND = family_of("claude-sonnet-4-5")
POLICY = MemoryPolicy()
NOTES = Memory("# Task\nmend the parser", 1, MessageUuid("r1"), 1)


def entry(seq: int, tokens: int, role: str = "assistant", calls: int = 0, message_id: str = "") -> Entry:
    ids = tuple(ToolUseId(f"t{seq}-{n}") for n in range(calls))
    return Entry(
        MessageUuid(f"r{seq}"),
        seq,
        role,
        ApiMessageId(message_id) if message_id else None,
        Weight(units=KIND.units(tokens)),
        text_holding=True,
        calls=ids,
    )


def snapshot(*entries: Entry, memory: Memory | None = None) -> Snapshot:
    weight = sum((e.weight for e in entries), NOTHING)
    return Snapshot(Base(len(entries), 0, ""), KIND, entries, True, weight, len(entries), memory=memory)


def test_the_first_is_due_at_ten_thousand_tokens_whoever_spoke_last() -> None:
    assert not is_memory_due(snapshot(entry(1, 9_900, "user")), POLICY)
    assert is_memory_due(snapshot(entry(1, 10_100, "user")), POLICY)
    assert is_memory_due(snapshot(entry(1, 10_100, calls=1)), POLICY)


def test_a_memory_of_headings_only_is_like_none() -> None:
    empty = replace(NOTES, text="# Session\n\n## Current state\n")
    assert not is_memory_due(snapshot(entry(2, 6_000), memory=empty), POLICY)
    assert is_memory_due(snapshot(entry(2, 10_100), memory=empty), POLICY)


def test_the_next_needs_five_thousand_more_and_three_calls() -> None:
    covered, work = entry(1, 50_000, "user"), [entry(n, 2_500, calls=1) for n in (2, 3)]
    assert not is_memory_due(snapshot(covered, *work, memory=NOTES), POLICY)
    assert is_memory_due(snapshot(covered, *work, entry(4, 100, calls=1), memory=NOTES), POLICY)
    assert not is_memory_due(snapshot(covered, *(entry(n, 500, calls=1) for n in (2, 3, 4)), memory=NOTES), POLICY)


def test_or_an_answer_without_any_call() -> None:
    asked = entry(2, 6_000, "user")
    assert not is_memory_due(snapshot(asked, memory=NOTES), POLICY)
    assert is_memory_due(snapshot(asked, entry(3, 10), memory=NOTES), POLICY)
    assert not is_memory_due(snapshot(asked, entry(3, 10), entry(4, 10, calls=1), memory=NOTES), POLICY)


def test_an_answer_in_several_records_is_one_answer() -> None:
    parts = (entry(3, 10, calls=1, message_id="m"), entry(4, 10, message_id="m"))
    assert not is_memory_due(snapshot(entry(2, 6_000, "user"), *parts, memory=NOTES), POLICY)


def test_a_memory_that_covers_everything_is_not_due() -> None:
    memory = replace(NOTES, mark_uuid=None, mark_seq=None, covers_all=True)
    assert not is_memory_due(snapshot(entry(2, 60_000), memory=memory), POLICY)


def test_a_memory_without_a_mark_covers_nothing() -> None:
    assert is_memory_due(snapshot(entry(1, 6_000), memory=replace(NOTES, mark_uuid=None, mark_seq=None)), POLICY)


@given(st.lists(st.tuples(st.integers(0, 8_000), st.integers(0, 3)), max_size=8), st.booleans())
def test_it_is_never_due_while_tokens_are_missing(parts: list[tuple[int, int]], has_memory: bool) -> None:
    entries = [entry(n, tokens, calls=calls) for n, (tokens, calls) in enumerate(parts, 2)]
    taken = snapshot(*entries, memory=NOTES if has_memory else None)
    if tokens_until_due(taken, POLICY) > 0:
        assert not is_memory_due(taken, POLICY)
