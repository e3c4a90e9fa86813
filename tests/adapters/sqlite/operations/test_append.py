"""Appending: what is new is stored once, whatever comes with it."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical, decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.ports.store import Batch, SessionFacts, SessionKey, SourcePosition
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, batch, dialogue, prepared, record, text, use

ALL = Reach(0, 0, 1 << 60)


def stored(conn: sqlite3.Connection, key: SessionKey = KEY) -> list[Record]:
    return operations.records(conn, key, after_seq=0, up_to_seq=1 << 40, live_only=False)


def overhead(conn: sqlite3.Connection) -> tuple[int, str]:
    row = operations.session(conn, KEY)
    assert row is not None
    return row.overhead_tokens, row.overhead_source


def test_records_come_back_as_they_were_given(conn):
    given_ones = [
        record("a", "user", "hello", at_ms=5, is_meta=True),
        record("b", "assistant", [text("hi"), use("t")], message_id="m", usage=10, model="claude-x"),
        record("c", "system", None, type="system", subtype="turn_duration", root=True),
        replace(
            record("d", "user", [answer("t", is_error=True), IMAGE], parent="b"), is_summary=True, agent_id="agent"
        ),
    ]
    done = operations.append(conn, KEY, batch(*given_ones), 1)
    assert (done.new, done.known, done.last_seq) == (4, 0, 4)
    assert stored(conn) == [replace(item, seq=at) for at, item in enumerate(given_ones, 1)]


def test_a_plain_message_comes_back_with_its_message(conn):
    raw = {"role": "user", "content": [text("hi")]}
    item = Record(MessageUuid("u"), "user", canonical(raw), raw, decode_message(raw))
    operations.append(conn, KEY, batch(item), 1)
    assert stored(conn) == [replace(item, seq=1)]


def test_a_translated_line_keeps_its_own_bytes_and_its_message(conn):
    """Foreign formats: the message cannot be read from the body by itself."""
    line = {
        "timestamp": "t",
        "type": "response_item",
        "payload": {"role": "assistant", "content": [{"type": "output_text"}]},
    }
    message = decode_message({"role": "assistant", "content": [text("hi")], "id": "m", "usage": {"input_tokens": 7}})
    item = Record(MessageUuid("u"), "assistant", json.dumps(line).encode(), line, message)
    operations.append(conn, KEY, batch(item), 1)
    (found,) = stored(conn)
    assert found.message == message
    assert (found.body, found.raw) == (item.body, line)


def test_the_same_batch_twice_adds_nothing(conn):
    items = batch(*dialogue(20))
    operations.append(conn, KEY, items, 1)
    before = operations.session(conn, KEY)
    done = operations.append(conn, KEY, items, 2)
    assert (done.new, done.known, done.conflicts, done.last_seq) == (0, 20, (), 20)
    assert done.uuids == tuple(item.record.uuid for item in items.records)
    assert operations.session(conn, KEY) == before


def test_a_uuid_twice_in_one_batch_is_stored_once(conn):
    done = operations.append(conn, KEY, batch(record("a", "user", "x"), record("a", "user", "x")), 1)
    assert (done.new, done.known, done.uuids) == (1, 1, ("a", "a"))


def test_equal_text_under_other_uuids_is_another_message(conn):
    operations.append(conn, KEY, batch(record("a", "user", "retry"), record("b", "user", "retry")), 1)
    assert [item.uuid for item in stored(conn)] == ["a", "b"]


def test_the_same_message_in_another_envelope_is_known(conn):
    first = record("a", "user", "x")
    again = replace(first, body=canonical({**first.raw, "version": "2"}), raw={**first.raw, "version": "2"})
    operations.append(conn, KEY, batch(first), 1)
    done = operations.append(conn, KEY, batch(again), 2)
    assert (done.known, done.conflicts) == (1, ())


@pytest.mark.parametrize("together", [True, False])
def test_other_content_under_a_known_uuid_is_archived_as_a_conflict(conn, together):
    first, other = record("a", "user", "x"), record("a", "user", "y")
    if together:
        done = operations.append(conn, KEY, batch(first, other), 1)
    else:
        operations.append(conn, KEY, batch(first), 1)
        done = operations.append(conn, KEY, batch(other), 1)
    operations.append(conn, KEY, batch(other), 2)
    assert done.conflicts == ("a",)
    assert [item.text for item in stored(conn)] == ["x"]
    assert conn.execute("SELECT uuid, data FROM conflict").fetchall() == [("a", other.body)]


def test_lines_without_a_message_are_compared_by_their_fields(conn):
    first = record("a", "system", None, type="system")
    spaced = replace(first, body=json.dumps(first.raw, indent=1).encode())
    changed = replace(first, body=canonical({**first.raw, "more": 1}))
    broken = replace(first, body=b"{broken", raw={})
    operations.append(conn, KEY, batch(first), 1)
    assert operations.append(conn, KEY, batch(spaced), 1).known == 1
    assert operations.append(conn, KEY, batch(changed, broken), 1).conflicts == ("a", "a")


def test_missing_parents_are_named_and_those_in_the_archive_are_not(conn):
    items = [
        record("a", "user", "x"),
        record("b", "user", "y", parent="gone"),
        record("c", "user", "z", parent="d"),
        record("d", "user", "w"),
    ]
    done = operations.append(conn, KEY, batch(*items), 1)
    assert done.missing_parents == ("gone",)


def test_a_session_is_made_only_where_the_batch_says_so(conn):
    with pytest.raises(CallerError, match="There is no session 's'") as caught:
        operations.append(conn, KEY, replace(batch(record("a", "user", "x")), create=False), 1)
    assert caught.value.code == "no_such_session"
    assert operations.session(conn, KEY) is None


def test_facts_replace_only_what_they_name(conn):
    operations.append(conn, KEY, batch(title="t", model="gpt-5", cwd="/w", owner="client", context_window=9), 1)
    operations.append(conn, KEY, batch(model="claude", agent_id="a", parent_session_id="p"), 2)
    row = operations.session(conn, KEY)
    assert row is not None
    assert (row.title, row.model, row.cwd, row.owner, row.context_window) == ("t", "claude", "/w", "client", 9)
    assert (row.agent_id, row.parent_session_id, row.created_ms, row.updated_ms) == ("a", "p", 1, 2)


def test_a_server_in_another_working_directory_does_not_move_a_session(conn):
    imported = replace(prepared(record("a", "user", "x")), content_hash=b"")
    operations.append(conn, KEY, batch(imported, title="first", cwd="/home", owner="client"), 1)
    operations.append(conn, KEY, batch(record("b", "user", "y"), title="second", cwd="/server", owner="loop"), 2)
    row = operations.session(conn, KEY)
    assert row is not None
    assert (row.title, row.cwd, row.owner) == ("first", "/home", "client")


@pytest.mark.parametrize("how", ["records", "position"])
def test_an_import_may_bring_a_better_title_and_nothing_else_of_the_kind(conn, how):
    operations.append(conn, KEY, batch(record("a", "user", "x"), title="first", cwd="/home", owner="client"), 1)
    imported = batch(
        replace(prepared(record("b", "user", "y")), content_hash=b""), title="second", cwd="/w", owner="loop"
    )
    if how == "position":
        imported = replace(imported, records=(), position=SourcePosition("f", 1, 1, 1, "h"))
    operations.append(conn, KEY, imported, 2)
    operations.append(conn, KEY, replace(imported, facts=SessionFacts(title="")), 3)
    row = operations.session(conn, KEY)
    assert row is not None
    assert (row.title, row.cwd, row.owner) == ("second", "/home", "client")


def test_what_a_session_was_never_told_is_filled_in_by_any_batch(conn):
    operations.create_session(conn, KEY, SessionFacts(), 1)
    operations.append(conn, KEY, batch(record("a", "user", "x"), title="t", cwd="/w", owner="loop"), 2)
    row = operations.session(conn, KEY)
    assert row is not None
    assert (row.title, row.cwd, row.owner) == ("t", "/w", "loop")


def test_a_number_that_no_store_holds_is_refused_by_name(conn):
    with pytest.raises(CallerError, match="context_window is 9223372036854775808"):
        operations.append(conn, KEY, batch(context_window=2**63), 1)
    assert operations.session(conn, KEY) is None


def test_sessions_of_two_tenants_do_not_meet(conn):
    other = SessionKey("tenant", "s")
    operations.append(conn, KEY, batch(record("a", "user", "mine")), 1)
    operations.append(conn, other, batch(record("a", "user", "theirs")), 1)
    assert [item.text for item in stored(conn)] == ["mine"]
    assert [item.text for item in stored(conn, other)] == ["theirs"]


def test_how_far_a_file_was_read_is_kept_with_what_it_brought(conn):
    position = SourcePosition("/w/f.jsonl", 120, 3, 3, "hash", '{"a": 1}')
    operations.append(conn, KEY, Batch((), SessionFacts(), (), position), 1)
    assert operations.position(conn, "local", "/w/f.jsonl") == position
    later = replace(position, offset=500)
    operations.append(conn, KEY, Batch((), SessionFacts(), (), later), 2)
    assert operations.position(conn, "local", "/w/f.jsonl") == later
    assert operations.position(conn, "tenant", "/w/f.jsonl") is None


# ---- the provider's counts


def test_overhead_is_what_the_provider_counted_beyond_what_stood_before_the_answer(conn):
    items = [
        prepared(record("a", "user", "x" * 100), exact=40),
        prepared(record("b", "assistant", [text("y")], message_id="m", usage=1000), exact=30),
    ]
    operations.append(conn, KEY, replace(batch(*items), facts=SessionFacts(model="claude-sonnet-4")), 1)
    assert overhead(conn) == (1000 - CLAUDE.tokens(items[0].weight.__class__(40_000, 0, 0, 1)), "usage")


def test_records_of_one_message_id_repeat_one_usage(conn):
    """The second block of the answer comes later; its usage is that of the request before the first."""
    first = prepared(record("a", "user", "x"), exact=40)
    second = prepared(record("b", "assistant", [text("y")], message_id="m", usage=1000), exact=500)
    third = prepared(record("c", "assistant", [text("z")], message_id="m", usage=1000), exact=500)
    operations.append(conn, KEY, batch(first, second, third, model="gpt-5"), 1)
    together = overhead(conn)
    other = SessionKey("local", "other")
    for item in (first, second, third):
        operations.append(conn, other, batch(item, model="gpt-5"), 1)
    row = operations.session(conn, other)
    assert row is not None
    assert together == (row.overhead_tokens, row.overhead_source) == (1000 - 40 - 4, "usage")


def test_an_overhead_that_was_given_wins(conn):
    operations.append(conn, KEY, batch(overhead_tokens=7), 1)
    operations.append(conn, KEY, batch(record("a", "assistant", "x", usage=1000)), 1)
    assert overhead(conn) == (7, "given")


def test_an_answer_off_the_branch_tells_nothing(conn):
    items = [
        record("a", "user", "x"),
        record("b", "assistant", "y", parent="a", usage=500),
        record("c", "user", "z", parent="a"),
    ]
    operations.append(conn, KEY, batch(*items), 1)
    assert overhead(conn) == (0, "none")


def test_a_clients_fill_is_its_last_request_and_what_came_since(conn):
    items = [record("a", "user", "x"), record("b", "assistant", "y", usage=500), record("c", "user", "z")]
    weights = [prepared(item, exact=10) for item in items]
    operations.append(conn, KEY, batch(*weights, owner="client", model="gpt-5"), 1)
    row = operations.session(conn, KEY)
    assert row is not None
    assert row.client_tokens == 500 + 2 * (10 + 4)


def test_a_clients_fill_after_a_rewind_is_that_of_an_older_answer(conn):
    items = [
        record("a", "user", "x"),
        record("b", "assistant", "y", usage=500),
        record("c", "user", "z"),
        record("d", "assistant", "w", usage=900),
    ]
    operations.append(conn, KEY, batch(*items, owner="client", model="gpt-5"), 1)
    operations.append(conn, KEY, batch(prepared(record("e", "user", "v", parent="b"), exact=10)), 2)
    row = operations.session(conn, KEY)
    assert row is not None
    answer_weight = prepared(items[1]).weight
    assert row.client_tokens == 500 + -(-(answer_weight.units + 10_000) // 1000) + 2 * 4


# ---- any text


@given(
    words=st.text(st.characters(codec=None, exclude_categories=()), max_size=20),
    name=st.text(st.characters(codec=None, exclude_categories=()), max_size=8),
)
def test_any_text_is_stored_and_comes_back(words, name):
    """Lone surrogates and NUL in content come back as they were; in names they are replaced, for these are keys."""
    conn = operations.connect(":memory:")
    key = SessionKey(name, name)
    item = record(f"u{name}", "user", [text(words), answer(name or "t", words)], message_id=name or None, parent=name)
    facts = SessionFacts(title=words, model=name, cwd=words, owner=name)
    done = operations.append(conn, key, Batch((prepared(item, instructions=[words], tools=[name]),), facts), 1)
    assert done.new == 1
    assert operations.append(conn, key, batch(item), 1).known == 1
    found = operations.record(conn, key, done.uuids[0])
    assert found is not None
    assert found.message is not None
    assert item.message is not None
    assert found.message.content == item.message.content
    snapshot = operations.snapshot(conn, key, ALL)
    assert snapshot is not None
    assert snapshot.tail[0].uuid == done.uuids[0]
    assert operations.call(conn, key, item.results[0].tool_use_id)[1] == found
    conn.close()


def test_times_and_counts_beyond_64_bits_do_not_stop_an_import(conn):
    item = record("a", "assistant", "x", at_ms=2**63, usage=2**63)
    operations.append(conn, KEY, batch(item), 1)
    (found,) = stored(conn)
    assert found.at_ms is None
    assert found.body == item.body


def test_empty_texts_are_texts(conn):
    items = [record("a", "user", ""), record("b", "assistant", [text("")], message_id=""), record("c", "user", [])]
    operations.append(conn, SessionKey("", ""), batch(*items), 1)
    assert [item.message.content for item in stored(conn, SessionKey("", "")) if item.message] == ["", [text("")], []]
