from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.cuts import (
    adjust_index_to_preserve_api_invariants,
    calculate_messages_to_keep_index,
    is_safe_cut,
    last_round_index,
    open_call_index,
    total,
)
from mcp_compact.compaction.policy import TailLimits
from mcp_compact.messages.ids import ApiMessageId, MessageUuid, ToolUseId
from mcp_compact.messages.message import Entry
from mcp_compact.messages.weights import OPENAI, Family, Weight

PLAIN = Family("plain", 1000, 0)


def entry(
    number: int,
    role: str = "user",
    *,
    tokens: int = 100,
    text: bool = True,
    message_id: str = "",
    calls: tuple[str, ...] = (),
    results: tuple[str, ...] = (),
) -> Entry:
    return Entry(
        MessageUuid(f"r{number}"),
        number,
        role,
        ApiMessageId(message_id) if message_id else None,
        Weight(units=tokens * 1000, messages=1),
        text,
        tuple(ToolUseId(c) for c in calls),
        tuple(ToolUseId(r) for r in results),
    )


def talk(number: int, tokens: int = 100) -> list[Entry]:
    return [entry(i, "user" if i % 2 else "assistant", tokens=tokens) for i in range(1, number + 1)]


def limits(low: int, texts: int, high: int, *, capped: bool = False) -> TailLimits:
    return TailLimits(low, texts, high, capped)


def test_what_the_memory_does_not_cover_is_kept() -> None:
    assert calculate_messages_to_keep_index(talk(20), 9, limits(100, 1, 5000), PLAIN) == 10


def test_a_tail_below_the_minima_walks_back_until_both_are_met() -> None:
    assert calculate_messages_to_keep_index(talk(20), None, limits(450, 3, 5000), PLAIN) == 15
    assert calculate_messages_to_keep_index(talk(20), None, limits(200, 7, 5000), PLAIN) == 13


def test_the_record_that_reaches_the_maximum_stays() -> None:
    messages = [*talk(4), entry(5, "assistant", tokens=9000), entry(6)]
    assert calculate_messages_to_keep_index(messages, None, limits(8000, 9, 8000), PLAIN) == 4


def test_it_never_walks_past_the_floor() -> None:
    assert calculate_messages_to_keep_index(talk(3), None, limits(10_000, 5, 40_000), PLAIN) == 0
    assert calculate_messages_to_keep_index([], None, limits(1, 1, 1), PLAIN) == 0


def test_results_in_every_kept_message_pull_their_calls_in() -> None:
    messages = [
        entry(1),
        entry(2, "assistant", text=False, message_id="x", calls=("orphan",)),
        entry(3, "assistant", text=False, message_id="x", calls=("valid",)),
        entry(4, text=False, results=("orphan", "valid")),
        entry(5, "assistant"),
    ]
    assert adjust_index_to_preserve_api_invariants(messages, 2) == 1
    assert adjust_index_to_preserve_api_invariants(messages, 4) == 4


def test_records_of_one_message_id_are_never_split_even_with_results_between() -> None:
    messages = [
        entry(1),
        entry(2, "assistant", text=False, message_id="m", calls=("t1",)),
        entry(3, text=False, results=("t1",)),
        entry(4, "assistant", message_id="m"),
    ]
    assert adjust_index_to_preserve_api_invariants(messages, 3) == 1


def test_an_open_call_and_the_last_round_always_stay() -> None:
    messages = [
        *talk(4),
        entry(5, "assistant", tokens=9000, message_id="m", calls=("a", "b")),
        entry(6, results=("a",), text=False),
    ]
    assert open_call_index(messages) == 4
    assert last_round_index(messages) == 4
    assert calculate_messages_to_keep_index(messages, None, limits(10, 1, 100, capped=True), PLAIN) == 4


def test_an_answered_or_overtaken_call_is_not_open() -> None:
    assert (
        open_call_index([entry(1), entry(2, "assistant", calls=("a",)), entry(3, results=("a",), text=False)]) is None
    )
    assert open_call_index([entry(1), entry(2, "assistant", calls=("a",)), entry(3)]) is None


def test_a_capped_maximum_is_a_real_one() -> None:
    messages = [
        entry(1),
        entry(2, "assistant", tokens=900, calls=("t",)),
        entry(3, results=("t",), text=False),
        *talk(4, 100),
    ]
    index = calculate_messages_to_keep_index(messages, None, limits(500, 9, 600, capped=True), PLAIN)
    assert PLAIN.tokens(total(messages[index:])) <= 600
    assert is_safe_cut(messages, index)


@st.composite
def lists(draw: st.DrawFn) -> list[Entry]:
    out: list[Entry] = []
    open_calls: list[str] = []
    for number in range(1, draw(st.integers(1, 25)) + 1):
        role = draw(st.sampled_from(["user", "assistant"]))
        tokens = draw(st.integers(1, 500))
        if role == "assistant":
            calls = tuple(f"t{number}{i}" for i in range(draw(st.integers(0, 2))))
            open_calls += calls
            out.append(
                entry(
                    number,
                    role,
                    tokens=tokens,
                    text=draw(st.booleans()),
                    message_id=draw(st.sampled_from(["", "m1", "m2"])),
                    calls=calls,
                )
            )
        else:
            results = tuple(draw(st.permutations(open_calls))[: draw(st.integers(0, 2))]) if open_calls else ()
            open_calls = [c for c in open_calls if c not in results]
            out.append(entry(number, role, tokens=tokens, text=draw(st.booleans()), results=results))
    return out


@given(lists(), st.integers(0, 25))
def test_adjusting_never_moves_forward_and_leaves_no_pair_split(messages: list[Entry], start: int) -> None:
    start = min(start, len(messages))
    cut = adjust_index_to_preserve_api_invariants(messages, start)
    assert cut <= start
    kept = messages[cut:]
    gone = messages[:cut]
    assert not {c for e in gone for c in e.calls} & {r for e in kept for r in e.results}
    assert not {e.message_id for e in gone if e.message_id and e.role == "assistant"} & {
        e.message_id for e in kept if e.message_id and e.role == "assistant"
    }
    assert adjust_index_to_preserve_api_invariants(messages, cut) == cut


@given(lists(), st.integers(1, 3000), st.integers(0, 6), st.integers(1, 6000), st.booleans())
def test_a_kept_tail_is_safe_and_as_long_as_it_should_be(
    messages: list[Entry], low: int, texts: int, high: int, capped: bool
) -> None:
    rule = limits(min(low, high), texts, high, capped=capped)
    index = calculate_messages_to_keep_index(messages, None, rule, PLAIN)
    assert is_safe_cut(messages, index)
    tokens = PLAIN.tokens(total(messages[index:]))
    last = adjust_index_to_preserve_api_invariants(messages, last_round_index(messages))
    if capped:
        assert tokens <= high or index == last
    elif index > 0:
        held = sum(e.text_holding for e in messages[index:])
        assert tokens >= high or (tokens >= rule.min_tokens and held >= texts)


@given(lists(), st.integers(-1, 24))
def test_nothing_newer_than_the_mark_leaves(messages: list[Entry], mark: int) -> None:
    mark = min(mark, len(messages) - 1)
    index = calculate_messages_to_keep_index(messages, mark, limits(10, 1, 50), OPENAI)
    assert index <= mark + 1
