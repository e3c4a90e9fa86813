"""What the archive says could be cleared is what the conversation in memory says."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.in_memory import apply_clearing_plan, clearable_of, conversation
from mcp_compact.compaction.micro import Clearable, MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.snapshot import CallFacts, Reach
from mcp_compact.compaction.weighing import weigh_records
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.markers import ClearKind
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.ports.store import Batch, LiveMedia, Prepared, SessionFacts, Stamp
from mcp_compact.testing import Talk, tool_result, turns
from tests.adapters.sqlite.builders import KEY
from tests.adapters.sqlite.model import plan_of
from tests.conversations import live, talks

AROUND = Surroundings()
LARGE = "a line of output\n" * 200
EVERYTHING = MicroPolicy(
    clear_tool_inputs=True, clear_failed_inputs=True, clear_outdated_reads=True, clear_repeated_calls=True
)
ALL = MicroRequest(mode=MicroMode.ALL, keep=1)


def batch_of(records: Sequence[Record]) -> Batch:
    """The records prepared as the service prepares them, counted by estimate."""
    weighed = weigh_records(records, None, ClearedText())
    prepared = [
        Prepared(record, own.estimate, None, own.results, own.cleared, media=own.media, inputs=own.inputs)
        for record, own in zip(records, weighed, strict=True)
    ]
    return Batch(tuple(prepared), SessionFacts(model="claude-sonnet-4-5", context_window=90_000, overhead_tokens=77))


def stored(conn: sqlite3.Connection) -> Clearable:
    found = operations.clearable(conn, KEY)
    assert found is not None
    return found


def calls(found: Clearable) -> list[CallFacts | None]:
    return [fact.call for fact in found.results]


def work() -> Talk:
    talk = Talk()
    talk.user("go")
    for at, failed in enumerate([False, True, False]):
        given = {"file_path": "/src/a.py", "offset": at, "limit": 9, "why": "x" * 900}
        talk.add(
            "assistant", [{"type": "tool_use", "id": f"t{at}", "name": "Read", "input": given}], message_id=f"m{at}"
        )
        talk.add("user", [tool_result(f"t{at}", LARGE, is_error=failed)])
    talk.assistant("done")
    return talk


@given(talks(most=6))
def test_the_archive_gives_the_facts_that_the_conversation_in_memory_gives(talk: Talk) -> None:
    conn = operations.connect(":memory:")
    operations.append(conn, KEY, batch_of(talk.records), 1)
    ours, theirs = stored(conn), clearable_of(conversation(live(talk), CLAUDE, AROUND))
    assert (ours.overhead_tokens, ours.context_window) == (77, 90_000)
    assert ours.live_weight == theirs.live_weight
    assert list(ours.results) == list(theirs.results)
    assert list(ours.media) == list(theirs.media)
    assert (ours.newest_answer_ms, ours.newest_answer_seq) == (theirs.newest_answer_ms, theirs.newest_answer_seq)

    held = LiveMedia(len(theirs.media), sum(item.bytes for item in theirs.media))
    row = operations.session(conn, KEY)
    assert row is not None
    assert row.media == held

    plan = plan_clearing(ours, ALL, EVERYTHING)
    assert plan.cleared == plan_clearing(theirs, ALL, EVERYTHING).cleared
    committed = operations.commit(conn, KEY, plan, Stamp(1, ("m",)))
    assert (committed.marker is None) == (not plan.cleared)
    row = operations.session(conn, KEY)
    assert row is not None
    assert CLAUDE.tokens(row.live_weight) == plan.tokens_after
    after = clearable_of(conversation(apply_clearing_plan(live(talk), plan), CLAUDE, AROUND))
    assert list(stored(conn).results) == list(after.results)
    assert plan_clearing(stored(conn), ALL, EVERYTHING).cleared == ()
    conn.close()


def test_a_calls_file_lines_and_input_come_back(conn: sqlite3.Connection) -> None:
    talk = Talk()
    talk.user("go")
    talk.call("t0")
    talk.results("t0", text=LARGE)
    operations.append(conn, KEY, batch_of(talk.records), 1)
    (call,) = calls(stored(conn))
    assert call is not None
    assert (call.uuid, call.seq, call.block) == ("r2", 2, 0)
    assert (call.input.path, call.input.lines) == ("t0.py", (1, 2001))
    assert len(call.input.hash) == 16


def test_thinking_anywhere_in_the_message_id_is_told(conn: sqlite3.Connection) -> None:
    talk = Talk()
    talk.user("go")
    talk.call("t0", message_id="m1")
    talk.call("t1", message_id="m2")
    talk.results("t0", "t1", text=LARGE)
    operations.append(conn, KEY, batch_of(talk.records), 1)
    assert [call and call.holds_thinking for call in calls(stored(conn))] == [False, False]
    talk.add("assistant", [{"type": "thinking", "thinking": "hm", "signature": "S"}], message_id="m2")
    operations.append(conn, KEY, batch_of(talk.records[-1:]), 2)
    assert [call and call.holds_thinking for call in calls(stored(conn))] == [False, True]


def test_an_input_is_cleared_once_comes_back_by_undo_and_weighs_what_it_should(conn: sqlite3.Connection) -> None:
    talk = work()
    operations.append(conn, KEY, batch_of(talk.records), 1)
    before = operations.session(conn, KEY)
    policy = MicroPolicy(clear_failed_inputs=True)
    plan = plan_clearing(stored(conn), MicroRequest(keep=1), policy)
    assert [(item.clearing.kind, item.clearing.uuid) for item in plan.cleared] == [(ClearKind.INPUT, "r4")]
    committed = operations.commit(conn, KEY, plan, Stamp(1, ("m",)))
    assert committed.marker is not None
    page = operations.live(conn, KEY, after=0, limit=99, max_bytes=1 << 30)
    assert page is not None
    assert [item.kind for item in page.clearings[plan.cleared[0].clearing.uuid]] == [ClearKind.INPUT]
    assert [call and call.input_cleared for call in calls(stored(conn))] == [False, True, False]
    assert operations.commit(conn, KEY, plan, Stamp(1, ("n",))).reason == "nothing_to_clear"
    operations.undo(conn, KEY, Stamp(2, ("u",)))
    assert [call and call.input_cleared for call in calls(stored(conn))] == [False, False, False]
    after = operations.session(conn, KEY)
    assert before is not None
    assert after is not None
    assert (after.live_hash, after.live_weight) == (before.live_hash, before.live_weight)


def test_a_call_before_the_boundary_or_snipped_away_has_a_name_and_no_facts(conn: sqlite3.Connection) -> None:
    talk = work()
    operations.append(conn, KEY, batch_of(talk.records), 1)
    snapshot = operations.snapshot(conn, KEY, Reach(0, 0, 1))
    assert snapshot is not None
    kept = [entry for entry in snapshot.tail if entry.results or entry.calls][-2:]
    operations.commit(conn, KEY, plan_of(snapshot, kept, CLAUDE_SUMMARY), Stamp(1, ("b", "s")))
    assert [call and call.uuid for call in calls(stored(conn))] == [entry.uuid for entry in kept if entry.calls]
    late = replace(Talk().results("t0", text=LARGE), uuid=snapshot.tail[0].uuid.__class__("late"), seq=0)
    operations.append(conn, KEY, batch_of([late]), 3)
    facts = {fact.tool_use_id: (fact.tool, fact.call) for fact in stored(conn).results}
    assert facts[late.results[0].tool_use_id] == ("Read", None)


CLAUDE_SUMMARY = weigh_records([Talk().user("the story")], None, ClearedText())[0].estimate


def test_a_snapshot_names_the_tools_and_asks_for_no_more(conn: sqlite3.Connection) -> None:
    operations.append(conn, KEY, batch_of(work().records), 1)
    snapshot = operations.snapshot(conn, KEY, Reach(10_000, 5, 40_000))
    assert snapshot is not None
    assert {(fact.tool, fact.call) for fact in snapshot.results} == {("Read", None)}


def test_a_path_with_a_lone_surrogate_or_a_nul_is_stored(conn: sqlite3.Connection, tmp_path: Path) -> None:
    talk = Talk()
    talk.user("go")
    given = {"file_path": "/a\ud800\0b"}
    talk.add("assistant", [{"type": "tool_use", "id": "t", "name": "Read", "input": given}])
    talk.results("t", text=LARGE)
    operations.append(conn, KEY, batch_of(talk.records), 1)
    (call,) = calls(stored(conn))
    assert call is not None
    assert call.input.path == "/a\ufffd\ufffdb"


@st.composite
def repeated(draw: st.DrawFn) -> Talk:
    """Calls and results of a few ids in any number and order, large enough to be cleared."""
    talk = Talk()
    talk.user("go")
    for number in range(draw(st.integers(1, 9))):
        ids = draw(st.lists(st.sampled_from(["t1", "t2"]), min_size=1, max_size=3))
        if draw(st.booleans()):
            blocks = [{"type": "tool_use", "id": name, "name": "Read", "input": {"n": number}} for name in ids]
            talk.add("assistant", blocks, message_id=f"m{number}")
        else:
            talk.add("user", [tool_result(name, f"{number} {LARGE}", is_error=draw(st.booleans())) for name in ids])
    talk.assistant("done")
    return talk


@given(repeated())
def test_of_repeated_ids_archive_and_memory_name_the_result_that_the_model_is_shown(talk: Talk) -> None:
    conn = operations.connect(":memory:")
    operations.append(conn, KEY, batch_of(talk.records), 1)
    ours, theirs = stored(conn), clearable_of(conversation(live(talk), CLAUDE, AROUND))
    assert list(ours.results) == list(theirs.results)
    shown = {id(block) for turn in valid_turns(turns(talk.records))[0] for block in turn.blocks}
    results = [(record, at, b) for record in talk.records for at, b in enumerate(record.blocks) if b in record.results]
    answering = {(record.uuid, at) for record, at, block in results if id(block) in shown}
    assert {(fact.uuid, fact.block) for fact in ours.results if fact.call is not None} == answering

    # Clearing it brings none of the others back.
    plan = plan_clearing(ours, MicroRequest(mode=MicroMode.ALL, keep=0), MicroPolicy())
    operations.commit(conn, KEY, plan, Stamp(1, ("m",)))
    after = clearable_of(conversation(apply_clearing_plan(live(talk), plan), CLAUDE, AROUND))
    assert list(stored(conn).results) == list(after.results)
    assert plan_clearing(stored(conn), MicroRequest(mode=MicroMode.ALL, keep=0), MicroPolicy()).cleared == ()
    for name in ("t1", "t2"):
        _, result = operations.call(conn, KEY, ToolUseId(name))
        of_it = {
            record.uuid for record, at, block in results if (record.uuid, at) in answering and block.tool_use_id == name
        }
        assert not of_it or (result is not None and {result.uuid} == of_it)
