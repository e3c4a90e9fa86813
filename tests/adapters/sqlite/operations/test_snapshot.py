"""What a compaction reads, what is listed, and that no reading walks over a whole session."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.migrations import migrate
from mcp_compact.adapters.sqlite.operations import indexing
from mcp_compact.compaction.plan import Cleared, ClearingPlan
from mcp_compact.compaction.snapshot import Base, Instruction, Reach, Snapshot
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, OPENAI, Weight
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import Batch, NativeBoundary, Pending, Registered, SessionKey, Stamp
from tests.adapters.sqlite.builders import KEY, answer, batch, dialogue, prepared, record, text, use
from tests.adapters.sqlite.model import plan_of, read_in_pages

ALL = Reach(0, 0, 1 << 60, 0)


def snapshot_of(conn: sqlite3.Connection, reach: Reach) -> Snapshot:
    snapshot = operations.snapshot(conn, KEY, reach)
    assert snapshot is not None
    return snapshot


def uuids(snapshot: Snapshot) -> list[str]:
    return [entry.uuid for entry in snapshot.tail]


@pytest.fixture
def counted(conn: sqlite3.Connection) -> sqlite3.Connection:
    """Ten records of ten tokens each (OpenAI's four a message left out); every second one holds text."""
    items = []
    for at in range(10):
        call = at - at % 2
        content: Any = [text("words"), use(f"t{call}")] if at % 2 == 0 else [answer(f"t{call}", "r")]
        items.append(prepared(record(f"r{at}", "assistant" if at % 2 == 0 else "user", content), exact=6))
    operations.append(conn, KEY, batch(*items, model="gpt-5"), 1)
    return conn


def test_there_is_nothing_of_a_session_that_is_not_there(conn):
    nowhere = SessionKey("local", "nowhere")
    assert operations.snapshot(conn, nowhere, ALL) is None
    assert operations.live(conn, nowhere, after=0, limit=1, max_bytes=1) is None
    assert operations.record(conn, nowhere, MessageUuid("r")) is None
    assert operations.memory(conn, nowhere) is None
    assert operations.newest_message(conn, nowhere) is None
    assert operations.markers(conn, nowhere) == []
    assert operations.match_prefix(conn, nowhere, [b"x"]) == 0
    operations.note(conn, nowhere, decline="x")


def test_an_empty_session_has_an_empty_snapshot(conn):
    operations.append(conn, KEY, batch(title="t"), 1)
    snapshot = snapshot_of(conn, ALL)
    assert (snapshot.tail, snapshot.tail_is_all, snapshot.live_weight, snapshot.live_count) == ((), True, NOTHING, 0)
    assert (snapshot.last_message_uuid, snapshot.base) == (None, Base(0, 0, "0" * 32))


@pytest.mark.parametrize(
    ("reach", "first"),
    [
        (Reach(0, 0, 0), 8),  # the last round stays whole
        (Reach(25, 0, 1000), 6),  # 30 tokens at r7, then its call
        (Reach(0, 2, 1000), 6),
        (Reach(0, 3, 1000), 4),
        (Reach(1000, 99, 35), 6),
        (Reach(1000, 99, 41), 4),
        (Reach(0, 0, 0, 5), 4),  # r5 has seq 6, and needs r4
        (Reach(1000, 0, 1000), 0),
    ],
)
def test_the_tail_reaches_as_far_as_it_is_asked_to_and_keeps_pairs_whole(counted, reach, first):
    snapshot = snapshot_of(counted, reach)
    assert uuids(snapshot) == [f"r{at}" for at in range(first, 10)]
    assert snapshot.tail_is_all == (first == 0)


def test_the_snapshot_weighs_what_is_live(counted):
    snapshot = snapshot_of(counted, ALL)
    assert snapshot.family == OPENAI
    assert snapshot.live_weight == sum((entry.weight for entry in snapshot.tail), NOTHING) == Weight(60_000, 5, 0, 10)
    assert (snapshot.live_count, snapshot.live_tokens) == (10, 100)
    assert [fact.tool_use_id for fact in snapshot.results] == ["t0", "t2", "t4", "t6", "t8"]
    assert {fact.tool for fact in snapshot.results} == {"Read"}


def test_records_of_one_message_id_stay_together_across_results(conn):
    items = [
        record("u", "user", "go"),
        record("a1", "assistant", [{"type": "thinking", "thinking": "plan", "signature": "s"}], message_id="m"),
        record("a2", "assistant", [use("t1")], message_id="m"),
        record("u1", "user", [answer("t1")]),
        record("a3", "assistant", [use("t2")], message_id="m"),
        record("u2", "user", [answer("t2")]),
        record("a4", "assistant", "end", message_id="m2"),
    ]
    for item in items:
        operations.append(conn, KEY, batch(item), 1)
    assert uuids(snapshot_of(conn, Reach(0, 0, 0))) == ["a4"]
    assert uuids(snapshot_of(conn, Reach(0, 0, 0, 5))) == ["a1", "a2", "u1", "a3", "u2", "a4"]
    assert snapshot_of(conn, Reach(0, 0, 0, 5)).tail[0].has_thinking


def test_the_last_boundarys_records_come_apart_from_the_tail(counted):
    snapshot = snapshot_of(counted, Reach(0, 2, 1000))
    operations.commit(counted, KEY, plan_of(snapshot, snapshot.tail, Weight(7000, 0, 0, 1)), Stamp(1, ("b", "s")))
    after = snapshot_of(counted, ALL)
    assert [(item.uuid, item.weight, item.text) for item in after.service] == [
        ("s", Weight(7000, 0, 0, 1), "the story so far, 7000 units")
    ]
    assert uuids(after) == ["r6", "r7", "r8", "r9"]
    assert after.tail_is_all
    assert after.live_weight == after.service_weight + sum((entry.weight for entry in after.tail), NOTHING)
    assert after.base.marker_seq == 11


def test_cleared_results_weigh_less_and_are_no_candidates(counted):
    live = operations.clearable(counted, KEY)
    assert live is not None
    first = live.results[0]
    place = Clearing(ClearKind.RESULT, first.uuid, first.block, None, first.tool_use_id)
    plan = ClearingPlan(live.base, (Cleared(place, Weight(units=1000)),), 0, 0)
    operations.commit(counted, KEY, plan, Stamp(1, ("m",)))
    snapshot = snapshot_of(counted, ALL)
    assert snapshot.tail[1].weight.units == 5000
    assert [fact.tool_use_id for fact in snapshot.results] == ["t2", "t4", "t6", "t8"]


def test_the_newest_message_and_the_newest_words_of_the_user_are_named(conn):
    items = [
        record("words", "user", "please"),
        record("a", "assistant", [use("t")]),
        record("r", "user", [answer("t")]),
    ]
    operations.append(conn, KEY, batch(*items, record("meta", "user", "reminder", is_meta=True)), 1)
    for reach in (ALL, Reach(0, 0, 0)):
        snapshot = snapshot_of(conn, reach)
        assert (snapshot.last_message_uuid, snapshot.last_user_message_uuid) == ("meta", "words")
    assert operations.newest_message(conn, KEY) == "meta"


def test_memory_and_its_mark_are_read_as_one(conn):
    operations.append(conn, KEY, batch(*dialogue(5)), 1)
    assert snapshot_of(conn, ALL).memory is None
    written = operations.write_memory(conn, KEY, "# One", MessageUuid("r2"), "agent", 2)
    assert (written.version, written.mark_seq) == (1, 3)
    operations.write_memory(conn, KEY, "null", MessageUuid("later"), "agent", 3)
    second = snapshot_of(conn, ALL).memory
    assert second is not None
    assert (second.text, second.version, second.mark_uuid, second.mark_seq) == ("null", 2, "later", None)
    operations.append(conn, KEY, batch(record("later", "user", "x")), 4)
    assert snapshot_of(conn, ALL).memory == replace(second, mark_seq=6)
    assert operations.memory(conn, KEY, 1) == written
    with pytest.raises(CallerError, match="no session"):
        operations.write_memory(conn, SessionKey("local", "nowhere"), "x", None, "agent", 1)


def test_a_memory_is_written_only_on_the_version_that_was_read_where_one_is_named(conn):
    operations.append(conn, KEY, batch(*dialogue(5)), 1)
    assert operations.write_memory(conn, KEY, "# One", None, "extractor", 2, if_version=0).version == 1
    operations.write_memory(conn, KEY, "# Two", None, "agent", 3)
    for read in (0, 1, 3):
        with pytest.raises(CallerError) as refused:
            operations.write_memory(conn, KEY, "# Late", None, "extractor", 4, if_version=read)
        assert refused.value.code == "memory_changed"
    assert (kept := operations.memory(conn, KEY)) is not None
    assert kept.text == "# Two"
    assert operations.write_memory(conn, KEY, "# Three", None, "extractor", 5, if_version=2).version == 3


def test_failures_in_a_row_are_counted_until_the_count_begins_anew(conn):
    operations.append(conn, KEY, batch(*dialogue(5)), 1)
    for failed, count in ((True, 1), (True, 2), (None, 2), (False, 0), (True, 1)):
        operations.note(conn, KEY, auto_failed=failed)
        assert (row := operations.session(conn, KEY)) is not None
        assert row.auto_failures == count


def test_instructions_are_the_newest_of_the_conversation_as_it_stands(conn):
    items = [prepared(record(f"r{at}", "user", f"always {at}"), instructions=[f"always {at}"]) for at in range(210)]
    operations.append(conn, KEY, batch(*items), 1)
    found = snapshot_of(conn, ALL).instructions
    assert found == tuple(Instruction(at + 1, f"always {at}") for at in range(10, 210))
    again = prepared(record("again", "user", "always 5"), instructions=["always 5"])
    operations.append(conn, KEY, batch(again), 2)
    assert snapshot_of(conn, ALL).instructions[-1] == Instruction(211, "always 5")
    rewound = record("rewound", "user", "no", parent="r8")
    operations.append(conn, KEY, batch(rewound), 3)
    assert snapshot_of(conn, ALL).instructions == (
        *(Instruction(at + 1, f"always {at}") for at in (0, 1, 2, 3, 4, 6, 7, 8)),
        Instruction(6, "always 5"),
    )


def test_instructions_from_before_a_clients_boundary_still_stand(conn):
    items = [
        prepared(record("a", "user", "always"), instructions=["always"]),
        prepared(record("n", "system", None, type="system", root=True)),
    ]
    operations.append(conn, KEY, Batch(tuple(items), boundaries=(NativeBoundary(MessageUuid("n"), (), ()),)), 1)
    assert snapshot_of(conn, ALL).instructions == (Instruction(1, "always"),)


def test_discovered_tools_are_sorted_and_named_once(conn):
    operations.append(
        conn,
        KEY,
        batch(prepared(record("a", "user", "x"), tools=["b", "a"]), prepared(record("c", "user", "y"), tools=["b"])),
        1,
    )
    assert snapshot_of(conn, ALL).discovered_tools == ("a", "b")


# ---- pages of the live list


@settings(max_examples=25)
@given(size=st.integers(1, 7), kept=st.integers(0, 9))
def test_pages_together_are_the_whole(size, kept):
    conn = operations.connect(":memory:")
    operations.append(conn, KEY, batch(*dialogue(12)), 1)
    snapshot = snapshot_of(conn, ALL)
    operations.commit(conn, KEY, plan_of(snapshot, snapshot.tail[3 : 3 + kept], NOTHING), Stamp(1, ("b", "s")))
    operations.append(conn, KEY, batch(*dialogue(5, 12)), 2)
    assert read_in_pages(conn, size) == read_in_pages(conn, 1000)
    conn.close()


def test_a_page_ends_where_its_bytes_do_but_holds_a_record(conn):
    operations.append(conn, KEY, batch(*[record(f"r{at}", "user", "x" * 100) for at in range(4)]), 1)
    size = len(record("r0", "user", "x" * 100).body)
    for room, number in ((0, 1), (2 * size, 2), (4 * size, 4)):
        page = operations.live(conn, KEY, after=0, limit=9, max_bytes=room)
        assert page is not None
        assert (len(page.records), page.next_after is None) == (number, number == 4)


def test_the_version_of_a_page_changes_with_everything_but_appends(conn):
    operations.append(conn, KEY, batch(*dialogue(12)), 1)
    seen = [version(conn)]
    operations.append(conn, KEY, batch(*dialogue(3, 12)), 2)
    assert version(conn) == seen[0]
    snapshot = snapshot_of(conn, ALL)
    operations.commit(conn, KEY, plan_of(snapshot, snapshot.tail[-3:], NOTHING), Stamp(1, ("b", "s")))
    seen.append(version(conn))
    operations.append(conn, KEY, batch(*dialogue(3, 15)), 2)
    assert version(conn) == seen[1]
    operations.append(conn, KEY, batch(record("other", "user", "no", parent="r16")), 2)
    seen.append(version(conn))
    assert len(set(seen)) == 3


def version(conn: sqlite3.Connection) -> str:
    page = operations.live(conn, KEY, after=0, limit=1, max_bytes=1)
    assert page is not None
    return page.version


def test_live_records_can_be_read_from_a_place_to_another(conn):
    operations.append(conn, KEY, batch(*dialogue(12)), 1)
    found = operations.records(conn, KEY, after_seq=3, up_to_seq=6, live_only=True)
    assert [item.seq for item in found] == [4, 5, 6]
    operations.append(conn, KEY, batch(record("other", "user", "no", parent="r4")), 2)
    assert [item.uuid for item in operations.records(conn, KEY, after_seq=3, up_to_seq=99, live_only=True)] == [
        "r3",
        "r4",
        "other",
    ]


# ---- lists, notes, a list that is sent again


def test_sessions_are_listed_by_their_last_append(conn):
    for at, cwd in enumerate(("/a", "/b", "/a")):
        operations.append(conn, SessionKey("local", f"s{at}"), batch(record("r", "user", "x"), cwd=cwd), at)
    operations.append(conn, SessionKey("tenant", "other"), batch(record("r", "user", "x")), 9)
    operations.append(conn, SessionKey("local", "s0"), batch(record("new", "user", "x")), 7)
    assert [row.key.session_id for row in operations.sessions(conn, "local", cwd=None, limit=9, before_ms=None)] == [
        "s0",
        "s2",
        "s1",
    ]
    assert [row.key.session_id for row in operations.sessions(conn, "local", cwd="/a", limit=9, before_ms=7)] == ["s2"]
    assert [row.key.session_id for row in operations.sessions(conn, "local", cwd=None, limit=1, before_ms=None)] == [
        "s0"
    ]


def test_declines_are_counted_and_the_last_attempt_is_remembered(conn):
    operations.append(conn, KEY, batch(title="t"), 1)
    for reason in ("memory_empty", "gain_too_small", "memory_empty"):
        operations.note(conn, KEY, decline=reason)
    operations.note(conn, KEY, attempt="fingerprint")
    row = operations.session(conn, KEY)
    assert row is not None
    assert (row.declines, row.last_attempt) == ({"memory_empty": 2, "gain_too_small": 1}, "fingerprint")


def test_a_list_is_sent_again_if_it_begins_with_all_that_was_stored(conn):
    items = [prepared(record(f"r{at}", "user", f"x{at % 2}")) for at in range(4)]
    hashes = [item.content_hash for item in items]
    operations.append(conn, KEY, batch(*items[:3]), 1)
    assert operations.match_prefix(conn, KEY, hashes) == 3
    assert operations.match_prefix(conn, KEY, hashes[:3]) == 3
    # Two new messages that say what the first two said are no repetition.
    assert operations.match_prefix(conn, KEY, hashes[:2]) == 0
    assert operations.match_prefix(conn, KEY, [hashes[1], *hashes]) == 0


def test_how_far_the_index_reaches_is_known(conn):
    operations.append(conn, KEY, batch(*dialogue(7)), 1)
    indexing.index_batch(conn, 5)
    assert (indexing.waiting(conn), operations.check(conn).waiting) == (2, 2)


# ---- plans of SQLite


class Noting(ArchiveConnection):
    """Notes the statements it is asked to run."""

    seen: set[str]

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self.seen.add(args[0])
        return super().execute(*args)


# ---- as it was


@pytest.fixture
def told(conn: sqlite3.Connection) -> sqlite3.Connection:
    """Thirty records, two instructions and a tool among them, compacted and gone on with."""
    items = [prepared(item) for item in dialogue(30)]
    items[0] = replace(items[0], instructions=("always use tabs",), tools=("early",))
    items[20] = replace(items[20], instructions=("never push",))
    operations.append(conn, KEY, batch(*items, model="gpt-5"), 1)
    snapshot = snapshot_of(conn, Reach(100, 2, 300))
    operations.commit(conn, KEY, plan_of(snapshot, snapshot.tail, Weight(9, 0, 0, 1)), Stamp(1, ("b", "s")))
    operations.append(conn, KEY, batch(*dialogue(5, 30)), 2)
    return conn


def as_it_was(conn: sqlite3.Connection, seq: int) -> Snapshot:
    snapshot = operations.snapshot(conn, KEY, ALL, up_to_seq=seq)
    assert snapshot is not None
    return snapshot


def test_a_reading_up_to_a_record_knows_nothing_newer(told):
    before = snapshot_of(told, ALL)
    newer = [
        prepared(record("n1", "user", "more"), instructions=["ask first"], tools=["late"]),
        prepared(record("n2", "assistant", [use("tn")])),
        prepared(record("n3", "user", [answer("tn")])),
    ]
    operations.append(told, KEY, batch(*newer), 3)
    assert as_it_was(told, before.base.last_seq) == before
    assert snapshot_of(told, ALL) != before
    assert as_it_was(told, 1 << 40) == snapshot_of(told, ALL)


def test_an_instruction_that_was_said_again_is_read_where_it_was_said_first(told):
    before = snapshot_of(told, ALL)
    operations.append(told, KEY, batch(prepared(record("n1", "user", "x"), instructions=["always use tabs"])), 3)
    found = as_it_was(told, before.base.last_seq)
    assert set(found.instructions) == set(before.instructions)
    assert Instruction(1, "always use tabs") in found.instructions


@pytest.mark.parametrize("what", ["boundary", "clearing", "snip"])
def test_a_newer_marker_shows_in_the_base(told, what):
    before = snapshot_of(told, ALL)
    plan: Any = plan_of(before, before.tail[-3:], Weight(9, 0, 0, 1))
    if what == "snip":
        plan = SnipPlan(before.base, (before.tail[-1].uuid,), NOTHING, 0, 0)
    if what == "clearing":
        cleared = [Cleared(Clearing(ClearKind.RESULT, item.uuid, item.block), NOTHING) for item in before.results]
        plan = ClearingPlan(before.base, tuple(cleared), 0, 0)
    assert operations.commit(told, KEY, plan, Stamp(3, ("b2", "s2"))).marker is not None
    found = as_it_was(told, before.base.last_seq)
    assert found == snapshot_of(told, ALL)
    assert found.base.marker_seq != before.base.marker_seq


def test_an_undo_since_shows_in_the_base_too(told):
    before = snapshot_of(told, ALL)
    operations.undo(told, KEY, Stamp(3, ("u",)))
    assert as_it_was(told, before.base.last_seq).base.marker_seq != before.base.marker_seq


def test_a_rewind_since_shows_in_the_hash(told):
    before = snapshot_of(told, ALL)
    operations.append(told, KEY, batch(record("other", "user", "another way", parent="r31")), 3)
    assert as_it_was(told, before.base.last_seq).base.live_hash != before.base.live_hash


def test_a_reading_as_it_was_costs_what_was_appended_since_and_no_more():
    """Steps of SQLite's machine, which do not depend on the computer."""

    def steps(number: int) -> int:
        conn = operations.connect(":memory:")
        operations.append(conn, KEY, batch(*dialogue(number)), 1)
        operations.append(conn, KEY, batch(*dialogue(10, number)), 2)
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        conn.set_progress_handler(count, 20)
        operations.snapshot(conn, KEY, Reach(100, 2, 300), up_to_seq=number)
        conn.close()
        return taken

    assert steps(3000) < 1.2 * steps(300)


def test_no_statement_walks_over_a_session_or_sorts_one():
    """Where SQLite would take a session's index by the session alone, its cost would grow with the archive."""
    conn = Noting(":memory:", isolation_level=None)
    conn.seen = set()
    migrate(conn)
    conn.seen.clear()
    _use(conn)
    walks = []
    for statement in sorted(conn.seen):
        if statement.split()[0] not in ("SELECT", "UPDATE", "WITH"):
            continue
        names = re.findall(r":(\w+)", statement)
        given: Any = dict.fromkeys(names, 1) if names else (1,) * statement.count("?")
        steps = [row[3] for row in sqlite3.Connection.execute(conn, f"EXPLAIN QUERY PLAN {statement}", given)]
        walks += [(step, statement) for step in steps if _walks(step, statement)]
    assert walks == []


def _walks(step: str, statement: str) -> bool:
    table = step.split()[1] if len(step.split()) > 1 else ""
    if step.startswith("SCAN"):
        # JSON of one row, the index for words, the one row of `archive`, the parents of a marker.
        return (
            "VIRTUAL TABLE" not in step
            and table not in ("archive", "CONSTANT", "up")
            and "sqlite_master" not in statement
        )
    if not step.endswith("(session=?)"):
        return False
    # A few markers or pins; a whole list, which was asked for; newest first, and only as far as it is read.
    return (
        table not in ("m", "marker", "pin")
        and not statement.startswith("SELECT content_hash")
        and "DESC" not in statement
    )


def _use(conn: sqlite3.Connection) -> None:
    operations.append(conn, KEY, batch(*dialogue(60)), 1)
    snapshot = snapshot_of(conn, Reach(100, 1, 500))
    cleared = tuple(Cleared(Clearing(ClearKind.RESULT, item.uuid, item.block), NOTHING) for item in snapshot.results)
    operations.commit(conn, KEY, plan_of(snapshot, snapshot.tail, NOTHING, cleared=cleared), Stamp(1, ("b", "s")))
    operations.append(conn, KEY, batch(record("x", "user", "hi", parent="r20")), 2)
    natives = tuple(prepared(record(uuid, "system", None, type="system")) for uuid in ("n1", "n2"))
    boundaries = (
        NativeBoundary(MessageUuid("n1"), (MessageUuid("later"),), (MessageUuid("r3"),)),
        NativeBoundary(MessageUuid("n2"), (), (), {}, (answer_id("t51"),), micro=True),
    )
    operations.append(conn, KEY, Batch(natives, boundaries=boundaries), 3)
    operations.append(
        conn, KEY, batch(record("later", "user", "s"), record("y", "assistant", [use("t51")], message_id="m1")), 4
    )
    operations.undo(conn, KEY, Stamp(2, ("u",)))
    base = snapshot_of(conn, ALL).base
    operations.snapshot(conn, KEY, ALL, up_to_seq=base.last_seq - 1)
    snip = SnipPlan(base, (MessageUuid("y"), MessageUuid("x")), NOTHING, 0, 0)
    assert operations.commit(conn, KEY, snip, Stamp(2, ("z",))).marker is not None
    operations.put_pending(conn, Pending("c", KEY, "{}", base, 1, 2))
    operations.pending(conn, "local", "c")
    operations.use_pending(conn, "local", "c", 1)
    operations.register(conn, KEY, Registered("plan", "", "x"), 1)
    operations.unregister(conn, KEY, "plan", "")
    live = operations.clearable(conn, KEY)
    assert live is not None
    read_in_pages(conn, 5)
    operations.records(conn, KEY, after_seq=0, up_to_seq=99, live_only=True)
    operations.call(conn, KEY, answer_id("t51"))
    operations.session(conn, KEY)
    operations.markers(conn, KEY)
    operations.search(conn, "local", SearchQuery("done"))
    operations.search(conn, "local", SearchQuery("#12", session_id="s"))
    operations.match_prefix(conn, KEY, [b"a"])
    operations.write_memory(conn, KEY, "x", MessageUuid("r3"), "agent", 1)


def answer_id(call: str) -> Any:
    return call
