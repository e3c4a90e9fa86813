"""The store behind its port: one hop an operation, nothing left open, a thread that always ends."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import pytest

from mcp_compact.adapters.sqlite import connection, operations
from mcp_compact.adapters.sqlite.operations import indexing
from mcp_compact.adapters.sqlite.store import LOOK_EVERY, OneHopConnection, SqliteStore, open_store
from mcp_compact.compaction.snapshot import Reach, Snapshot
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.errors import ServerError
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import Batch, Pending, Registered, SessionFacts, SessionKey, Stamp, Store
from tests.adapters.sqlite.builders import KEY, batch, dialogue, record
from tests.adapters.sqlite.model import plan_of

ROOT = Path(__file__).resolve().parents[3]


def test_aiosqlite_still_has_the_call_that_the_one_hop_needs():
    """`run` relies on these: where aiosqlite changes them, this says so before anything hangs."""
    assert list(inspect.signature(aiosqlite.Connection._execute).parameters) == ["self", "fn", "args", "kwargs"]
    made = aiosqlite.Connection(lambda: connection.connect(":memory:"), iter_chunk_size=1)
    assert isinstance(made._thread, threading.Thread)
    assert isinstance(inspect.getattr_static(aiosqlite.Connection, "_conn"), property)


class _Batch:
    """Something that can be watched while it lives."""


async def test_the_thread_lets_go_of_a_batch_once_it_is_stored(path):
    """A batch of an import holds thousands of values: they shall not live until the next call."""
    async with open_store(path) as store:
        given = _Batch()
        held = weakref.ref(given)
        await store.run(lambda _, batch: len(str(batch)), given)
        del given
        assert held() is None


async def test_an_import_leaves_its_records_to_the_searches_and_an_append_does_not(path):
    async with open_store(path) as store:
        for first, number in ((0, indexing.BATCH), (indexing.BATCH, 1)):
            imported = batch(*(record(f"r{first + at}") for at in range(number)))
            assert imported.is_import
            await store.append(KEY, imported, 1)
        assert await store.run(indexing.waiting) == indexing.BATCH + 1
        hashed = tuple(replace(item, content_hash=b"x") for item in batch(record("own")).records)
        await store.append(KEY, replace(batch(), records=hashed), 1)
        assert await store.run(indexing.waiting) == 2


async def test_every_method_of_the_port_works_in_a_file(path):
    async with open_store(path) as store:
        await use_every_method(store)


async def test_every_method_of_the_port_works_in_memory():
    async with open_store(connection.IN_MEMORY) as store:
        await use_every_method(store)


async def use_every_method(store: Store) -> None:
    assert (await store.append(KEY, batch(*dialogue(30), model="gpt-5"), 1)).new == 30
    row = await store.session(KEY)
    assert row is not None
    assert await store.sessions("local", cwd=None, limit=5, before_ms=None) == [row]
    assert await store.position("local", "nowhere") is None
    snapshot = await store.snapshot(KEY, Reach(100, 1, 300))
    assert snapshot is not None
    assert (await store.clearable(KEY)).results  # type: ignore[union-attr]
    committed = await store.commit(KEY, plan_of(snapshot, snapshot.tail, Weight(9, 0, 0, 1)), Stamp(5, ("b", "s")))
    assert committed.marker is not None
    assert await store.markers(KEY) == [committed.marker]
    assert len((await store.live(KEY, after=0, limit=99, max_bytes=1 << 40)).records) == 1 + len(snapshot.tail)  # type: ignore[union-attr]
    assert (await store.undo(KEY, Stamp(6, ("u",)))).live_hash == row.live_hash
    assert (await store.write_memory(KEY, "# M", MessageUuid("r3"), "agent", 7)).version == 1
    assert (await store.memory(KEY)).mark_seq == 4  # type: ignore[union-attr]
    assert await store.memory(KEY, 2) is None
    await store.note(KEY, decline="gain_too_small", attempt="x")
    assert (await store.session(KEY)).declines == {"gain_too_small": 1}  # type: ignore[union-attr]
    assert (await store.record(KEY, MessageUuid("r2"))).seq == 3  # type: ignore[union-attr]
    assert [item and item.uuid for item in await store.call(KEY, ToolUseId("t1"))] == ["r1", "r2"]
    assert len(await store.records(KEY, after_seq=3, up_to_seq=9, live_only=True)) == 6
    assert await store.newest_message(KEY) == "r29"
    assert await store.match_prefix(KEY, [b"x"]) == 0
    await use_what_is_kept_beside_the_records(store, snapshot)
    assert (await store.search("local", SearchQuery("please"))).hits


async def use_what_is_kept_beside_the_records(store: Store, earlier: Snapshot) -> None:
    waiting = Pending("c", KEY, '{"trigger": "agent"}', earlier.base, 8, 100)
    await store.put_pending(waiting)
    assert await store.pending("local", "c") == waiting
    assert [await store.use_pending("local", "c", 9) for _ in range(2)] == [True, False]
    await store.register(KEY, Registered("plan", "", "step 1"), 9)
    assert [item.text for item in await store.registered(KEY)] == ["step 1"]
    assert await store.unregister(KEY, "plan", "")
    now = await store.snapshot(KEY, Reach(100, 1, 300))
    assert now is not None
    await store.append(KEY, batch(record("later", "user", "go on")), 9)
    assert await store.snapshot(KEY, Reach(100, 1, 300), up_to_seq=now.base.last_seq) == now
    snip = SnipPlan(now.base, (MessageUuid("r20"),), NOTHING, 0, 0)
    assert (await store.commit(KEY, snip, Stamp(9, ("x",)))).marker is not None
    assert (await store.undo(KEY, Stamp(9, ("u2",)))).marker is not None
    other = SessionKey("local", "other")
    assert await store.create_session(other, SessionFacts(title="t"), 10)
    assert await store.delete_session(other) == 0
    assert await store.fork_session(KEY, other, MessageUuid("r20"), 11) == 21
    assert await store.delete_session(other) == 21


async def test_200_records_that_wait_are_indexed_by_the_next_append(path):
    async with open_store(path) as store:
        for start in range(0, 210, 70):
            await store.append(KEY, batch(*dialogue(70, start)), 1)
        assert await store.run(indexing.waiting) == 10


async def test_a_large_import_leaves_its_records_to_the_searches(path):
    async with open_store(path) as store:
        await store.append(KEY, batch(*dialogue(450)), 1)
        assert await store.run(indexing.waiting) == 450
        assert (await store.search("local", SearchQuery("please"))).complete
        assert await store.run(indexing.waiting) == 0


# ---- cancelling


class Gate:
    """Holds an operation on the store's thread until the test lets it go on."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def hold(self, _: Any) -> None:
        self.entered.set()
        assert self.open.wait(30)


