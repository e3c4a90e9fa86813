"""Pins: unique by kind and name, in the order in which they were made."""

from __future__ import annotations

import sqlite3

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.pins import MAX_CHARS
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import Registered, SessionKey
from tests.adapters.sqlite.builders import KEY, batch, dialogue


@pytest.fixture
def talk(conn: sqlite3.Connection) -> sqlite3.Connection:
    operations.append(conn, KEY, batch(*dialogue(4)), 1)
    return conn


def test_pins_come_back_in_their_order_with_the_newest_record_of_their_time(talk):
    operations.register(talk, KEY, Registered("plan", "", "1. look\n2. mend"), 5)
    operations.append(talk, KEY, batch(*dialogue(2, 4)), 6)
    operations.register(talk, KEY, Registered("instruction", "", "always \ud800 tabs", 99), 7)
    assert operations.registered(talk, KEY) == [
        Registered("plan", "", "1. look\n2. mend", 4),
        Registered("instruction", "", "always \ufffd tabs", 6),
    ]
    row = operations.session(talk, KEY)
    assert row is not None
    assert row.updated_ms == 7


def test_the_same_kind_and_name_replaces_a_pin_in_its_place(talk):
    for name in ("a", "b"):
        operations.register(talk, KEY, Registered("skill", name, f"old {name}"), 5)
    operations.register(talk, KEY, Registered("file", "a", "another kind"), 6)
    operations.append(talk, KEY, batch(*dialogue(1, 4)), 6)
    operations.register(talk, KEY, Registered("skill", "a", "new a"), 7)
    assert operations.registered(talk, KEY) == [
        Registered("skill", "a", "new a", 5),
        Registered("skill", "b", "old b", 4),
        Registered("file", "a", "another kind", 4),
    ]


def test_a_pin_is_taken_back_once(talk):
    operations.register(talk, KEY, Registered("plan", "", "x"), 5)
    assert not operations.unregister(talk, KEY, "plan", "other")
    assert not operations.unregister(talk, KEY, "todos", "")
    assert operations.unregister(talk, KEY, "plan", "")
    assert not operations.unregister(talk, KEY, "plan", "")
    assert operations.registered(talk, KEY) == []


def test_other_sessions_and_namespaces_have_their_own_pins(talk):
    other = SessionKey("tenant", "s")
    operations.append(talk, other, batch(*dialogue(1)), 1)
    operations.register(talk, KEY, Registered("plan", "", "ours"), 5)
    assert operations.registered(talk, other) == []
    assert not operations.unregister(talk, other, "plan", "")
    assert len(operations.registered(talk, KEY)) == 1


def test_a_text_that_no_context_could_hold_is_refused(talk):
    operations.register(talk, KEY, Registered("file", "", "x" * MAX_CHARS), 5)
    with pytest.raises(CallerError, match="400,001 characters") as caught:
        operations.register(talk, KEY, Registered("file", "", "x" * (MAX_CHARS + 1)), 5)
    assert caught.value.code == "too_long"
    assert len(operations.registered(talk, KEY)[0].text) == MAX_CHARS


def test_a_session_that_is_not_there_has_no_pins_and_takes_none(talk):
    nowhere = SessionKey("local", "nowhere")
    assert operations.registered(talk, nowhere) == []
    assert not operations.unregister(talk, nowhere, "plan", "")
    with pytest.raises(CallerError) as caught:
        operations.register(talk, nowhere, Registered("plan", "", "x"), 5)
    assert caught.value.code == "no_such_session"
