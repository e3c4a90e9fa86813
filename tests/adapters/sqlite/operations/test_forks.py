"""New sessions: empty ones, and ones that begin with another's live context."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations import indexing
from mcp_compact.compaction.plan import Cleared, ClearingPlan, MemoryUpdate
from mcp_compact.compaction.snapshot import Instruction, Reach, Snapshot
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import (
    Batch,
    LivePage,
    NativeBoundary,
    Pending,
    Registered,
    SessionFacts,
    SessionKey,
    SessionRow,
    Stamp,
)
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, batch, dialogue, prepared, record, text, use
from tests.adapters.sqlite.model import plan_of

FORK = SessionKey("local", "fork")
ALL = Reach(0, 0, 1 << 60, 0)


@pytest.fixture
def talk(conn: sqlite3.Connection) -> sqlite3.Connection:
    """Thirty records with instructions, tools, an image, a memory, pins; compacted, cleared, and gone on with."""
    items = [prepared(item) for item in dialogue(30)]
    items[0] = replace(items[0], instructions=("always use tabs",), tools=("early",))
    items[20] = replace(items[20], instructions=("never push",))
    facts = {"title": "t", "model": "gpt-5", "cwd": "/w", "owner": "client", "overhead_tokens": 50, "context_window": 9}
    operations.append(conn, KEY, batch(*items, **facts), 1)
    operations.write_memory(conn, KEY, "# Old", MessageUuid("r5"), "agent", 2)
    found = snapshot_of(conn, KEY, Reach(100, 2, 300))
    plan = plan_of(found, found.tail, Weight(9, 0, 0, 1), memory=MemoryUpdate("# M", MessageUuid("r22"), None, "agent"))
    operations.commit(conn, KEY, plan, Stamp(3, ("b", "s")))
    shot = record("shot", "user", [answer("t", "x" * 400), {**answer("t2"), "content": [text("a"), IMAGE]}])
    more = [record("c", "assistant", [use("t"), use("t2")], message_id="m"), shot, record("w", "user", "and now")]
    operations.append(conn, KEY, batch(*more), 4)
    clear_all(conn)
    operations.append(conn, KEY, batch(record("z", "assistant", [text("done")], message_id="mz")), 5)
    operations.register(conn, KEY, Registered("plan", "", "step 1"), 6)
    return conn


def clear_all(conn: sqlite3.Connection) -> None:
    """The image first, the results after it: both clearings of one place are in effect."""
    for what, name in (("media", "m1"), ("results", "m2")):
        live = operations.clearable(conn, KEY)
        assert live is not None
        items = [
            Cleared(
                Clearing(ClearKind.RESULT, item.uuid, item.block, None, item.tool_use_id),
                item.weight - item.cleared_weight,
            )
            for item in live.results
            if what == "results"
        ]
        items += [
            Cleared(Clearing(ClearKind.MEDIA, item.uuid, item.block, item.part), Weight(media=item.tokens))
            for item in live.media
            if what == "media"
        ]
        committed = operations.commit(conn, KEY, ClearingPlan(live.base, tuple(items), 0, 0), Stamp(5, (name,)))
        assert committed.marker is not None


def snapshot_of(conn: sqlite3.Connection, key: SessionKey, reach: Reach = ALL) -> Snapshot:
    found = operations.snapshot(conn, key, reach)
    assert found is not None
    return found


def page_of(conn: sqlite3.Connection, key: SessionKey) -> LivePage:
    page = operations.live(conn, key, after=0, limit=10_000, max_bytes=1 << 40)
    assert page is not None
    return page


def row_of(conn: sqlite3.Connection, key: SessionKey) -> SessionRow:
    row = operations.session(conn, key)
    assert row is not None
    return row


def fork(conn: sqlite3.Connection, up_to: str | None = None, key: SessionKey = FORK) -> int:
    return operations.fork_session(conn, KEY, key, MessageUuid(up_to) if up_to else None, 100)


def contents(page: LivePage) -> list[object]:
    return [(item.uuid, item.body, item.message, item.is_summary, item.is_meta) for item in page.records]


def test_a_fork_begins_with_the_live_context_clearings_and_all(talk):
    number = fork(talk)
    old, new = page_of(talk, KEY), page_of(talk, FORK)
    assert contents(new) == contents(old)
    assert number == len(old.records)
    assert new.clearings == old.clearings
    assert len(old.clearings["shot"]) == 3  # type: ignore[index]
    assert (new.service, new.boundary) == ((), None)
    assert row_of(talk, FORK).live_weight == row_of(talk, KEY).live_weight
    assert operations.check(talk, bodies=True).wrong_totals == ()
    assert operations.check(talk, bodies=True).wrong_bodies == ()


def test_a_forks_row_tells_where_it_comes_from(talk):
    number = fork(talk)
    old, new = row_of(talk, KEY), row_of(talk, FORK)
    assert (new.parent_session_id, new.forked_at) == ("s", old.last_seq)
    assert (new.title, new.model, new.cwd, new.owner) == ("t", "gpt-5", "/w", "loop")
    assert (new.context_window, new.overhead_tokens, new.overhead_source) == (9, 50, "given")
    assert (new.last_seq, new.message_count, new.live_count, new.marker_seq) == (number, number, number, 0)
    assert (new.created_ms, new.updated_ms, new.compactions, new.client_tokens) == (100, 100, 0, None)
    assert new.body_bytes == sum(len(item.body) for item in page_of(talk, KEY).records)
    assert (old.parent_session_id, old.forked_at) == (None, None)


def test_the_tail_of_a_fork_keeps_pairs_and_message_ids_whole(talk):
    fork(talk)
    live = [item.uuid for item in page_of(talk, FORK).records]
    tail = snapshot_of(talk, FORK, Reach(0, 1, 0)).tail
    assert [entry.uuid for entry in tail] == ["z"]
    tail = snapshot_of(talk, FORK, Reach(0, 2, 1 << 60)).tail
    assert [entry.uuid for entry in tail] == ["w", "z"]
    for number in range(1, 40):
        tail = snapshot_of(talk, FORK, Reach(number * 20, 0, 1 << 60)).tail
        assert [entry.uuid for entry in tail] == live[len(live) - len(tail) :]
        made = {call for entry in tail for call in entry.calls}
        assert made >= {call for entry in tail for call in entry.results}


def test_a_fork_up_to_a_message_ends_with_it(talk):
    whole = [item.uuid for item in page_of(talk, KEY).records]
    for at, uuid in enumerate(whole, start=1):
        key = SessionKey("local", f"fork {uuid}")
        assert fork(talk, uuid, key) == at
        assert [item.uuid for item in page_of(talk, key).records] == whole[:at]
    assert row_of(talk, SessionKey("local", "fork r29")).forked_at == 30
    assert operations.check(talk).wrong_totals == ()


def test_appends_to_either_do_not_touch_the_other(talk):
    fork(talk)
    old, new = row_of(talk, KEY), row_of(talk, FORK)
    operations.append(talk, FORK, batch(record("f", "user", "here", parent="z")), 200)
    assert row_of(talk, KEY) == old
    operations.append(talk, KEY, batch(record("g", "user", "there", parent="r3")), 201)
    page = [item.uuid for item in page_of(talk, FORK).records]
    assert page == [*(item.uuid for item in page_of(talk, FORK).records if item.uuid != "f"), "f"]
    assert row_of(talk, FORK).live_count == new.live_count + 1
    assert "g" not in page
    operations.append(talk, FORK, batch(record("back", "user", "otherwise", parent=page[2])), 202)
    assert [item.uuid for item in page_of(talk, FORK).records] == [*page[:3], "back"]
    assert operations.check(talk).wrong_totals == ()


def test_an_undo_in_the_fork_takes_back_its_own_markers_and_no_older_clearing(talk):
    fork(talk)
    before = row_of(talk, FORK)
    assert operations.undo(talk, FORK, Stamp(9, ("u",))).reason == "nothing_to_undo"
    found = snapshot_of(talk, FORK, Reach(10, 1, 30))
    operations.commit(talk, FORK, plan_of(found, found.tail, Weight(9, 0, 0, 1)), Stamp(9, ("b9", "s9")))
    assert operations.undo(talk, FORK, Stamp(9, ("u",))).live_hash == before.live_hash
    assert page_of(talk, FORK).clearings == page_of(talk, KEY).clearings
    assert operations.check(talk).wrong_totals == ()


def test_undo_in_the_parent_leaves_the_fork_as_it_is(talk):
    fork(talk)
    before = contents(page_of(talk, FORK)), row_of(talk, FORK)
    operations.undo(talk, KEY, Stamp(9, ("u",)))
    assert (contents(page_of(talk, FORK)), row_of(talk, FORK)) == before


def test_what_was_cleared_is_no_candidate_in_the_fork(talk):
    fork(talk)
    live = operations.clearable(talk, FORK)
    assert live is not None
    assert (live.results, live.media) == ([], [])
    operations.append(
        talk, FORK, batch(record("c9", "assistant", [use("t9")]), record("a9", "user", [answer("t9")])), 9
    )
    live = operations.clearable(talk, FORK)
    assert live is not None
    assert [item.uuid for item in live.results] == ["a9"]


def test_calls_and_originals_are_found_in_the_fork(talk):
    fork(talk)
    made, answered = operations.call(talk, FORK, ToolUseId("t2"))
    assert (made and made.uuid, answered and answered.uuid) == ("c", "shot")
    assert answered is not None
    assert answered.body == operations.record(talk, KEY, MessageUuid("shot")).body  # type: ignore[union-attr]


def test_a_fork_of_a_fork_is_the_same_again(talk):
    fork(talk)
    second = SessionKey("local", "second")
    operations.fork_session(talk, FORK, second, None, 101)
    assert contents(page_of(talk, second)) == contents(page_of(talk, KEY))
    assert page_of(talk, second).clearings == page_of(talk, KEY).clearings
    assert row_of(talk, second).parent_session_id == "fork"
    assert snapshot_of(talk, second).instructions == snapshot_of(talk, FORK).instructions
    assert operations.check(talk, bodies=True).wrong_totals == ()


# ---- what comes along


def test_memory_comes_along_with_what_it_covers(talk):
    fork(talk)
    memory = operations.memory(talk, FORK)
    assert memory is not None
    assert (memory.text, memory.version) == ("# M", 2)
    tail = {entry.uuid: entry.seq for entry in snapshot_of(talk, FORK).tail}
    assert (memory.mark_uuid, memory.mark_seq) == (
        (None, None) if "r22" not in tail else ("r22", tail[MessageUuid("r22")])
    )
    row = row_of(talk, FORK)
    assert (row.memory_version, row.memory_mark_seq) == (2, memory.mark_seq)


def test_memory_that_covers_records_of_the_fork_names_the_newest_of_them(talk):
    operations.write_memory(talk, KEY, "# New", MessageUuid("w"), "agent", 7)
    fork(talk)
    memory = operations.memory(talk, FORK)
    assert memory is not None
    found = operations.record(talk, FORK, MessageUuid("w"))
    assert found is not None
    assert (memory.text, memory.mark_uuid, memory.mark_seq) == ("# New", "w", found.seq)


def test_a_fork_of_an_earlier_time_takes_the_memory_of_that_time(talk):
    operations.write_memory(talk, KEY, "# New", MessageUuid("w"), "agent", 7)
    fork(talk, "c")
    memory = operations.memory(talk, FORK)
    assert memory is not None
    assert (memory.text, memory.version) == ("# M", 2)
    assert operations.write_memory(talk, FORK, "# Next", None, "agent", 8).version == 3
    assert operations.memory(talk, KEY).text == "# New"  # type: ignore[union-attr]


def test_a_session_without_memory_forks_without_one(conn):
    operations.append(conn, KEY, batch(*dialogue(3)), 1)
    fork(conn)
    assert operations.memory(conn, FORK) is None
    assert row_of(conn, FORK).memory_version == 0


def test_instructions_and_tools_come_along_also_from_before_the_boundary(talk):
    operations.append(
        talk, KEY, batch(prepared(record("late", "user", "x"), instructions=["ask first"], tools=["late"])), 7
    )
    fork(talk, "z")
    found = snapshot_of(talk, FORK)
    live = {item.uuid: item.seq for item in page_of(talk, FORK).records}
    assert set(found.instructions) == {
        Instruction(0, "always use tabs"),
        Instruction(live.get("r20", 0), "never push"),  # type: ignore[call-overload]
    }
    assert found.discovered_tools == ("early",)
    fork(talk, None, SessionKey("local", "whole"))
    whole = snapshot_of(talk, SessionKey("local", "whole"))
    assert {item.text for item in whole.instructions} == {"always use tabs", "never push", "ask first"}
    assert whole.discovered_tools == ("early", "late")


def test_tools_that_a_clients_boundary_tells_of_come_along(conn):
    native = NativeBoundary(MessageUuid("n"), (), (), {"preCompactDiscoveredTools": ["b", "a", "b", 7, "\ud800"]})
    items = (prepared(record("a", "user", "x"), tools=["a"]), prepared(record("n", "system", None, type="system")))
    operations.append(conn, KEY, Batch(items, boundaries=(native,)), 1)
    fork(conn)
    assert snapshot_of(conn, FORK).discovered_tools == ("a", "b", "\ufffd")


def test_instructions_of_rewound_prompts_stay_behind(conn):
    operations.append(conn, KEY, batch(record("a", "user", "x")), 1)
    operations.append(conn, KEY, batch(prepared(record("b", "user", "y"), instructions=["use tabs"])), 1)
    operations.append(conn, KEY, batch(prepared(record("c", "user", "z", parent="a"), instructions=["use blanks"])), 1)
    fork(conn)
    assert snapshot_of(conn, FORK).instructions == (Instruction(2, "use blanks"),)


def test_an_instruction_that_is_said_again_in_the_fork_is_found_there(talk):
    fork(talk)
    operations.append(talk, FORK, batch(prepared(record("f", "user", "x"), instructions=["always use tabs"])), 7)
    assert Instruction(row_of(talk, FORK).last_seq, "always use tabs") in snapshot_of(talk, FORK).instructions


def test_pins_come_along_and_are_its_own_from_then_on(talk):
    operations.register(talk, KEY, Registered("skill", "n", "how"), 7)
    fork(talk)
    assert [(item.kind, item.text) for item in operations.registered(talk, FORK)] == [
        ("plan", "step 1"),
        ("skill", "how"),
    ]
    assert {item.seq for item in operations.registered(talk, FORK)} == {row_of(talk, FORK).last_seq}
    operations.unregister(talk, FORK, "plan", "")
    operations.register(talk, FORK, Registered("skill", "n", "otherwise"), 8)
    assert [item.text for item in operations.registered(talk, KEY)] == ["step 1", "how"]


def test_what_waits_for_a_summary_stays_with_the_parent(talk):
    operations.put_pending(talk, Pending("c", KEY, "{}", snapshot_of(talk, KEY).base, 1, 100))
    fork(talk)
    assert operations.pending(talk, "local", "c").key == KEY  # type: ignore[union-attr]


def test_a_fork_is_searched_like_any_session(talk):
    fork(talk)
    for _ in range(2):
        found = operations.search(talk, "local", SearchQuery("and now", session_id="fork"))
        assert [(hit.session_id, hit.uuid, hit.is_live) for hit in found.hits] == [("fork", "w", True)]
        indexing.index_batch(talk)


# ---- what cannot be


def test_a_taken_id_is_refused(talk):
    operations.create_session(talk, FORK, SessionFacts(), 1)
    with pytest.raises(CallerError, match="'fork' already") as caught:
        fork(talk)
    assert caught.value.code == "session_exists"
    with pytest.raises(CallerError) as caught:
        fork(talk, None, KEY)
    assert caught.value.code == "session_exists"
    assert row_of(talk, FORK).last_seq == 0


@pytest.mark.parametrize("uuid", ["nowhere", "r0", "b"])
def test_a_message_that_is_not_live_is_refused_and_nothing_is_made(talk, uuid):
    with pytest.raises(CallerError) as caught:
        fork(talk, uuid)
    assert caught.value.code == "unknown_message"
    assert operations.session(talk, FORK) is None


def test_there_is_no_fork_of_a_session_that_is_not_there_nor_into_another_namespace(talk):
    with pytest.raises(CallerError) as caught:
        operations.fork_session(talk, SessionKey("local", "nowhere"), FORK, None, 1)
    assert caught.value.code == "no_such_session"
    with pytest.raises(ValueError, match="namespace"):
        operations.fork_session(talk, KEY, SessionKey("tenant", "fork"), None, 1)


def test_an_empty_session_forks_into_an_empty_one(conn):
    operations.create_session(conn, KEY, SessionFacts(title="t"), 1)
    assert fork(conn) == 0
    assert (row_of(conn, FORK).title, row_of(conn, FORK).forked_at) == ("t", 0)
    operations.append(conn, FORK, batch(record("a", "user", "x")), 2)
    assert [item.uuid for item in page_of(conn, FORK).records] == ["a"]


# ---- empty sessions


def test_a_session_is_made_once_with_its_facts(conn):
    facts = SessionFacts(title="t", model="gpt-5", cwd="/w", owner="client", context_window=9, overhead_tokens=7)
    assert operations.create_session(conn, KEY, facts, 5)
    row = row_of(conn, KEY)
    assert (row.title, row.model, row.cwd, row.owner, row.context_window) == ("t", "gpt-5", "/w", "client", 9)
    assert (row.overhead_tokens, row.overhead_source, row.created_ms, row.last_seq) == (7, "given", 5, 0)
    assert not operations.create_session(conn, KEY, SessionFacts(title="other", model="x"), 6)
    assert row_of(conn, KEY) == row
    assert snapshot_of(conn, KEY).tail == ()
    assert row.live_weight == NOTHING