async def test_an_operation_whose_caller_is_cancelled_ends_whole(path):
    """Cancelled while it runs: it is committed on its thread, and the next call works."""
    gate = Gate()

    def held(conn: Any) -> object:
        with connection.writing(conn):
            conn.execute("CREATE TABLE half (x)")
            gate.hold(conn)
            conn.execute("INSERT INTO half VALUES (1)")
        return None

    async with open_store(path) as store:
        await cancelled_while(store, held, gate)
        assert (await store.append(KEY, batch(*dialogue(3)), 1)).new == 3
        other = operations.connect(path)
        assert other.execute("SELECT x FROM half").fetchall() == [(1,)]
        with connection.writing(other):
            other.execute("DELETE FROM half")
        other.close()


async def test_an_operation_that_fails_after_its_caller_is_cancelled_is_rolled_back(path):
    gate = Gate()

    def held(conn: Any) -> object:
        with connection.writing(conn):
            conn.execute("CREATE TABLE half (x)")
            gate.hold(conn)
            raise RuntimeError("a defect")

    async with open_store(path) as store:
        await cancelled_while(store, held, gate)
        assert (await store.append(KEY, batch(*dialogue(3)), 1)).new == 3
        other = operations.connect(path)
        assert other.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
        other.close()


async def cancelled_while(store: SqliteStore, operation: Callable[[Any], object], gate: Gate) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(store.run, operation)
        await anyio.to_thread.run_sync(gate.entered.wait)
        group.cancel_scope.cancel()
    gate.open.set()


async def test_a_call_that_is_cancelled_while_it_waits_its_turn_still_leaves_the_others(path):
    gate = Gate()
    async with open_store(path) as store:
        async with anyio.create_task_group() as group:
            group.start_soon(store.run, gate.hold)
            await anyio.to_thread.run_sync(gate.entered.wait)
            with anyio.move_on_after(0) as scope:
                await store.append(KEY, batch(*dialogue(3)), 1)
            assert scope.cancelled_caught
            gate.open.set()
        assert (await store.append(KEY, batch(record("last", "user", "x")), 2)).new == 1


async def test_closing_inside_of_a_cancelled_scope_ends_the_thread(path):
    opened: list[OneHopConnection] = []
    with anyio.CancelScope() as scope:
        async with open_store(path) as store:
            opened.append(store._opened)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not opened[0]._thread.is_alive()


