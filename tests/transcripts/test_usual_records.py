"""What is read the quick way, because nearly every line is like it, is read as anything else would be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.codec import parse_time
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.fields import time_of
from tests.transcripts.samples import SESSION, answer, call, result, text, user

ABSENT = object()
UUIDS = ("u1", "u2", "u3", "u4", "u5")
TIMES = ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:04.000Z", "2026-01-02 03:04:60.000Z", "1969-01-02T03:04:05.678Z")
FLAGS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
MODELS = ("claude-x", "<synthetic>")
BLOCKS = (
    text("<command-name>/do</command-name>"),
    text("words"),
    call("t1"),
    result("t1"),
    result("t2"),
    {"type": "x"},
    5,
)
CONTENTS: tuple[object, ...] = (
    "words",
    "",
    [],
    *([block] for block in BLOCKS),
    list(BLOCKS),
    {"type": "text"},
    5,
    None,
)
OF_RECORD: dict[str, tuple[object, ...]] = {
    "type": ("user", "assistant", "system", "progress", "summary", "message", "", 5, ["user"], ABSENT),
    "uuid": (*UUIDS, "", "u" * 201, 5, None, ["u1"], ABSENT),
    "parentUuid": (*UUIDS, "elsewhere", "", 5, None, ["u1"], {}, ABSENT),
    "timestamp": (*TIMES, 1_767_323_045, "", None, ["2026"]),
    "sessionId": (SESSION, "another", "", 5, None, ABSENT),
    "session_id": (SESSION, "another"),
    "parent_tool_use_id": ("t1", None),
    "agentId": ("a1", 5),
    "cwd": ("/one", "/two", "", 5),
    "gitBranch": ("main", "fix", "", None),
    "version": ("2.0", 2, None),
    "leafUuid": UUIDS,
    "summary": ("a title",),
    "message": (5, None, [], {}, ABSENT),
    "role": ("user",),
    **dict.fromkeys(FLAGS, (True, False, None, 1, "yes", [])),
}
OF_MESSAGE: dict[str, tuple[object, ...]] = {
    "role": ("user", "assistant", "system", "", 5, ["user"], ABSENT),
    "content": CONTENTS,
    "id": ("M1", "", 5),
    "model": ("", 5),
    "usage": ({"input_tokens": 7, "output_tokens": 1}, {"input_tokens": True}, [], 5),
    "stop_reason": ("end_turn", None),
}
BOUNDARY = {
    "type": "system",
    "subtype": "compact_boundary",
    "uuid": "b1",
    "parentUuid": None,
    "compactMetadata": {"preservedMessages": {"uuids": ["u2"]}},
}
SUMMARY = user("s1", "a summary", "b1", isCompactSummary=True)


def changed(usual: Mapping[str, Any], values: Mapping[str, tuple[object, ...]], draw: st.DrawFn) -> dict[str, Any]:
    """The object with a field or two as they hardly ever are."""
    pairs = [(key, value) for key, odd in values.items() for value in odd]
    odd = dict(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2)))
    return {key: value for key, value in {**usual, **odd}.items() if value is not ABSENT}


@st.composite
def records(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation in which anything may be odd."""
    found: list[dict[str, Any]] = []
    for uuid, parent in zip(UUIDS, (None, *UUIDS), strict=False):
        content = draw(st.sampled_from(CONTENTS))
        usual = user(uuid, content, parent) if draw(st.booleans()) else answer(uuid, "M", {"type": "text"}, parent)
        usual["message"] |= {"content": content, "model": draw(st.sampled_from(MODELS))}
        if draw(st.integers(0, 2)) == 0:
            usual["message"] = changed(usual["message"], OF_MESSAGE, draw)
        usual["timestamp"] = draw(st.sampled_from(TIMES))
        found.append(changed(usual, OF_RECORD, draw) if draw(st.booleans()) else usual)
        if draw(st.integers(0, 5)) == 0:
            found += [BOUNDARY, SUMMARY]
    return found


def fed(objects: list[dict[str, Any]], view: type[Any]) -> tuple[object, ...]:
    """All that a reader tells of these objects."""
    reader = ClaudeCodeReader("a file")
    parsed = [
        item for at, raw in enumerate(objects, 1) for item in reader.feed(view(raw), json.dumps(raw).encode(), at)
    ]
    facts = [reader.facts(agent) for agent in (None, *reader.agents)]
    return parsed, facts, reader.agents, reader.sole_agent, reader.state(), reader.report.as_json()


@given(records())
def test_the_quick_way_and_the_slow_one_give_the_same(objects: list[dict[str, Any]]):
    # No view of an object is a plain object, and only those are read the quick way.
    assert fed(objects, dict) == fed(objects, MappingProxyType)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("key", [*OF_RECORD, *(f"message.{key}" for key in OF_MESSAGE)])
def test_each_oddity_alone_is_read_as_the_slow_way_reads_it(key: str, model: str):
    values = OF_MESSAGE[key.removeprefix("message.")] if key.startswith("message.") else OF_RECORD[key]
    for value in values:
        objects = [user("u1", "words"), answer("u2", "M", text("words"), "u1"), answer("u3", "M", call("t1"), "u2")]
        objects[1]["message"]["model"] = model
        odd = objects[1]["message"] if key.startswith("message.") else objects[1]
        odd[key.removeprefix("message.")] = value
        if value is ABSENT:
            del odd[key.removeprefix("message.")]
        assert fed(objects, dict) == fed(objects, MappingProxyType), (key, value)


ISO = r"(19[67]0|2026|5138|0001)-(0[1-3]|1[0-3])-(1[0-9]|3[01])[T ]([01][0-9]|2[34]):[0-6][0-9]:[0-6][0-9][.,][0-9]{3}[Zz]"


@given(st.from_regex(ISO, fullmatch=True) | st.text(max_size=30) | st.integers() | st.none(), st.data())
def test_a_time_is_read_quickly_as_it_is_read_slowly(value: object, data: st.DataObject):
    assert time_of(value) == parse_time(value)
    if isinstance(value, str) and value:
        at = data.draw(st.integers(0, len(value) - 1))
        other = data.draw(st.sampled_from("0123456789 .:-+TZW\u0663") | st.characters())
        mutant = value[:at] + other + value[at + 1 :]
        assert time_of(mutant) == parse_time(mutant)
