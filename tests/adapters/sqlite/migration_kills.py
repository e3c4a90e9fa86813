"""Migrations that are killed, each in a process of its own, and what is left of the archive.

    python -m tests.adapters.sqlite.migration_kills FOLDER VERSION KILLS SEED

One process that forks: a kill costs no start of Python. It says on its output, as JSON, what it tried and found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from mcp_compact.adapters.sqlite import connection, operations
from mcp_compact.adapters.sqlite.migrations import migrate, schema_versions
from tests.adapters.sqlite.released_archives import restore

ROWS = 6_000
"""Records of the larger archive; its migration rewrites all of them."""
HEAVY = """
-- Whatever a later release may want of every row.
ALTER TABLE record ADD COLUMN weighed INTEGER;
UPDATE record SET weighed = units * 2 + seq;
UPDATE body SET message = data WHERE message IS NULL;
CREATE INDEX record_weighed ON record (weighed);
"""
WATCHED = ("session", "record", "body", "call", "result", "marker", "member", "cleared", "memory", "conflict", "pin")


def rows_of(path: Path) -> dict[str, list[Any]]:
    """Every row that was there before, by the columns that were there before."""
    with closing(sqlite3.connect(path)) as conn:
        return {table: conn.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in WATCHED}


def changed(before: dict[str, list[Any]], now: dict[str, list[Any]]) -> list[str]:
    """The tables whose rows are not what they were; a later schema may add columns at the end."""
    return [
        table
        for table, rows in before.items()
        if len(rows) != len(now[table])
        or any(new[: len(old)] != old for old, new in zip(rows, now[table], strict=True))
    ]


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as conn:
        return int(conn.execute("PRAGMA user_version").fetchone()[0])


def in_child(work: Callable[[], None]) -> int:
    """Run in a process of its own; its id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - shown, and never goes on in the parent's place
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(process: int) -> int:
    """The exit code; below zero for the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def copy(source: Path, target: Path) -> None:
    for old in target.parent.glob(target.name + "*"):
        old.unlink()
    shutil.copyfile(source, target)


def open_and_die_at(path: Path, number: int) -> None:
    """Open the archive; before the statement of this number the process is killed."""
    left = number

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    class Counted(connection.ArchiveConnection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.set_trace_callback(count)

    connection.ArchiveConnection = Counted  # type: ignore[misc]
    operations.connect(path).close()


def each_statement(base: Path, path: Path) -> dict[str, Any]:
    """Killed before each statement of opening and migrating, one after the other; then opened in peace."""
    before, kills = rows_of(base), 0
    wrong: list[Any] = []
    while True:
        copy(base, path)
        code = ended(in_child(partial(open_and_die_at, path, kills)))
        if code == 0:
            return {"kills": kills, "wrong": wrong}
        kills += 1
        if code != -signal.SIGKILL or version_of(path) not in (version_of(base), schema_versions()[-1][0]):
            wrong.append([kills, code, version_of(path)])
        operations.connect(path).close()
        wrong += [[kills, table] for table in changed(before, rows_of(path))]


# ---------------------------------------------------------------- a larger archive, at any moment


def larger(base: Path) -> None:
    """Add a session of many records."""
    with closing(sqlite3.connect(base, isolation_level=None)) as conn:
        names = [row[1] for row in conn.execute("PRAGMA table_info(record)")]
        taken = {"id": "1000 + n.n", "session": "999", "seq": "n.n", "uuid": "'many-' || n.n", "body_id": "1000 + n.n"}
        conn.execute("BEGIN")
        numbers = f"WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {ROWS}) "
        conn.execute(f"INSERT INTO body (id, data) {numbers} SELECT 1000 + n.n, randomblob(300) FROM n")
        values = ", ".join(taken.get(name, f"r.{name}") for name in names)
        conn.execute(
            f"INSERT INTO record ({', '.join(names)}) {numbers} SELECT {values} FROM n, record r WHERE r.id = 1"
        )
        conn.execute("COMMIT")


def migrate_all(path: Path) -> None:
    """As `connect` does it, with one more migration that takes its time."""
    newest = schema_versions()[-1][0]
    conn = sqlite3.connect(path, timeout=connection.BUSY_SECONDS, isolation_level=None)
    conn.execute("PRAGMA journal_mode=WAL")
    migrate(conn, (*schema_versions(), (newest + 1, HEAVY)))
    conn.close()


def any_moment(base: Path, path: Path, kills: int, chance: random.Random) -> dict[str, Any]:
    """Two processes migrate at once and are killed at some moment; what is left is whole, old or new."""
    larger(base)
    before, took = rows_of(base), _seconds_of(base, path)
    old, new = version_of(base), version_of(path)
    seen: dict[int, int] = {old: 0, new: 0}
    wrong: list[Any] = []
    for number in range(kills):
        copy(base, path)
        pair = [in_child(partial(migrate_all, path)) for _ in range(2)]
        time.sleep(chance.uniform(0, 1.2 * took))
        for process in pair:
            os.kill(process, signal.SIGKILL)
        codes = [ended(process) for process in pair]
        if not set(codes) <= {0, -signal.SIGKILL}:
            wrong.append([number, codes])
        seen[version_of(path)] += 1
        migrate_all(path)
        wrong += [[number, problem] for problem in _problems(path, before)]
    return {"kills": kills, "left_old": seen[old], "left_new": seen[new], "wrong": wrong}


def _seconds_of(base: Path, path: Path) -> float:
    copy(base, path)
    begin = time.monotonic()
    assert ended(in_child(partial(migrate_all, path))) == 0
    return time.monotonic() - begin


def _problems(path: Path, before: dict[str, list[Any]]) -> list[str]:
    """What is not as it was, apart from what the migration itself writes."""
    now = rows_of(path)
    # The one column that the added migration fills in.
    now["body"] = [(*row[:2], None) for row in now["body"]]
    found = changed({**before, "body": [(*row[:2], None) for row in before["body"]]}, now)
    with closing(sqlite3.connect(path)) as conn:
        found += [row[0] for row in conn.execute("PRAGMA integrity_check") if row[0] != "ok"]
        if conn.execute("SELECT count(*) FROM record WHERE weighed IS NOT units * 2 + seq").fetchone()[0]:
            found.append("not migrated")
    return found


def main(folder: Path, version: int, kills: int, seed: str) -> None:
    base, path = folder / f"base-{version}.db", folder / f"archive-{version}.db"
    if version:
        restore(version, base)
        found = {"statements": each_statement(base, path)}
    else:
        restore(1, base)
        found = {"moments": any_moment(base, path, kills, random.Random(seed))}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
