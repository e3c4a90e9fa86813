"""CPU of the archive's operations against raw SQLite doing the same rows, and against the length of a session.

Run: python tests/bench/store_bench.py [messages]
Medians of alternated repeats of process time; ratios tell, absolute figures depend on the machine.
"""

from __future__ import annotations

import gc
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import Prepared, Stamp
from tests.adapters.sqlite.builders import KEY, batch, dialogue, prepared
from tests.adapters.sqlite.model import plan_of

APPENDED = 1000
REPEATS = 9
REACH = Reach(10_000, 5, 40_000)
TABLES = ("body", "record", "call", "result", "media", "ledger")


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of one call, from a swept heap on."""
    gc.collect()
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def append_against_raw(folder: Path) -> tuple[float, float]:
    """Medians of appending prepared records, and of `executemany` of the very rows that this makes."""
    items = [prepared(item) for item in dialogue(APPENDED)]
    rows, statements = _raw_rows(folder, items)
    ours, raw = [], []
    for at in range(REPEATS):
        conn = operations.connect(folder / f"ours{at}.db")
        ours.append(milliseconds(lambda conn=conn: operations.append(conn, KEY, batch(*items), 1)))  # type: ignore[misc]
        conn.close()
        conn = operations.connect(folder / f"raw{at}.db")
        raw.append(milliseconds(lambda conn=conn: _write_raw(conn, rows, statements)))  # type: ignore[misc]
        conn.close()
    return statistics.median(ours), statistics.median(raw)


def _raw_rows(folder: Path, items: list[Prepared]) -> tuple[list[list[tuple[object, ...]]], list[str]]:
    conn = operations.connect(folder / "rows.db")
    operations.append(conn, KEY, batch(*items), 1)
    rows, statements = [], []
    for table in TABLES:
        found = conn.execute(f"SELECT * FROM {table}").fetchall()
        marks = ", ".join("?" * len(found[0])) if found else ""
        rows.append(found)
        statements.append(f"INSERT INTO {table} VALUES ({marks})")
    conn.close()
    return rows, statements


def _write_raw(conn: sqlite3.Connection, rows: list[list[tuple[object, ...]]], statements: list[str]) -> None:
    conn.execute("BEGIN IMMEDIATE")
    for found, statement in zip(rows, statements, strict=True):
        if found:
            conn.executemany(statement, found)
    conn.execute("COMMIT")


class Session:
    """A session of so many messages that is compacted and undone again and again."""

    def __init__(self, folder: Path, messages: int) -> None:
        self.conn = operations.connect(folder / f"session{messages}.db")
        self.numbers = count()
        for start in range(0, messages, 10_000):
            operations.append(self.conn, KEY, batch(*dialogue(min(10_000, messages - start), start)), 1)

    def snapshot(self) -> float:
        return milliseconds(lambda: operations.snapshot(self.conn, KEY, REACH))

    def compact(self) -> float:
        return milliseconds(self._compact)

    def _compact(self) -> None:
        snapshot = operations.snapshot(self.conn, KEY, REACH)
        assert snapshot is not None
        plan = plan_of(snapshot, snapshot.tail, Weight(2_000_000, 0, 0, 1))
        number = next(self.numbers)
        committed = operations.commit(self.conn, KEY, plan, Stamp(1, (f"b{number}", f"s{number}")))
        assert committed.marker is not None

    def undo(self) -> float:
        number = next(self.numbers)
        return milliseconds(lambda: operations.undo(self.conn, KEY, Stamp(1, (f"u{number}",))))

    def append_one(self) -> float:
        item = dialogue(1, next(self.numbers) * 10 + 10_000_000)
        one = batch(*item)
        return milliseconds(lambda: operations.append(self.conn, KEY, one, 1))


def by_length(folder: Path, lengths: tuple[int, ...]) -> dict[str, list[float]]:
    """Medians of each operation, one figure a length; the sessions take turns."""
    sessions = [Session(folder, length) for length in lengths]
    measured: dict[str, list[list[float]]] = {}
    for _ in range(REPEATS * 3):
        for at, session in enumerate(sessions):
            for name in ("append_one", "snapshot", "compact", "undo"):
                of_name = measured.setdefault(name, [[] for _ in sessions])
                of_name[at].append(getattr(session, name)())
    return {name: [statistics.median(values) for values in lists] for name, lists in measured.items()}


def main() -> None:
    lengths = (1000, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, raw = append_against_raw(folder)
        print(
            f"append {APPENDED} prepared records: {ours:.1f} ms, the same rows by executemany {raw:.1f} ms: {ours / raw:.2f}x"
        )
        for operation, (short, long) in by_length(folder, lengths).items():
            print(
                f"{operation}: {short:.2f} ms at {lengths[0]:,}, {long:.2f} ms at {lengths[1]:,} messages: {long / short:.2f}x"
            )


if __name__ == "__main__":
    main()
