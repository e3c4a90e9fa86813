"""Boundaries, clearings and undo: appended, never changing what is stored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.chain import last_boundary_from
from mcp_compact.compaction.plan import Cleared, ClearingPlan, MemoryUpdate, ServiceText
from mcp_compact.compaction.snapshot import Reach, Snapshot
from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import CLEARED_RESULT
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Clearing, ClearKind, MarkerKind
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.store import Batch, Committed, NativeBoundary, SessionKey, SessionRow, Stamp
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, batch, dialogue, prepared, record, text, use
from tests.adapters.sqlite.model import plan_of

TAIL = Reach(100, 2, 300)
SUMMARY = Weight(5000, 0, 0, 1)


def row_of(conn: sqlite3.Connection) -> SessionRow:
    row = operations.session(conn, KEY)
    assert row is not None
    return row


def snapshot_of(conn: sqlite3.Connection, reach: Reach = TAIL) -> Snapshot:
    snapshot = operations.snapshot(conn, KEY, reach)
    assert snapshot is not None
    return snapshot


def live_uuids(conn: sqlite3.Connection) -> list[str]:
    page = operations.live(conn, KEY, after=0, limit=10_000, max_bytes=1 << 40)
    assert page is not None
    return [item.uuid for item in page.records]


def compact(conn: sqlite3.Connection, name: str = "b", **fields: Any) -> Committed:
    snapshot = snapshot_of(conn)
    plan = plan_of(snapshot, snapshot.tail, SUMMARY, **fields)
    return operations.commit(conn, KEY, plan, Stamp(1_700_000_000_000, (name, f"{name}-summary", f"{name}-more"), 12))


def clear_all(conn: sqlite3.Connection, name: str = "m") -> Committed:
    live = operations.clearable(conn, KEY)
    assert live is not None
    items = [
        Cleared(
            Clearing(ClearKind.RESULT, item.uuid, item.block, None, item.tool_use_id), item.weight - item.cleared_weight
        )
        for item in live.results
    ]
    items += [
        Cleared(Clearing(ClearKind.MEDIA, item.uuid, item.block, item.part), Weight(media=item.tokens))
        for item in live.media
    ]
    return operations.commit(conn, KEY, ClearingPlan(live.base, tuple(items), 100, 60), Stamp(5, (name,)))


def counted_steps(conn: sqlite3.Connection, work: Callable[[], object]) -> int:
    """Instructions of SQLite's machine that some work takes."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    conn.set_progress_handler(step, 1)
    work()
    conn.set_progress_handler(None, 0)
    return steps


@pytest.fixture
def talk(conn: sqlite3.Connection) -> sqlite3.Connection:
    operations.append(conn, KEY, batch(*dialogue(30), model="gpt-5", overhead_tokens=50), 1)
    return conn


def test_the_live_list_is_summary_and_kept_records_and_what_follows(talk):
    kept = [entry.uuid for entry in snapshot_of(talk).tail]
    compact(talk)
    operations.append(talk, KEY, batch(record("later", "user", "go on")), 2)
    assert live_uuids(talk) == ["b-summary", *kept, "later"]
    page = operations.live(talk, KEY, after=0, limit=99, max_bytes=1 << 40)
    assert page is not None
    assert page.service == ("b-summary",)
    assert page.boundary == operations.markers(talk, KEY)[0]


