"""Deleting a session: nothing of it is left, and nothing of any other is touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection, check_point
from mcp_compact.adapters.sqlite.operations import deleting, hook_state, indexing, searchable
from mcp_compact.adapters.sqlite.operations.deleting import TABLES
from mcp_compact.compaction.plan import Cleared, ClearingPlan, MemoryUpdate
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import (
    Batch,
    NativeBoundary,
    Pending,
    Registered,
    SessionFacts,
    SessionKey,
    SourcePosition,
    Stamp,
)
from tests.adapters.sqlite.builders import IMAGE, KEY, batch, dialogue, prepared, record, text
from tests.adapters.sqlite.model import plan_of

OTHER = SessionKey("local", "other")
FORK = SessionKey("local", "fork")


def fill(conn: sqlite3.Connection, key: SessionKey) -> int:
    """A session with rows in every table; how many records it has."""
    items = [prepared(item) for item in dialogue(30)]
    items.append(prepared(record("i", "user", [text("look"), IMAGE]), instructions=["always use tabs"], tools=["t"]))
    operations.append(conn, key, Batch(tuple(items), position=SourcePosition(f"f{key.session_id}", 1, 1, 1, "h")), 1)
    operations.append(conn, key, batch(record("r0", "user", "a conflict")), 1)
    found = operations.snapshot(conn, key, Reach(100, 2, 300))
    assert found is not None
    cleared = tuple(Cleared(Clearing(ClearKind.RESULT, item.uuid, item.block), NOTHING) for item in found.results)
    plan = plan_of(
        found, found.tail, Weight(9, 0, 0, 1), cleared=cleared, memory=MemoryUpdate("# M", None, None, "agent")
    )
    operations.commit(conn, key, plan, Stamp(2, ("b", "sum")))
    live = operations.clearable(conn, key)
    assert live is not None
    media = tuple(Cleared(Clearing(ClearKind.MEDIA, item.uuid, item.block), NOTHING) for item in live.media)
    operations.commit(conn, key, ClearingPlan(live.base, media, 0, 0), Stamp(3, ("m",)))
    native = NativeBoundary(MessageUuid("n"), (MessageUuid("awaited"),), (MessageUuid("i"),))
    operations.append(
        conn, key, Batch((prepared(record("n", "system", None, type="system")),), boundaries=(native,)), 4
    )
    operations.register(conn, key, Registered("plan", "", "step 1"), 5)
    operations.put_pending(conn, Pending(f"c {key.session_id}", key, "{}", found.base, 1, 100))
    hook_state.put_hook_state(conn, key, injection="always use tabs")
    row = operations.session(conn, key)
    assert row is not None
    return row.last_seq


def rows_of(conn: sqlite3.Connection, key: SessionKey) -> dict[str, Any]:
    number = conn.execute("SELECT id FROM session WHERE session_id = ?", (key.session_id,)).fetchone()
    return {
        table: conn.execute(f"SELECT * FROM {table} WHERE session = ? ORDER BY 1, 2, 3", number).fetchall()
        for table in TABLES
    }


def all_tables(conn: sqlite3.Connection) -> Iterator[str]:
    for name, sql in conn.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"):
        if not name.startswith(("sqlite_", "fts")) and "VIRTUAL" not in sql:
            yield name


def test_the_test_session_has_rows_in_every_table_of_sessions(conn):
    fill(conn, KEY)
    assert [table for table, rows in rows_of(conn, KEY).items() if not rows] == []
    with_sessions = {
        table
        for table in all_tables(conn)
        if "session" in [row[1] for row in conn.execute(f"PRAGMA table_info({table})")]
    }
    assert with_sessions == set(TABLES)


def test_everything_of_it_goes_and_nothing_of_another(conn):
    number = fill(conn, KEY)
    fill(conn, OTHER)
    before = rows_of(conn, OTHER)
    assert operations.delete_session(conn, KEY) == number
    assert operations.session(conn, KEY) is None
    assert operations.position(conn, "local", "fs") is None
    assert operations.pending(conn, "local", "c s") is None
    assert rows_of(conn, OTHER) == before
    health = operations.check(conn, bodies=True)
    assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    operations.delete_session(conn, OTHER)
    left = {table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in all_tables(conn)}
    assert {table: rows for table, rows in left.items() if rows} == {"archive": 1}


def test_a_session_that_is_not_there_is_no_error(conn):
    assert operations.delete_session(conn, KEY) == 0
    fill(conn, KEY)
    assert operations.delete_session(conn, SessionKey("tenant", "s")) == 0
    assert operations.session(conn, KEY) is not None


def test_a_session_under_the_same_id_starts_afresh(conn):
    fill(conn, KEY)
    operations.delete_session(conn, KEY)
    number = fill(conn, KEY)
    row = operations.session(conn, KEY)
    assert row is not None
    assert (row.last_seq, row.memory_version) == (number, 1)
    assert operations.check(conn, bodies=True).wrong_totals == ()


def test_sub_agents_sessions_stay(conn):
    fill(conn, KEY)
    child = SessionKey("local", "s/agent-1")
    operations.append(conn, child, batch(record("a", "user", "x"), parent_session_id="s", agent_id="1"), 1)
    operations.delete_session(conn, KEY)
    row = operations.session(conn, child)
    assert row is not None
    assert row.live_count == 1


# ---- shared bodies


@pytest.mark.parametrize("first", ["parent", "fork"])
def test_whoever_goes_first_leaves_the_other_its_bodies(conn, first):
    fill(conn, KEY)
    operations.fork_session(conn, KEY, FORK, None, 1)
    operations.fork_session(conn, FORK, SessionKey("local", "second"), None, 1)
    gone, left = (KEY, FORK) if first == "parent" else (FORK, KEY)
    kept = operations.records(conn, left, after_seq=0, up_to_seq=1 << 40, live_only=False)
    operations.delete_session(conn, gone)
    assert operations.records(conn, left, after_seq=0, up_to_seq=1 << 40, live_only=False) == kept
    assert operations.check(conn, bodies=True).wrong_bodies == ()
    operations.delete_session(conn, left)
    second = operations.records(conn, SessionKey("local", "second"), after_seq=0, up_to_seq=1 << 40, live_only=True)
    assert second
    assert conn.execute("SELECT count(*) FROM body").fetchone() == (len(second),)
    operations.delete_session(conn, SessionKey("local", "second"))
    assert conn.execute("SELECT count(*) FROM body").fetchone() == (0,)


# ---- the index


def terms(conn: sqlite3.Connection) -> set[str]:
    """The words that the index still gives records for."""
    conn.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, fts, row)")
    found = {row[0] for row in conn.execute("SELECT term FROM temp.vocabulary WHERE doc > 0")}
    conn.execute("DROP TABLE temp.vocabulary")
    return found


def hits(conn: sqlite3.Connection, words: str) -> list[str]:
    return [hit.session_id for hit in operations.search(conn, "local", SearchQuery(words)).hits]


def test_the_index_forgets_its_words_and_keeps_those_of_others(conn):
    operations.append(conn, OTHER, batch(record("a", "user", "shared marmalade")), 1)
    index_all(conn)
    before = terms(conn)
    secret = [record("k", "user", "shared xylophone \u79d8\u5bc6"), record("e", "user", "")]
    operations.append(conn, KEY, batch(*secret), 1)
    index_all(conn)
    assert terms(conn) > before
    assert hits(conn, "shared") == ["s", "other"]
    operations.delete_session(conn, KEY)
    assert hits(conn, "shared") == ["other"]
    assert hits(conn, "xylophone") == hits(conn, "\u79d8") == []
    assert terms(conn) == before
    conn.execute("INSERT INTO fts (fts) VALUES ('integrity-check')")


def index_all(conn: sqlite3.Connection) -> None:
    while indexing.index_batch(conn):
        pass


def test_what_was_not_indexed_yet_does_not_wait_for_ever(conn):
    operations.append(conn, OTHER, batch(*dialogue(5)), 1)
    index_all(conn)
    operations.append(conn, KEY, batch(*dialogue(450)), 1)
    operations.delete_session(conn, KEY)
    assert indexing.waiting(conn) == 0
    assert indexing.index_batch(conn) == 0
    assert operations.search(conn, "local", SearchQuery("please")).complete
    conn.execute("INSERT INTO fts (fts) VALUES ('integrity-check')")


def test_records_that_wait_behind_deleted_ones_are_indexed(conn):
    operations.append(conn, KEY, batch(*dialogue(30)), 1)
    operations.append(conn, OTHER, batch(record("a", "user", "marmalade")), 1)
    operations.delete_session(conn, KEY)
    assert hits(conn, "marmalade") == ["other"]
    assert indexing.waiting(conn) == 0


def test_a_session_that_is_deleted_while_its_records_are_indexed_is_not_indexed(conn, path, monkeypatch):
    """Texts are made before the lock is taken: another process may delete meanwhile."""
    operations.append(conn, KEY, batch(*dialogue(10)), 1)
    operations.append(conn, OTHER, batch(record("a", "user", "marmalade")), 1)
    other = operations.connect(path)

    def made(found: Any) -> str:
        operations.delete_session(other, KEY)
        return searchable.readable(found)

    monkeypatch.setattr(indexing, "readable", made)
    assert indexing.index_batch(conn) == 11
    monkeypatch.undo()
    assert terms(conn) == {"marmalade"}
    assert hits(conn, "please") == []
    assert hits(conn, "marmalade") == ["other"]
    other.close()


# ---- the file


def test_its_rows_and_bodies_are_overwritten_in_the_file(path: Path):
    conn = operations.connect(path)
    long = " ".join(f"quicksilver{at}" for at in range(3000))
    operations.append(conn, KEY, batch(record("a", "user", long), record("b", "user", "short quicksilver")), 1)
    operations.append(conn, OTHER, batch(record("a", "user", "marmalade")), 1)
    setting = conn.execute("PRAGMA secure_delete").fetchone()
    written = whole_file(conn)
    assert b"quicksilver2999" in written
    operations.delete_session(conn, KEY)
    assert conn.execute("PRAGMA secure_delete").fetchone() == setting
    assert b"quicksilver" not in whole_file(conn)
    assert b"marmalade" in whole_file(conn)
    conn.close()


@pytest.mark.parametrize("indexed", [1, 12])
def test_the_file_and_its_wal_hold_none_of_its_words(path: Path, indexed):
    """The index holds words in small letters, and a word in the page of the batch that brought it."""
    conn = operations.connect(path)
    for at in range(indexed):
        operations.append(conn, KEY, batch(record(f"a{at}", "user", f"Quicksilver{at} QUICKSILVER")), 1)
        operations.append(conn, OTHER, batch(record(f"b{at}", "user", "marmalade")), 1)
        index_all(conn)
    assert b"quicksilver" in held(path)
    operations.delete_session(conn, KEY)
    assert b"quicksilver" not in held(path).lower()
    assert b"marmalade" in held(path)
    assert set(hits(conn, "marmalade")) == {"other"}
    conn.execute("INSERT INTO fts (fts) VALUES ('integrity-check')")
    conn.close()


def test_a_large_index_is_left_to_be_merged_by_who_can_wait(path: Path, monkeypatch):
    monkeypatch.setattr(deleting, "SMALL_INDEX_BYTES", 0)
    conn = operations.connect(path)
    operations.append(conn, KEY, batch(record("a", "user", "Quicksilver")), 1)
    index_all(conn)
    operations.delete_session(conn, KEY)
    assert hits(conn, "quicksilver") == []
    deleting.erase_words(conn)
    assert b"quicksilver" not in held(path).lower()
    conn.close()


def held(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in (path, path.with_name(path.name + "-wal")) if file.exists())


def whole_file(conn: ArchiveConnection) -> bytes:
    assert check_point(conn, "TRUNCATE")
    return Path(conn.path).read_bytes()


def test_the_setting_comes_back_where_deleting_fails(conn):
    fill(conn, KEY)
    conn.execute("PRAGMA secure_delete = OFF").fetchall()
    conn.execute("CREATE TEMP TRIGGER stop BEFORE DELETE ON pin BEGIN SELECT raise(ABORT, 'stop'); END")
    before = rows_of(conn, KEY)
    with pytest.raises(sqlite3.IntegrityError, match="stop"):
        operations.delete_session(conn, KEY)
    assert conn.execute("PRAGMA secure_delete").fetchone() == (0,)
    assert rows_of(conn, KEY) == before


def test_facts_of_a_deleted_session_are_gone_with_it(conn):
    operations.create_session(conn, KEY, SessionFacts(title="t"), 1)
    assert operations.delete_session(conn, KEY) == 0
    assert operations.session(conn, KEY) is None
