"""Whatever stops an operation, and wherever: nothing of it is there, and the next call works."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.migrations import migrate
from mcp_compact.adapters.sqlite.operations import deleting, indexing
from mcp_compact.compaction.plan import Cleared, ClearingPlan, MemoryUpdate
from mcp_compact.compaction.snapshot import Base, Reach
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, Weight
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
from tests.adapters.sqlite.builders import KEY, batch, dialogue, prepared, record
from tests.adapters.sqlite.model import plan_of

TABLES = (
    "session",
    "record",
    "body",
    "call",
    "result",
    "media",
    "marker",
    "member",
    "cleared",
    "ledger",
    "memory",
    "pin",
    "pending",
    "conflict",
    "source",
    "archive",
)


class Stopped(BaseException):
    """No error that anything would catch: like a cancellation, or an interrupt from the keyboard."""


class StoppingConnection(ArchiveConnection):
    """Raises before one of its statements."""

    left: int | None = None
    """Statements that still run; None for all."""

    def _count(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Stopped

    def execute(self, *args: Any) -> sqlite3.Cursor:
        if not (args[0].startswith(("ROLLBACK", "PRAGMA"))):
            self._count()
        return super().execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        self._count()
        return super().executemany(*args)


def everything(conn: sqlite3.Connection) -> dict[str, list[Any]]:
    return {table: conn.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in TABLES}


def _append(conn: sqlite3.Connection) -> object:
    """New records, a rewind, a conflict, a client's boundary, a position: every table is written."""
    items = [
        prepared(record("x", "user", "other way", parent="r12"), instructions=["always use tabs"]),
        prepared(record("n", "system", None, type="system")),
        prepared(record("r0", "user", "something else")),
    ]
    native = NativeBoundary(MessageUuid("n"), (MessageUuid("later"),), (MessageUuid("r8"),))
    return operations.append(
        conn, KEY, Batch(tuple(items), SessionFacts(title="t"), (native,), SourcePosition("f", 1, 1, 1, "h")), 5
    )


def _compact(conn: sqlite3.Connection) -> object:
    snapshot = operations.snapshot(conn, KEY, Reach(100, 2, 300))
    assert snapshot is not None
    cleared = tuple(Cleared(Clearing(ClearKind.RESULT, item.uuid, item.block), NOTHING) for item in snapshot.results)
    plan = plan_of(
        snapshot, snapshot.tail, Weight(9, 0, 0, 1), cleared=cleared, memory=MemoryUpdate("# M", None, None, "agent")
    )
    return operations.commit(conn, KEY, plan, Stamp(5, ("b2", "s2")))


def _compact_again(conn: sqlite3.Connection) -> object:
    snapshot = operations.snapshot(conn, KEY, Reach(10, 1, 30))
    assert snapshot is not None
    return operations.commit(
        conn,
        KEY,
        plan_of(snapshot, snapshot.tail, Weight(9, 0, 0, 1), memory=MemoryUpdate("# M", None, None, "agent")),
        Stamp(6, ("b3", "s3")),
    )


def _clear(conn: sqlite3.Connection) -> object:
    live = operations.clearable(conn, KEY)
    assert live is not None
    cleared = tuple(Cleared(Clearing(ClearKind.RESULT, item.uuid, item.block), NOTHING) for item in live.results)
    return operations.commit(conn, KEY, ClearingPlan(live.base, cleared, 0, 0), Stamp(5, ("m2",)))


def _undo(conn: sqlite3.Connection) -> object:
    return operations.undo(conn, KEY, Stamp(5, ("u2",)))


def _write_memory(conn: sqlite3.Connection) -> object:
    return operations.write_memory(conn, KEY, "# M", MessageUuid("r3"), "agent", 5)


def _note(conn: sqlite3.Connection) -> None:
    operations.note(conn, KEY, decline="gain_too_small", attempt="x")


def _snip(conn: sqlite3.Connection) -> object:
    base = _base(conn)
    plan = SnipPlan(base, (MessageUuid("r20"), MessageUuid("r23"), MessageUuid("r24")), NOTHING, 0, 0)
    return operations.commit(conn, KEY, plan, Stamp(5, ("x2",)))


def _fork(conn: sqlite3.Connection) -> object:
    return operations.fork_session(conn, KEY, SessionKey("local", "fork"), MessageUuid("r23"), 5)