def test_the_boundary_says_in_its_body_what_it_did(talk):
    memory = MemoryUpdate("# Memory", MessageUuid("r3"), 4, "extractor")
    service = (
        ServiceText("summary", "", "the story", SUMMARY),
        ServiceText("attachment", "plan", "the plan", Weight(10, 0, 0, 1)),
    )
    fields: dict[str, Any] = {
        "service": service,
        "memory": memory,
        "discovered_tools": ("a", "b"),
        "custom_instructions": "keep X",
        "last_message_uuid": MessageUuid("r29"),
        "last_user_message_uuid": MessageUuid("r20"),
        "pre_compact_token_count": 900,
        "tokens_after": 300,
    }
    kept = [entry.uuid for entry in snapshot_of(talk).tail]
    committed = compact(talk, **fields)
    boundary = operations.record(talk, KEY, MessageUuid("b"))
    assert boundary is not None
    body = json.loads(boundary.body)
    assert (body["type"], body["subtype"], body["parentUuid"], body["logicalParentUuid"]) == (
        "system",
        "compact_boundary",
        None,
        "r29",
    )
    assert body["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert body["compactMetadata"] == {
        "trigger": "agent",
        "strategy": "session_memory",
        "appliesTo": "sent_context",
        "preCompactTokenCount": 900,
        "postCompactTokenCount": 350,
        "lastMessageUuid": "r29",
        "lastUserMessageUuid": "r20",
        "durationMs": 12,
        "liveHash": row_of(talk).live_hash,
        "preCompactDiscoveredTools": ["a", "b"],
        "customInstructions": "keep X",
        "preservedSegment": {
            "summaryMessageUuid": "b-summary",
            "preservedMessageUuids": kept,
            "headUuid": kept[0],
            "anchorUuid": "b-summary",
            "tailUuid": kept[-1],
        },
    }
    assert committed.marker is not None
    assert dict(committed.marker.metadata) == body["compactMetadata"]
    summary, attachment = (operations.record(talk, KEY, MessageUuid(uuid)) for uuid in ("b-summary", "b-more"))
    assert summary is not None
    assert attachment is not None
    assert (summary.is_summary, summary.is_message, summary.text, summary.parent_uuid) == (True, True, "the story", "b")
    assert summary.raw["isCompactSummary"] is summary.raw["isVisibleInTranscriptOnly"] is True
    assert (attachment.is_summary, attachment.is_meta, attachment.subtype, attachment.text) == (
        False,
        True,
        "attachment",
        "the plan",
    )
    assert not summary.is_text_holding
    assert not attachment.is_text_holding
    assert operations.memory(talk, KEY) == operations.memory(talk, KEY, 1)
    assert row_of(talk).memory_mark_seq == 4


def test_what_is_absent_is_absent_in_the_body(talk):
    snapshot = snapshot_of(talk)
    operations.commit(talk, KEY, plan_of(snapshot, (), SUMMARY), Stamp(1, ("b", "s")))
    boundary = operations.record(talk, KEY, MessageUuid("b"))
    assert boundary is not None
    metadata = boundary.raw["compactMetadata"]
    assert not {"preservedSegment", "preCompactDiscoveredTools", "customInstructions"} & set(metadata)
    assert live_uuids(talk) == ["s"]


def test_records_that_came_while_it_ran_follow_the_kept_ones(talk):
    snapshot = snapshot_of(talk)
    operations.append(talk, KEY, batch(record("while", "user", "and this")), 2)
    committed = operations.commit(talk, KEY, plan_of(snapshot, snapshot.tail, SUMMARY), Stamp(1, ("b", "s")))
    assert committed.marker is not None
    assert live_uuids(talk)[-1] == "while"


@pytest.mark.parametrize("between", ["boundary", "undone boundary", "clearing", "rewind", "late member"])
def test_a_plan_is_void_once_its_base_has_changed(conn, between):
    operations.append(conn, KEY, batch(*dialogue(30), model="gpt-5"), 1)
    if between == "late member":
        boundary = prepared(record("native", "system", None, type="system"))
        operations.append(
            conn,
            KEY,
            Batch(
                (boundary,),
                boundaries=(NativeBoundary(MessageUuid("native"), (MessageUuid("sum"),), (MessageUuid("r3"),)),),
            ),
            1,
        )
    snapshot = snapshot_of(conn)
    plan = plan_of(snapshot, snapshot.tail, SUMMARY)
    match between:
        case "boundary":
            compact(conn, "first")
        case "undone boundary":
            compact(conn, "first")
            operations.undo(conn, KEY, Stamp(1, ("u",)))
        case "clearing":
            clear_all(conn)
        case "rewind":
            operations.append(conn, KEY, batch(record("other", "user", "no", parent="r27")), 2)
        case _:
            operations.append(conn, KEY, batch(record("sum", "user", "summary", parent="native")), 2)
    before = (row_of(conn), conn.execute("SELECT count(*) FROM record").fetchone())
    assert operations.commit(conn, KEY, plan, Stamp(1, ("late", "late-s"))) == Committed(None, "base_changed")
    assert (row_of(conn), conn.execute("SELECT count(*) FROM record").fetchone()) == before


def test_a_plan_that_keeps_what_is_not_live_is_void(talk):
    snapshot = snapshot_of(talk)
    foreign = replace(snapshot.tail[0], uuid=MessageUuid("not there"))
    assert (
        operations.commit(talk, KEY, plan_of(snapshot, (foreign,), SUMMARY), Stamp(1, ("b", "s"))).reason
        == "base_changed"
    )


