from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_compact.messages.live import live_context
from mcp_compact.messages.markers import ClearKind, MarkerKind
from mcp_compact.transcripts.native import (
    boundary_marker,
    clearing_marker,
    expand_preserved,
    native_boundary,
    native_clearing,
    summary_of,
)
from tests.transcripts.samples import answer, call, read_objects, result, stored, text, user


def boundary(meta: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b1",
        "parentUuid": None,
        "logicalParentUuid": "a2",
        "content": "Conversation compacted",
        "compactMetadata": meta or {"trigger": "auto", "preTokens": 155_000},
        **more,
    }


BEFORE = (
    user("u1", "start"),
    answer("a1", "M1", text("one"), "u1"),
    user("u2", "more", "a1"),
    answer("a2", "M2", text("two"), "u2"),
)
SUMMARY = user("s1", "This session is being continued", "b1", isCompactSummary=True, isVisibleInTranscriptOnly=True)
HOOK = {"type": "progress", "uuid": "h1", "parentUuid": "b1", "data": {"type": "hook_progress"}}
SEGMENT = {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}
NEWER = {
    "trigger": "manual",
    "preTokens": 200_841,
    "postTokens": 14_642,
    "preCompactDiscoveredTools": ["zeta", "alpha", "zeta"],
    "preservedSegment": SEGMENT,
}
LISTED = {**NEWER, "preservedMessages": {"anchorUuid": "s1", "uuids": ["u2", "a2"], "allUuids": ["u2", "h0", "a2"]}}


def snake(value: Any) -> Any:
    """The SDK's spelling of the same."""
    if isinstance(value, dict):
        return {"".join("_" + c.lower() if c.isupper() else c for c in key): snake(item) for key, item in value.items()}
    return value


def live_uuids(*objects: dict[str, Any]) -> list[str]:
    records = stored(read_objects(*objects)[1])
    at = next(index for index, record in enumerate(records) if record.subtype == "compact_boundary")
    found = native_boundary(records[at], summary_of(records[at], records[at + 1 :]))
    assert found
    marker = boundary_marker(found, records[at].seq, None, expand_preserved(found, records[:at]))
    return [record.uuid for record in live_context(records, [marker]).all]


def test_older_boundary_gives_trigger_and_size():
    (record,) = stored(read_objects(boundary())[1])
    found = native_boundary(record)
    assert found
    assert (found.trigger, found.pre_tokens, found.post_tokens) == ("auto", 155_000, None)
    assert (found.preserved, found.discovered_tools, found.service) == ((), (), None)


@pytest.mark.parametrize("spelled", [{"meta": LISTED}, {"meta": {}, "compact_metadata": snake(LISTED)}])
def test_newer_boundary_gives_sizes_kept_records_and_tools_in_both_spellings(spelled: dict[str, Any]):
    line = boundary(**spelled)
    if "compact_metadata" in line:
        del line["compactMetadata"]
    found = native_boundary(stored(read_objects(line)[1])[0])
    assert found
    assert (found.trigger, found.pre_tokens, found.post_tokens) == ("manual", 200_841, 14_642)
    assert found.preserved == ("u2", "a2")
    assert (found.head, found.anchor, found.tail) == ("u2", "s1", "a2")
    assert found.discovered_tools == ("alpha", "zeta")


def test_segment_that_names_summary_and_messages_is_understood():
    meta = {"preservedSegment": {"summaryMessageUuid": "s1", "preservedMessageUuids": ["u2", "a2"]}}
    found = native_boundary(stored(read_objects(boundary(meta))[1])[0])
    assert found
    assert (found.service, found.preserved) == ("s1", ("u2", "a2"))


def test_odd_metadata_is_no_metadata():
    odd = {
        "trigger": 5,
        "preTokens": "many",
        "postTokens": -1,
        "preservedSegment": [],
        "preservedMessages": {"uuids": [7]},
    }
    found = native_boundary(stored(read_objects(boundary(odd))[1])[0])
    assert found
    assert (found.trigger, found.pre_tokens, found.post_tokens, found.preserved) == (None, None, None, ())
    assert native_boundary(stored(read_objects(user("u1", "x"))[1])[0]) is None


def test_summary_is_found_behind_progress_and_hook_records():
    records = stored(read_objects(*BEFORE, boundary(), HOOK, {**SUMMARY, "parentUuid": "h1"}, user("u3", "x", "s1"))[1])
    assert (found := summary_of(records[4], records[5:]))
    assert found.uuid == "s1"
    assert summary_of(records[4], records[5:6]) is None
    assert summary_of(records[4], [records[4], *records[5:]]) is None


def test_childs_summary_comes_before_any_other():
    stray = user("s0", "an older summary", "a2", isCompactSummary=True)
    records = stored(read_objects(*BEFORE, boundary(), stray, SUMMARY)[1])
    assert (found := summary_of(records[4], records[5:]))
    assert found.uuid == "s1"


