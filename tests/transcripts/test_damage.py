"""Whatever happens to the bytes of a transcript: reading ends well, and every whole line is read."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcp_compact.errors import CallerError
from mcp_compact.transcripts.anthropic import AnthropicReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.parsed import Parsed
from mcp_compact.transcripts.registry import detect_format, reader_for
from tests.transcripts.samples import answer, call, jsonl, read, result, text, user

OBJECTS = [
    {"type": "mode", "mode": "normal"},
    user("u1", "start \ud83d\ude00 \u2028 \u00e9", timestamp="2026-01-02T03:04:05.678Z", cwd="/project"),
    answer("a1", "M1", {"type": "thinking", "thinking": "hm", "signature": "sig"}, "u1"),
    answer("a2", "M1", call("t1"), "a1"),
    {
        "type": "progress",
        "uuid": "p1",
        "parentUuid": "a2",
        "sessionId": "s",
        "data": {"type": "agent_progress", "agentId": "g1", "message": user("e1", "task")},
    },
    user("u2", [result("t1", '{"type":"user","uuid":"quoted"}'), {"type": "image", "source": {"type": "url"}}], "p1"),
    user("x1", "sub", isSidechain=True),
    {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b1",
        "parentUuid": None,
        "logicalParentUuid": "u2",
        "compactMetadata": {"trigger": "auto", "preservedSegment": {"headUuid": "u2", "tailUuid": "u2"}},
    },
    user("s1", "summary", "b1", isCompactSummary=True),
    {"role": "assistant", "content": [text("bare")], "usage": {"input_tokens": 1}},
]
LINES = jsonl(OBJECTS).splitlines()
DATA = b"\n".join(LINES) + b"\n"

damage = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "put", "swap", "unline"]),
        st.integers(0, len(DATA) - 1),
        st.integers(0, 60),
        st.one_of(
            st.binary(min_size=1, max_size=4), st.sampled_from([b"\n", b"{", b'{"', b"}", b"\\ud800", b"null", b"\xff"])
        ),
    ),
    max_size=6,
)


def damaged(data: bytes, steps: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, at, length, bytes_ in steps:
        match kind:
            case "set":
                data = data[:at] + bytes_ + data[at + len(bytes_) :]
            case "cut":
                data = data[:at] + data[at + length :]
            case "put":
                data = data[:at] + bytes_ + data[at:]
            case "swap":
                data = data[at:] + data[:at]
            case _:
                end = data.find(b"\n", at)
                data = data[:end] + data[end + 1 :] if end >= 0 else data
    return data


def tried(read: Callable[[], list[Parsed]]) -> tuple[list[Parsed], str | None]:
    """What was read, or the code of the refusal."""
    try:
        return read(), None
    except CallerError as error:
        return [], error.code


@given(damage)
@settings(max_examples=200)
def test_damage_never_raises_and_loses_no_whole_line(steps: list[tuple[str, int, int, bytes]]):
    data = damaged(DATA, steps)
    _, parsed = read(data)
    bodies = {item.record.body for item in parsed}
    for line in data.split(b"\n"):
        if line in LINES:
            assert line in bodies
    for item in parsed:
        json.dumps([item.record.uuid, item.record.raw, item.agent_id], ensure_ascii=False).encode()


@given(st.integers(0, len(DATA)))
def test_file_that_is_still_being_written_gives_all_finished_lines(end: int):
    reader, parsed = read(DATA[:end])
    whole = [line for line in DATA[:end].split(b"\n") if line in LINES]
    own = [item.record.body for item in parsed if item.record.uuid != "e1"]
    assert own == whole
    reasons = [problem.reason for problem in reader.report.problems]
    # Cut right behind a carried message, the line ends with a whole record: only what stands before that one is torn.
    is_recovered = DATA[:end].endswith(b'"uuid": "e1"}')
    assert [reason.startswith("truncated") for reason in reasons] == [not is_recovered] * len(reasons)


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_lost_line_ends_lose_nothing(lines: list[bytes], kept: list[bool]):
    data = b"".join(line + (b"\n" if keep else b"") for line, keep in zip(lines, kept, strict=False))
    reader, parsed = read(data)
    carried = sum(b"agent_progress" in line for line in lines)
    assert len(parsed) == len(lines) + carried
    assert not reader.report.problems


@given(st.sampled_from(LINES), st.sampled_from(LINES), st.data())
def test_whole_line_behind_a_torn_one_is_recovered(torn: bytes, whole: bytes, data: st.DataObject):
    cut = torn[: data.draw(st.integers(1, len(torn) - 1))]
    record = json.loads(whole)
    assume("uuid" in record or "message" in record)
    # Where a value may stand, a record without envelope might be the torn one's own.
    assume("sessionId" in record or "parentUuid" in record or cut.rstrip()[-1:] not in (b":", b"[", b","))
    assert whole in [item.record.body for item in read(cut + whole + b"\n")[1]]


@given(damage, st.booleans())
@settings(max_examples=100)
def test_damaged_message_lists_are_refused_or_read(steps: list[tuple[str, int, int, bytes]], as_lines: bool):
    whole = DATA if as_lines else json.dumps({"messages": OBJECTS, "system": "s"}, indent=1).encode()
    reader = AnthropicReader("list")
    records, refusal = tried(lambda: list(reader.read(read_lines([damaged(whole, steps)]))))
    assert refusal in (None, "not_json", "not_a_transcript", "several_conversations")
    assert len(records) == reader.report.records or refusal


@given(st.one_of(st.binary(max_size=200), damage.map(lambda steps: damaged(DATA, steps))))
def test_any_bytes_are_refused_or_read(data: bytes):
    records, refusal = tried(lambda: list(reader_for(detect_format(data), "any").read(read_lines([data]))))
    assert all(item.record.body for item in records)
    assert refusal != ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "uuid", "role", "content", "text", "id", "data", "source", "message"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
FIELDS = [
    *("type", "uuid", "parentUuid", "logicalParentUuid", "message", "timestamp", "sessionId", "isSidechain", "agentId"),
    *("data", "subtype", "compactMetadata", "microcompactMetadata", "summary", "leafUuid", "role", "content", "isMeta"),
    *("isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly", "cwd", "parent_tool_use_id", "customTitle"),
]
names = st.sampled_from(["user", "assistant", "system", "progress", "summary", "custom-title", "message", "other"])


shapes = st.builds(
    lambda fields, name: {**fields, **name},
    st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=8),
    st.just({}) | st.builds(lambda name: {"type": name}, names),
)


@given(st.lists(shapes, max_size=4))
@settings(max_examples=150)
def test_objects_of_any_shape_are_kept(objects: list[dict]):
    reader, parsed = read(jsonl(objects))
    bodies = [item.record.body for item in parsed if item.record.body in jsonl(objects).splitlines()]
    assert bodies == jsonl(objects).splitlines()
    assert not reader.report.problems
    json.dumps([reader.state(), reader.report.as_json()], ensure_ascii=False).encode()
    for agent in (None, *reader.agents):
        reader.facts(agent)