def test_of_two_processes_that_compact_the_same_base_one_wins(talk, path):
    other = operations.connect(path)
    plans = []
    for one in (talk, other):
        snapshot = snapshot_of(one)
        plans.append(plan_of(snapshot, snapshot.tail, SUMMARY))
    first = operations.commit(talk, KEY, plans[0], Stamp(1, ("one", "one-s")))
    second = operations.commit(other, KEY, plans[1], Stamp(1, ("two", "two-s")))
    assert (first.reason, second.reason) == ("", "base_changed")
    assert [marker.uuid for marker in operations.markers(other, KEY)] == ["one"]
    other.close()


def test_compacting_again_and_again_adds_a_boundary_and_a_summary_each_time(talk):
    records = row_of(talk).last_seq
    for at in range(4):
        assert compact(talk, f"b{at}").marker is not None
    assert row_of(talk).last_seq == records + 8
    assert row_of(talk).compactions == 4
    assert [uuid for uuid in live_uuids(talk) if "summary" in uuid] == ["b3-summary"]


def test_undo_gives_the_former_live_context_and_its_hash(talk):
    before, hash_before = live_uuids(talk), row_of(talk).live_hash
    compact(talk)
    clear_all(talk)
    undone = operations.undo(talk, KEY, Stamp(9, ("u",)))
    assert (live_uuids(talk), undone.live_hash, row_of(talk).live_hash) == (before, hash_before, hash_before)
    assert operations.clearable(talk, KEY).results  # type: ignore[union-attr]
    record_of_undo = operations.record(talk, KEY, MessageUuid("u"))
    assert record_of_undo is not None
    assert record_of_undo.raw["undoMetadata"] == {
        "undoneUuid": "b",
        "undoneKind": "compact_boundary",
        "restoredUuid": None,
        "liveHash": hash_before,
    }


def test_undo_keeps_what_was_appended_since_and_the_memory(talk):
    before = live_uuids(talk)
    compact(talk, memory=MemoryUpdate("# M", None, None, "extractor"))
    operations.append(talk, KEY, batch(record("later", "user", "go on")), 2)
    operations.undo(talk, KEY, Stamp(9, ("u",)))
    assert live_uuids(talk) == [*before, "later"]
    assert row_of(talk).memory_version == 1


def test_undo_twice_takes_back_two_boundaries_and_then_nothing(talk):
    compact(talk, "one")
    compact(talk, "two")
    assert operations.undo(talk, KEY, Stamp(9, ("u1",))).marker.restores_seq == operations.markers(talk, KEY)[0].seq  # type: ignore[union-attr]
    assert operations.undo(talk, KEY, Stamp(9, ("u2",))).marker.restores_seq is None  # type: ignore[union-attr]
    assert operations.undo(talk, KEY, Stamp(9, ("u3",))) == Committed(None, "nothing_to_undo")
    assert [marker.kind for marker in operations.markers(talk, KEY)] == [
        MarkerKind.COMPACT,
        MarkerKind.COMPACT,
        MarkerKind.UNDO,
        MarkerKind.UNDO,
    ]


def test_an_undo_costs_the_same_however_many_clearings_came_before(conn):
    """What stands before a boundary is told by the marker there: the chain is not walked."""
    steps = []
    for clearings in (2, 60):
        key = SessionKey("local", f"after {clearings}")
        for at in range(clearings):
            call = record(f"a{at}", "assistant", [use(f"c{at}")], message_id=f"i{at}")
            records = [call, record(f"r{at}", "user", [answer(f"c{at}")])]
            operations.append(conn, key, batch(*records), at)
            live = operations.clearable(conn, key)
            assert live is not None
            [item] = live.results
            place = Clearing(ClearKind.RESULT, item.uuid, item.block, None, item.tool_use_id)
            plan = ClearingPlan(live.base, (Cleared(place, NOTHING),), 0, 0)
            assert operations.commit(conn, key, plan, Stamp(at, (f"m{at}",))).marker is not None
        session = state.load(conn, key)
        assert session is not None
        steps.append(counted_steps(conn, partial(last_boundary_from, conn, session.id, session.marker_seq)))
    assert steps[0] == steps[1]


def test_clearing_twice_is_once(talk):
    first = clear_all(talk)
    weight = row_of(talk).live_weight
    assert first.marker is not None
    assert len(first.marker.cleared) == 12
    assert clear_all(talk, "again").reason == "nothing_to_clear"
    assert row_of(talk).live_weight == weight