def test_live_context_after_an_older_boundary_is_the_summary_and_what_follows():
    assert live_uuids(*BEFORE, boundary(), SUMMARY, HOOK, user("u3", "go", "s1")) == ["s1", "u3"]


def test_boundary_with_an_unknown_logical_parent_still_counts():
    assert live_uuids(*BEFORE, boundary(logicalParentUuid="GONE"), SUMMARY, user("u3", "go", "s1")) == ["s1", "u3"]


@pytest.mark.parametrize("meta", [NEWER, LISTED])
@pytest.mark.parametrize("parent", ["s1", "a2"])
@pytest.mark.parametrize("own_parent", [{}, {"parentUuid": "a2"}])
def test_live_context_after_a_newer_boundary_holds_the_kept_records(meta: dict, parent: str, own_parent: dict):
    lines = (
        *BEFORE,
        boundary(meta, **own_parent),
        SUMMARY,
        user("u3", "go", parent),
        answer("a3", "M3", text("ok"), "u3"),
    )
    assert live_uuids(*lines) == ["s1", "u2", "a2", "u3", "a3"]


def test_segment_whose_head_is_not_met_keeps_nothing():
    meta = {"preservedSegment": {**SEGMENT, "headUuid": "nowhere"}}
    assert live_uuids(*BEFORE, boundary(meta), SUMMARY, user("u3", "go", "s1")) == ["s1", "u3"]


def segment(head: str, tail: str, *objects: dict[str, Any]) -> tuple[str, ...]:
    meta = {"preservedSegment": {"headUuid": head, "tailUuid": tail}}
    found = native_boundary(stored(read_objects(boundary(meta))[1])[0])
    assert found
    return expand_preserved(found, stored(read_objects(*objects)[1]))


def test_segment_holds_the_results_of_parallel_calls():
    parallel = (
        user("u1", "go"),
        answer("a1", "M1", call("t1"), "u1"),
        answer("a2", "M1", call("t2"), "a1"),
        user("r1", [result("t1")], "a1"),
        HOOK | {"parentUuid": "a2"},
        user("r2", [result("t2")], "h1"),
        user("w1", "a prompt that was taken back", "r2"),
        answer("a3", "M2", text("done"), "r2"),
    )
    assert segment("a1", "a3", *parallel) == ("a1", "a2", "r1", "r2", "a3")


def test_segment_goes_on_over_cycles_and_lost_parents():
    lines = (user("u1", "a", "u2"), user("u2", "b", "GONE"), user("u3", "c", "u3"))
    assert segment("u1", "u3", *lines) == ("u1", "u2", "u3")


def test_segment_that_cannot_be_known_keeps_nothing():
    lines = (user("u1", "a"), user("u2", "b"), user("u3", "c", "u2"))
    assert segment("u1", "u3", *lines) == ()
    assert segment("u3", "u1", *lines) == ()
    assert segment("u2", "GONE", *lines) == ()


def test_rewound_compaction_does_not_count():
    again = user("u9", "instead", "a1")
    assert live_uuids(*BEFORE, boundary(), SUMMARY, user("u3", "go", "s1"), again) == ["u1", "a1", "u9"]


def test_boundary_marker_says_what_it_is():
    records = stored(read_objects(*BEFORE, boundary(LISTED), SUMMARY)[1])
    found = native_boundary(records[4], records[5])
    assert found
    marker = boundary_marker(found, seq=5, parent_seq=2)
    assert (marker.kind, marker.seq, marker.base_seq, marker.parent_seq) == (MarkerKind.COMPACT, 5, 5, 2)
    assert (marker.service, marker.preserved, marker.native) == (("s1",), ("u2", "a2"), True)
    assert marker.metadata == {
        "strategy": "native",
        "trigger": "manual",
        "preTokens": 200_841,
        "postTokens": 14_642,
        "preCompactDiscoveredTools": ["alpha", "zeta"],
    }
    json.dumps(marker.metadata)


def test_micro_boundary_names_the_cleared_results():
    meta = {"trigger": "auto", "preTokens": 60_364, "tokensSaved": 21_294, "compactedToolIds": ["t1", "t9", 4]}
    micro = {"type": "system", "subtype": "microcompact_boundary", "uuid": "m1", "microcompactMetadata": meta}
    records = stored(
        read_objects(answer("a1", "M1", call("t1")), user("u1", [text("x"), result("t1")], "a1"), micro)[1]
    )
    found = native_clearing(records[2])
    assert found
    assert (found.trigger, found.pre_tokens, found.tokens_saved) == ("auto", 60_364, 21_294)
    assert found.tool_use_ids == ("t1", "t9")
    marker = clearing_marker(found, 3, None, {records[1].results[0].tool_use_id: (records[1].uuid, 1)})
    assert (marker.kind, marker.native, marker.base_seq) == (MarkerKind.MICRO, True, 3)
    (clearing,) = marker.cleared
    assert (clearing.kind, clearing.uuid, clearing.block, clearing.tool_use_id) == (ClearKind.RESULT, "u1", 1, "t1")
    assert native_clearing(records[0]) is None