async def test_opening_inside_of_a_cancelled_scope_leaves_no_thread(path):
    before = threading.active_count()
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with open_store(path):
            await anyio.lowlevel.checkpoint()
    assert threading.active_count() == before


async def test_a_file_that_cannot_be_opened_leaves_no_thread(path):
    path.write_text("no database " * 100)
    before = threading.active_count()
    with pytest.raises(ServerError, match="damaged"):
        async with open_store(path):
            pass
    assert threading.active_count() == before


async def test_tasks_that_share_the_store_lose_nothing(path):
    async with open_store(path) as store:
        async with anyio.create_task_group() as group:
            for at in range(20):
                group.start_soon(store.append, KEY, batch(record(f"r{at}", "user", "x")), at)
        row = await store.session(KEY)
        assert row is not None
        assert row.last_seq == 20


ENDING = """
import asyncio, sys
from mcp_compact.adapters.sqlite.store import open_store
from tests.adapters.sqlite.builders import KEY, batch, dialogue
async def main():
    async with open_store(sys.argv[1]) as store:
        task = asyncio.ensure_future(store.append(KEY, batch(*dialogue(2000)), 1))
        await asyncio.sleep(0)
        if sys.argv[2] == "fail":
            raise SystemExit(3)
asyncio.run(main())
"""


@pytest.mark.parametrize(("how", "code"), [("return", 0), ("fail", 3)])
def test_a_process_that_ends_with_a_call_running_ends_quietly(path, how, code):
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(path), how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert "Event loop is closed" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_operations_need_the_standard_library_alone():
    """Hooks call them in a process that cannot pay for more."""
    script = (
        "import sys\nfrom mcp_compact.adapters.sqlite import operations\n"
        "print([n for n in ('aiosqlite', 'anyio', 'mcp', 'pydantic', 'tiktoken', 'asyncio') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def sent(name: str) -> Batch:
    """A short message as a loop sends it."""
    hashed = tuple(replace(item, content_hash=b"x") for item in batch(record(name, "user", "hello")).records)
    return replace(batch(), records=hashed)


async def test_what_is_short_needs_no_other_thread(path):
    async with open_store(path) as store:
        seen: list[int] = []
        await store._opened.at_once(lambda _: seen.append(threading.get_ident()))
        await store.run(lambda _: seen.append(threading.get_ident()))
        assert seen[0] == threading.get_ident() != seen[1]


async def test_what_is_short_waits_its_turn(path):
    gate, order = Gate(), list[str]()
    async with open_store(path) as store, anyio.create_task_group() as group:
        group.start_soon(store.run, gate.hold)
        await anyio.to_thread.run_sync(gate.entered.wait)
        group.start_soon(store.run, lambda _: order.append("given before"))
        await anyio.lowlevel.checkpoint()
        group.start_soon(store._opened.at_once, lambda _: order.append("short"))
        await anyio.lowlevel.checkpoint()
        assert not order
        gate.open.set()
    assert order == ["given before", "short"]


async def test_other_calls_go_on_while_a_short_append_waits_for_another_process(path):
    async with open_store(path) as store, anyio.create_task_group() as group:
        await store.append(KEY, sent("first"), 1)
        other = connection.connect(path)
        other.execute("BEGIN IMMEDIATE")
        group.start_soon(store.append, KEY, sent("second"), 2)
        # Were the loop's own thread waiting, the other process could never let go.
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        other.execute("ROLLBACK")
        other.close()
    async with open_store(path) as store:
        assert (await store.session(KEY)).last_seq == 2  # type: ignore[union-attr]


async def test_many_short_appends_fill_the_index_and_check_point_the_wal(path, monkeypatch):
    monkeypatch.setattr(connection, "WAL_BYTES", 100_000)
    async with open_store(path) as store:
        for at in range(indexing.BATCH - 1):
            await store.append(KEY, sent(f"m{at}"), at)
        # Without a check-point it only grows; after one it is written from its beginning again.
        assert await anyio.to_thread.run_sync(os.path.getsize, f"{path}-wal") < 5 * connection.WAL_BYTES
        for at in range(LOOK_EVERY):
            await store.append(KEY, sent(f"n{at}"), at)
        assert await store.run(indexing.waiting) < LOOK_EVERY


async def test_an_archive_that_waits_for_the_disk_never_does_so_in_the_loop(path):
    async with open_store(path, full_sync=True) as store:
        here = await store._opened.at_once(lambda _: threading.get_ident())
        assert here != threading.get_ident()