def test_a_clearing_that_raced_with_another_clears_only_the_rest(talk):
    live = operations.clearable(talk, KEY)
    assert live is not None
    places = [Clearing(ClearKind.RESULT, item.uuid, item.block, None, item.tool_use_id) for item in live.results]
    half = ClearingPlan(live.base, tuple(Cleared(place, NOTHING) for place in places[:5]), 0, 0)
    rest = ClearingPlan(live.base, tuple(Cleared(place, NOTHING) for place in places[3:]), 0, 0)
    operations.commit(talk, KEY, half, Stamp(1, ("m1",)))
    second = operations.commit(talk, KEY, rest, Stamp(1, ("m2",)))
    assert second.marker is not None
    assert second.marker.cleared == tuple(places[5:])


def test_what_left_the_context_since_is_not_cleared(talk):
    live = operations.clearable(talk, KEY)
    assert live is not None
    operations.append(talk, KEY, batch(record("other", "user", "no", parent=live.results[0].uuid)), 2)
    places = [Clearing(ClearKind.RESULT, item.uuid, item.block, None, item.tool_use_id) for item in live.results]
    plan = ClearingPlan(live.base, tuple(Cleared(place, NOTHING) for place in places), 0, 0)
    committed = operations.commit(talk, KEY, plan, Stamp(1, ("m",)))
    assert committed.marker is not None
    assert [place.uuid for place in committed.marker.cleared] == [live.results[0].uuid]


def test_images_are_cleared_in_messages_and_in_results(conn):
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("shot"), IMAGE]}
    operations.append(
        conn,
        KEY,
        batch(record("a", "user", [IMAGE]), record("b", "assistant", [use("t")]), record("c", "user", [result])),
        1,
    )
    live = operations.clearable(conn, KEY)
    assert live is not None
    assert [(item.uuid, item.block, item.part, item.tokens, item.tool_use_id) for item in live.media] == [
        ("a", 0, None, 2000, None),
        ("c", 0, 1, 2000, "t"),
    ]
    clear_all(conn)
    assert row_of(conn).live_weight.media == 0
    page = operations.live(conn, KEY, after=0, limit=9, max_bytes=1 << 40)
    assert page is not None
    assert {uuid: [item.kind for item in items] for uuid, items in page.clearings.items()} == {
        "a": [ClearKind.MEDIA],
        "c": [ClearKind.RESULT],
    }
    assert operations.clearable(conn, KEY).media == []  # type: ignore[union-attr]


def test_a_result_whose_image_is_cleared_weighs_what_is_left(conn):
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("shot"), IMAGE]}
    operations.append(conn, KEY, batch(record("b", "assistant", [use("t")]), record("c", "user", [result])), 1)
    before = operations.clearable(conn, KEY)
    assert before is not None
    image = before.media[0]
    place = Clearing(ClearKind.MEDIA, image.uuid, image.block, image.part, image.tool_use_id)
    operations.commit(
        conn, KEY, ClearingPlan(before.base, (Cleared(place, Weight(units=-2000, media=2000)),), 0, 0), Stamp(1, ("m",))
    )
    after = operations.clearable(conn, KEY)
    assert after is not None
    assert after.results[0].weight == before.results[0].weight + Weight(units=2000, media=-2000)
    clear_all(conn, "all")
    assert row_of(conn).live_weight == before.live_weight - (
        before.results[0].weight - before.results[0].cleared_weight
    )


def test_the_original_is_the_first_bytes_after_any_sequence(conn):
    original = record("c", "user", [answer("t", "ORIGINAL-1 " * 500)])
    operations.append(
        conn,
        KEY,
        batch(record("a", "user", "q"), record("b", "assistant", [use("t")]), original, record("d", "assistant", "x")),
        1,
    )
    clear_all(conn, "m1")
    compact(conn, "b1")
    operations.append(conn, KEY, batch(record("again", "user", [answer("t", CLEARED_RESULT)])), 2)
    clear_all(conn, "m2")
    compact(conn, "b2")
    call, result = operations.call(conn, KEY, original.results[0].tool_use_id)
    assert call is not None
    assert result is not None
    assert (call.uuid, result.uuid, result.body) == ("b", "c", original.body)


def test_of_several_results_the_original_is_the_one_that_counts(conn):
    items = [
        record("b", "assistant", [use("t", "Bash")]),
        record("c", "user", [answer("t", "aborted", is_error=True)]),
        record("d", "assistant", [use("t", "Read")]),
        record("e", "user", [answer("t", "it ran")]),
        record("f", "user", [answer("t", "aborted", is_error=True)]),
    ]
    operations.append(conn, KEY, batch(*items), 1)
    made, result = operations.call(conn, KEY, ToolUseId("t"))
    assert (made and made.uuid, result and result.uuid) == ("d", "e")


