"""What a session's row tells by itself: when it was at work, its media, its memory, a client's own context."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite import migrations, operations
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import SessionKey, SessionRow, Stamp
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, batch, record, text, use
from tests.adapters.sqlite.model import plan_of

YEAR_MS = 365 * 24 * 3600 * 1000
NOW_MS = 50 * YEAR_MS


def key(name: str) -> SessionKey:
    return SessionKey("local", name)


def names(conn: sqlite3.Connection) -> list[str]:
    return [row.key.session_id for row in operations.sessions(conn, "local", cwd=None, limit=9, before_ms=None)]


def row_of(conn: sqlite3.Connection, name: str = KEY.session_id) -> SessionRow:
    row = operations.session(conn, key(name))
    assert row is not None
    return row


def test_an_old_transcript_that_is_imported_later_was_not_at_work_later(conn):
    operations.append(conn, key("today"), batch(record("a", "user", "x", at_ms=NOW_MS - 5)), NOW_MS)
    operations.append(conn, key("old"), batch(record("b", "user", "x", at_ms=NOW_MS - YEAR_MS)), NOW_MS + 1)
    operations.append(conn, key("untimed"), batch(record("c", "user", "x")), NOW_MS - 9)
    assert names(conn) == ["today", "untimed", "old"]
    old = row_of(conn, "old")
    assert (old.active_ms, old.updated_ms) == (NOW_MS - YEAR_MS, NOW_MS + 1)


def test_a_time_in_the_future_tells_nothing_and_none_takes_a_session_back(conn):
    operations.append(conn, KEY, batch(record("a", "user", "x", at_ms=NOW_MS + YEAR_MS)), NOW_MS)
    assert row_of(conn).active_ms == NOW_MS
    operations.append(conn, KEY, batch(record("b", "user", "x", at_ms=7)), NOW_MS + 1)
    assert row_of(conn).active_ms == NOW_MS


def test_a_compaction_is_work_and_a_memory_alone_is_none(conn):
    operations.append(conn, KEY, batch(*[record(f"r{at}", "user", "word " * 9, at_ms=7) for at in range(20)]), NOW_MS)
    operations.write_memory(conn, KEY, "# notes", None, "extractor", NOW_MS)
    assert row_of(conn).active_ms == 7
    snapshot = operations.snapshot(conn, KEY, Reach(1, 1, 1))
    assert snapshot is not None
    plan = plan_of(snapshot, snapshot.tail[-1:], Weight(9, 0, 0, 1))
    assert operations.commit(conn, KEY, plan, Stamp(NOW_MS + 3, ("b", "s"))).marker is not None
    assert row_of(conn).active_ms == NOW_MS + 3


def full(conn: sqlite3.Connection) -> None:
    """A client's session with images, a memory and usage."""
    items = [
        record("a", "user", [text("look"), IMAGE], at_ms=1),
        record("c", "assistant", [use("t", "Read", file_path="x")], message_id="m", usage=4_000, at_ms=2),
        record("r", "user", [{**answer("t", ""), "content": [text("seen"), IMAGE]}], at_ms=3),
    ]
    operations.append(conn, KEY, batch(*items, owner="client"), 9)
    operations.write_memory(conn, KEY, "# notes\n\n- 数据", None, "agent", 10)


def test_a_status_reads_one_row_whatever_the_session_holds(conn):
    full(conn)
    statements: list[str] = []
    conn.set_trace_callback(statements.append)
    row = row_of(conn)
    conn.set_trace_callback(None)
    assert len(statements) == 1, statements
    assert row.media.count == 2
    assert row.client_tokens is not None
    assert row.client_tokens > 4_000
    assert row.memory_weight.units > 0


def test_what_an_older_release_wrote_is_read_from_its_rows(conn):
    full(conn)
    now = row_of(conn)
    conn.execute("UPDATE session SET media_count = NULL, media_bytes = 0, client_tokens = NULL")
    assert row_of(conn) == now
    operations.append(conn, KEY, batch(record("next", "user", "go on", at_ms=4)), 11)
    assert conn.execute("SELECT media_count FROM session").fetchone() == (2,)


def test_the_migration_finds_when_a_session_was_at_work_and_how_large_its_memory_is():
    conn = sqlite3.connect(":memory:", isolation_level=None)
    versions = migrations.schema_versions()
    migrations.migrate(conn, versions[:3])
    conn.execute(
        "INSERT INTO session (id, namespace, session_id, created_ms, updated_ms, memory_version) "
        "VALUES (1, 'local', 's', 5, 900, 2), (2, 'local', 'empty', 5, 800, 0)"
    )
    columns = (
        "id, session, seq, uuid, parent_seq, is_root, kind, type, subtype, at_ms, units, answers, media, messages, "
    )
    columns += "text_holding, has_thinking, is_meta, is_summary, active, need_seq, body_hash, body_id"
    for seq, at_ms in ((1, 300), (2, 400), (3, None)):
        conn.execute(
            f"INSERT INTO record ({columns}) VALUES (?, 1, ?, ?, 0, 0, 1, 'user', '', ?, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, x'', ?)",
            (seq, seq, f"r{seq}", at_ms, seq),
        )
    conn.execute("INSERT INTO memory (session, version, text, writer, at_ms) VALUES (1, 2, 'four', 'agent', 1)")
    migrations.migrate(conn, versions)
    found = conn.execute("SELECT active_ms, memory_units, media_count FROM session ORDER BY id").fetchall()
    assert found == [(400, 4 * 293, None), (800, 0, None)]
    conn.close()
