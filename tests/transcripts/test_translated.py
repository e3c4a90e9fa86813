"""Laws of every translated format: one conversation means the same in each, and damage is refused or survived."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.errors import CallerError
from mcp_compact.library import compact_transcript
from mcp_compact.transcripts.parsed import Parsed
from mcp_compact.transcripts.registry import detect_format
from tests.problems import problems
from tests.transcripts.foreign import (
    LINES,
    TELL_FAILURES,
    WRITERS,
    Call,
    Turn,
    jsonl,
    pairs,
    read,
    records,
    spoken,
    turns,
)

FORMATS = tuple(WRITERS)
TALK = [
    Turn(
        "Rename the gauges.",
        (("I look.", (Call("read", {"path": "a.py"}, "x = 1"), Call("run", {"n": 2}, "no", True))),),
    ),
    Turn("Go on.", (("Done.", ()),)),
]


def told(conversation: Sequence[Turn]) -> list[tuple[str, str]]:
    """The texts of a conversation; what came of calls stands in blocks of their own."""
    out = []
    for turn in conversation:
        out.append(("user", turn.asked))
        out += [("assistant", text) for text, _ in turn.answers]
    return out


def made(conversation: Sequence[Turn], *, with_failures: bool) -> list[tuple[str, object, str, bool]]:
    return [
        (call.name, call.given, call.output, call.failed and with_failures)
        for turn in conversation
        for _, calls in turn.answers
        for call in calls
    ]


@pytest.mark.parametrize("format", FORMATS)
@given(conversation=turns)
@settings(max_examples=10, deadline=None)
def test_a_conversation_says_the_same_in_every_format(format: str, conversation: list[Turn]):
    data = WRITERS[format](conversation)
    found = records(format, data)
    assert detect_format(data) == format
    assert spoken(found) == told(conversation)
    assert pairs(found) == made(conversation, with_failures=format in TELL_FAILURES)


@pytest.mark.parametrize("format", FORMATS)
@given(conversation=turns)
@settings(max_examples=5, deadline=None)
def test_what_is_read_compacts_into_a_valid_list(format: str, conversation: list[Turn]):
    result = compact_transcript([WRITERS[format](conversation)], output="anthropic", target_tokens=60)
    assert problems(result.messages) == []


@pytest.mark.parametrize("format", FORMATS)
def test_records_keep_their_uuids_and_everything_is_kept_and_counted(format: str):
    data = WRITERS[format](TALK)
    reader, first = read(format, data)
    _, second = read(format, data)
    assert [item.record.uuid for item in first] == [item.record.uuid for item in second]
    assert len({item.record.uuid for item in first}) == len(first)
    assert reader.report.records == len(first)
    assert reader.report.messages == sum(item.record.is_message for item in first)
    assert not reader.report.unknown_types
    assert not reader.report.unknown_blocks
    assert not reader.report.warning_counts
    kept = b"".join(item.record.body for item in first)
    assert all(json.dumps(word).encode()[1:-1] in kept for word in ("Rename the gauges.", "x = 1", "a.py", "Done."))


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_that_grows_keeps_what_it_had(format: str):
    def uuids(conversation: list[Turn]) -> list[str]:
        return [item.record.uuid for item in read(format, WRITERS[format](conversation))[1] if item.record.is_message]

    before, after = uuids(TALK[:1]), uuids(TALK)
    assert after[: len(before)] == before


@pytest.mark.parametrize("format", ["copilot-cli", "pi"])
def test_the_bytes_of_a_line_are_kept(format: str):
    data = WRITERS[format](TALK)
    bodies = {item.record.body for item in read(format, data)[1]}
    assert set(data.splitlines()) <= bodies


# ------------------------------------------------------------------ damage


FIELDS = (
    *("type", "role", "id", "data", "content", "message", "parts", "kind", "info", "kwargs", "lc", "request", "uuid"),
    *("response", "call_id", "args", "action", "observation", "source", "metadata", "toolCalls", "tool_calls", "steps"),
)
KINDS = (
    *("user", "assistant", "message", "human", "ai", "tool", "gemini", "compaction", "function_call", "toolResult"),
    *("MessageEvent", "ActionEvent", "mcp_call", "agent", "run", "model", "session", "user.message", "tool_result"),
)
names = st.sampled_from(FIELDS)
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def tried(format: str, data: bytes) -> list[Parsed] | str:
    """What a damaged file gives, or the code of the refusal."""
    try:
        return read(format, data)[1]
    except CallerError as error:
        return error.code if error.hint else "no hint"


def check(format: str, data: bytes) -> None:
    found = tried(format, data)
    if isinstance(found, str):
        assert found in ("not_json", "not_a_transcript", "several_conversations")
        return
    if any(item.record.is_message for item in found):
        assert problems(compact_transcript([data], format=format, output="anthropic").messages) == []


@pytest.mark.parametrize("format", FORMATS)
@given(share=st.floats(0.01, 0.99))
@settings(max_examples=6, deadline=None)
def test_a_truncated_file_is_refused_or_read(format: str, share: float):
    data = WRITERS[format](TALK)
    check(format, data[: int(len(data) * share)])


@pytest.mark.parametrize("format", FORMATS)
@given(order=st.permutations(range(12)), again=st.lists(st.integers(0, 11), max_size=3))
@settings(max_examples=6, deadline=None)
def test_entries_out_of_order_and_twice_leave_a_valid_context(format: str, order: list[int], again: list[int]):
    data = WRITERS[format](TALK)
    if format in LINES:
        lines = data.splitlines()
        mixed = [lines[at] for at in [*order, *again] if at < len(lines)]
        check(format, b"\n".join(mixed) + b"\n")
        return
    value = json.loads(data)
    name = next((key for key in ("messages", "history", "input", "contents", "steps") if key in value), "")
    entries = value[name] if name else value
    mixed = [entries[at] for at in [*order, *again] if at < len(entries)]
    check(format, json.dumps({**value, name: mixed} if name else mixed).encode())


@pytest.mark.parametrize("format", FORMATS)
def test_two_files_at_once_are_refused_or_read(format: str):
    data = WRITERS[format](TALK)
    check(format, data + b"\n" + data)


@pytest.mark.parametrize("format", FORMATS)
@given(lines=st.lists(st.dictionaries(names, values, max_size=6), max_size=4))
@settings(max_examples=25, deadline=None)
def test_entries_of_any_shape_are_kept_and_reported(format: str, lines: list[dict[str, object]]):
    found = tried(format, jsonl(lines))
    assert isinstance(found, list) or found in ("several_conversations", "not_a_transcript", "not_json")


def test_half_a_pair_of_surrogates_is_replaced_in_what_is_used():
    line = b'{"type":"user.message","data":{"content":"a\\ud83d"},"id":"e1"}'
    value = b'{"sessionId":"s","projectHash":"p","messages":[{"id":"m","type":"user","content":"a\\ud83d"}]}'
    for name, data in (("copilot-cli", line), ("gemini-cli", value)):
        assert [record.text for record in records(name, data) if record.is_message] == ["a\ufffd"]
