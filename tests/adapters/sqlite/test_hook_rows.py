"""What hooks read and note with single statements."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mcp_compact.adapters.sqlite import hook_rows, migrations, operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.operations import hook_state
from mcp_compact.adapters.sqlite.operations.hook_state import HookState
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import Batch, Registered
from tests.adapters.sqlite.builders import KEY, batch, dialogue, prepared, record

S = (KEY.namespace, KEY.session_id)


def test_the_archive_is_told_by_the_same_marks_as_everywhere():
    assert migrations.schema_versions()[-1][0] == hook_rows.newest_schema()
    assert migrations.APPLICATION_ID == hook_rows.APPLICATION_ID


def test_an_archive_is_opened_only_where_it_is_there_and_of_this_schema(path: Path):
    assert hook_rows.open_known(str(path)) is None
    assert not Path(path).exists()
    operations.connect(path).close()
    opened = hook_rows.open_known(str(path))
    assert opened is not None
    opened.execute("PRAGMA user_version=99")
    opened.close()
    assert hook_rows.open_known(str(path)) is None


def test_a_file_that_is_no_database_is_an_error(path: Path):
    Path(path).write_bytes(b"no database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        hook_rows.open_known(str(path))


def test_a_client_is_at_the_session_that_it_started_last(conn: ArchiveConnection):
    assert hook_rows.bound(conn, "7:1") is None
    hook_rows.bind(conn, "7:1", ("local", "one"), ("/t/one.jsonl", "/p"), 1)
    hook_rows.bind(conn, "8:1", ("local", "other"), ("/t/other.jsonl", "/p"), 2)
    hook_rows.bind(conn, "7:1", ("local", "two"), ("/t/two.jsonl", "/q"), 3)
    assert hook_rows.bound(conn, "7:1") == ("local", "two", "/t/two.jsonl", "/q")
    assert hook_rows.bound(conn, "8:1") == ("local", "other", "/t/other.jsonl", "/p")


def test_clients_of_a_month_ago_are_forgotten(conn: ArchiveConnection):
    hook_rows.bind(conn, "7:1", ("local", "one"), ("", ""), 1)
    hook_rows.follow(conn, "7:1", "9:9", 1)
    hook_rows.bind(conn, "8:1", ("local", "two"), ("", ""), hook_rows.KEPT_MS + 2)
    assert hook_rows.bound(conn, "7:1") is None
    assert hook_rows.follower(conn, "7:1") == ""
    assert hook_rows.bound(conn, "8:1") is not None


def test_the_newest_server_follows(conn: ArchiveConnection):
    assert hook_rows.follower(conn, "7:1") == ""
    hook_rows.follow(conn, "7:1", "9:9", 1)
    hook_rows.follow(conn, "7:1", "10:9", 2)
    assert hook_rows.follower(conn, "7:1") == "10:9"


def test_rules_are_the_instructions_and_the_pinned_ones(conn: ArchiveConnection):
    assert hook_rows.rules_kept(conn, *S) == 0
    operations.append(conn, KEY, Batch((prepared(record("a", "user", "hi"), instructions=["always use tabs"]),)), 1)
    operations.register(conn, KEY, Registered("instruction", "x", "never push"), 2)
    operations.register(conn, KEY, Registered("plan", "", "step 1"), 2)
    assert hook_rows.rules_kept(conn, *S) == 2
    hook_state.put_hook_state(conn, KEY, rules=1)
    assert hook_rows.rules_kept(conn, *S) == 1


def test_a_text_is_given_once(conn: ArchiveConnection):
    assert hook_rows.injection(conn, *S) == ""
    operations.append(conn, KEY, batch(*dialogue(4)), 1)
    hook_state.put_hook_state(conn, KEY, injection="rules \ud83d", refinement="more")
    assert hook_rows.injection(conn, *S) == "rules \ufffd"
    assert hook_rows.injection(conn, *S) == ""
    assert hook_state.hook_state(conn, KEY).given == "rules \ufffd"
    assert hook_rows.refinement(conn, *S) == "more"
    assert hook_rows.refinement(conn, *S) == ""
    assert not conn.in_transaction


def test_what_is_not_named_stays(conn: ArchiveConnection):
    assert hook_state.hook_state(conn, KEY) == HookState()
    with pytest.raises(CallerError, match="no session"):
        hook_state.put_hook_state(conn, KEY, held=1)
    operations.append(conn, KEY, batch(*dialogue(4)), 1)
    hook_state.put_hook_state(conn, KEY, held=1, rules=4)
    hook_state.put_hook_state(conn, KEY, held=2)
    assert hook_state.hook_state(conn, KEY) == HookState(held=2, rules=4)