def _register(conn: sqlite3.Connection) -> object:
    operations.register(conn, KEY, Registered("plan", "", "step 2"), 5)
    return None


def _put_pending(conn: sqlite3.Connection) -> object:
    operations.put_pending(conn, Pending("c2", KEY, "{}", _base(conn), 200, 300))
    return None


def _delete(conn: sqlite3.Connection) -> object:
    return deleting.remove(conn, KEY)


def _base(conn: sqlite3.Connection) -> Base:
    snapshot = operations.snapshot(conn, KEY, Reach(0, 0, 0))
    assert snapshot is not None
    return snapshot.base


def prepare_archive(path: Path) -> StoppingConnection:
    """An archive with records, a boundary and a clearing, on a connection that can be stopped."""
    conn = StoppingConnection(str(path), isolation_level=None)
    migrate(conn)
    operations.append(conn, KEY, batch(*dialogue(20)), 1)
    _compact(conn)
    operations.append(conn, KEY, batch(*dialogue(6, 20)), 2)
    operations.register(conn, KEY, Registered("plan", "", "step 1"), 3)
    operations.put_pending(conn, Pending("c", KEY, "{}", _base(conn), 10, 100))
    indexing.index_batch(conn)
    return conn


@pytest.mark.parametrize(
    "operation",
    [
        _append,
        _compact_again,
        _clear,
        _snip,
        _undo,
        _write_memory,
        _note,
        _fork,
        _register,
        _put_pending,
        _delete,
    ],
)
def test_an_operation_that_is_stopped_at_any_statement_leaves_nothing(
    tmp_path, operation: Callable[[sqlite3.Connection], object]
):
    conn = prepare_archive(tmp_path / "a.db")
    before = everything(conn)
    stops = 0
    while True:
        conn.left = stops
        try:
            operation(conn)
        except Stopped:
            conn.left = None
            assert not conn.in_transaction
            assert everything(conn) == before
            stops += 1
        else:
            break
    conn.left = None
    assert stops > 2
    assert everything(conn) != before
    assert operations.check(conn, bodies=True).wrong_totals == ()
    conn.close()


def test_a_deletion_that_is_stopped_leaves_all_of_a_session_or_nothing(tmp_path):
    """Its words are erased behind it: a stop there leaves them to the next `forget` or `vacuum`, and no row."""
    conn = prepare_archive(tmp_path / "a.db")
    before, stops, left = everything(conn), 0, []
    while True:
        conn.left = stops
        try:
            operations.delete_session(conn, KEY)
        except Stopped:
            conn.left = None
            assert not conn.in_transaction
            left.append(everything(conn) == before)
            assert left[-1] or operations.session(conn, KEY) is None
            stops += 1
        else:
            break
        if not left[-1]:
            conn.close()
            conn = prepare_archive(tmp_path / f"{stops}.db")
    conn.left = None
    assert left == sorted(left, reverse=True)
    assert {True, False} == set(left)
    assert everything(conn)["record"] == []
    conn.close()


def test_a_process_that_is_killed_inside_of_a_transaction_leaves_nothing(tmp_path, path):
    """The file as it is in the middle of an append, as another process would find it after a kill."""
    conn = operations.connect(path)
    operations.append(conn, KEY, batch(*dialogue(5)), 1)
    conn.execute("BEGIN IMMEDIATE")
    conn.execute("UPDATE session SET last_seq = 99")
    conn.execute("INSERT INTO body (id, data) VALUES (99, x'00')")
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        (tmp_path / f"copy.db{suffix}").write_bytes(source.read_bytes())
    conn.execute("ROLLBACK")
    conn.close()
    other = operations.connect(tmp_path / "copy.db")
    row = operations.session(other, KEY)
    assert row is not None
    assert row.last_seq == 5
    assert operations.check(other, bodies=True).damage == ()
    other.close()


def test_migration_that_is_stopped_leaves_an_empty_file_that_can_be_migrated(tmp_path):
    conn = StoppingConnection(str(tmp_path / "a.db"), isolation_level=None)
    for stops in range(1, 30, 4):
        conn.left = stops
        with pytest.raises(Stopped):
            migrate(conn)
        conn.left = None
        assert conn.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    migrate(conn)
    operations.append(conn, KEY, batch(*dialogue(3)), 1)
    conn.close()