def test_of_two_results_of_one_call_the_last_can_be_cleared(conn):
    items = [
        record("b", "assistant", [use("t", "Bash")]),
        record("c", "user", [answer("t", "first")]),
        record("d", "user", [answer("t", "second")]),
    ]
    operations.append(conn, KEY, batch(*items), 1)
    live = operations.clearable(conn, KEY)
    assert live is not None
    assert [(item.uuid, item.tool) for item in live.results] == [("d", "Bash")]


def test_a_session_that_is_not_there_is_an_error(conn):
    nowhere = SessionKey("local", "nowhere")
    with pytest.raises(CallerError, match="no session 'nowhere'"):
        operations.undo(conn, nowhere, Stamp(1, ("u",)))
    assert operations.clearable(conn, nowhere) is None


def test_too_few_uuids_are_a_defect_and_leave_nothing(talk):
    before = row_of(talk)
    snapshot = snapshot_of(talk)
    with pytest.raises(ValueError, match="2 uuids are needed, 1 were given"):
        operations.commit(talk, KEY, plan_of(snapshot, (), SUMMARY), Stamp(1, ("only",)))
    assert row_of(talk) == before


def test_the_live_context_is_the_same_after_a_restart(talk, path: Path):
    compact(talk)
    clear_all(talk)
    before = (live_uuids(talk), row_of(talk), operations.markers(talk, KEY))
    other = operations.connect(path)
    assert (live_uuids(other), row_of(other), operations.markers(other, KEY)) == before
    other.close()


def test_a_clients_own_boundary_is_known_again_on_a_second_import(conn):
    items = [
        *dialogue(10),
        record("n", "system", None, type="system", root=True),
        record("s", "user", "summary", parent="n"),
    ]
    native = NativeBoundary(MessageUuid("n"), (MessageUuid("s"),), (MessageUuid("r8"),), {"trigger": "auto"})
    whole = replace(batch(*items), boundaries=(native,))
    for now in (1, 2):
        operations.append(conn, KEY, whole, now)
    (marker,) = operations.markers(conn, KEY)
    assert (marker.kind, marker.native, marker.service, marker.preserved) == (MarkerKind.COMPACT, True, ("s",), ("r8",))
    assert dict(marker.metadata) == {"trigger": "auto", "strategy": "native"}
    assert live_uuids(conn) == ["s", "r8"]
    assert row_of(conn).compactions == 1


def test_our_compaction_does_not_change_how_full_the_client_is(conn):
    operations.append(
        conn, KEY, batch(*dialogue(30), record("x", "assistant", "x", usage=9000), owner="client", model="gpt-5"), 1
    )
    before = row_of(conn)
    compact(conn)
    assert row_of(conn).client_tokens == before.client_tokens
    operations.append(conn, KEY, batch(record("y", "assistant", "y", usage=9500)), 2)
    assert (row_of(conn).overhead_tokens, row_of(conn).overhead_source) == (before.overhead_tokens, "usage")
    operations.append(
        conn,
        KEY,
        Batch(
            (prepared(record("n", "system", None, type="system", root=True)),),
            boundaries=(NativeBoundary(MessageUuid("n"), (), ()),),
        ),
        3,
    )
    assert row_of(conn).client_tokens is None


@pytest.fixture
def waiting(conn: sqlite3.Connection) -> sqlite3.Connection:
    """A client's boundary that names a summary and a kept message which have not come yet."""
    native = NativeBoundary(MessageUuid("n"), (MessageUuid("sum"),), (MessageUuid("r8"), MessageUuid("late")))
    boundary = prepared(record("n", "system", None, type="system"))
    operations.append(conn, KEY, Batch((*batch(*dialogue(10)).records, boundary), boundaries=(native,)), 1)
    return conn


def test_members_of_a_clients_boundary_take_their_place_when_they_come(waiting):
    assert live_uuids(waiting) == ["r8"]
    operations.append(waiting, KEY, batch(record("sum", "user", "the summary", parent="n")), 2)
    operations.append(waiting, KEY, batch(record("late", "user", "kept"), record("next", "user", "go on")), 3)
    assert live_uuids(waiting) == ["sum", "r8", "late", "next"]
    assert row_of(waiting).live_count == 3
    assert operations.check(waiting).wrong_totals == ()


def test_undo_after_a_late_member_counts_it(waiting):
    compact(waiting)
    operations.append(waiting, KEY, batch(record("sum", "user", "the summary", parent="n")), 2)
    assert live_uuids(waiting) == ["b-summary", "r8"]
    operations.undo(waiting, KEY, Stamp(1, ("u",)))
    assert live_uuids(waiting) == ["sum", "r8"]
    assert operations.check(waiting).wrong_totals == ()
