"""Many processes that write one archive at once, and one that holds its lock for long.

    python -m tests.faults.crowd_child FOLDER APPENDERS APPENDS HOLDS HOLD_SECONDS GAP_SECONDS

Each appender appends so many records to one session. The adversary is no program of ours: it takes the write lock,
holds it, gives it back for a moment, again and again. On the output stands, as JSON, which numbers the records of
each appender have, how many records there were whenever the adversary took the lock, and what failed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from mcp_compact.adapters.sqlite import operations
from mcp_compact.ports.store import SessionKey
from tests.adapters.sqlite.builders import batch, record

KEY = SessionKey("local", "crowd")


def in_child(work: Callable[[], Any]) -> tuple[int, int]:
    """Run in a process of its own: its id, and where its answer can be read."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        answer = work()
    except BaseException:  # noqa: BLE001 - what failed is the answer
        answer = {"failed": traceback.format_exc()}
    os.write(writing, json.dumps(answer).encode())
    os._exit(0)


def answer_of(child: tuple[int, int]) -> Any:
    process, reading = child
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(process, 0)
    return json.loads(data)


def append(path: Path, name: str, number: int, start: float) -> dict[str, Any]:
    """So many appends, each its own transaction; their numbers, and the longest wait in seconds."""
    longest, seqs = 0.0, []
    with closing(operations.connect(path)) as conn:
        time.sleep(max(0.0, start - time.monotonic()))
        for at in range(number):
            begin = time.monotonic()
            done = operations.append(conn, KEY, batch(record(f"{name}-{at}", "user", f"message {at}")), at)
            longest = max(longest, time.monotonic() - begin)
            seqs.append(done.last_seq)
    return {"seqs": seqs, "longest": longest}


def hold(path: Path, times: int, seconds: float, gap: float, start: float) -> dict[str, Any]:
    """Keep everybody waiting, but for a moment now and then."""
    taken: list[int] = []
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as conn:
        time.sleep(max(0.0, start - time.monotonic()))
        for _ in range(times):
            while True:
                try:
                    conn.execute("BEGIN IMMEDIATE")
                    break
                except sqlite3.OperationalError:
                    # Greedier than anything of ours: it asks again at once.
                    time.sleep(0.0005)
            taken.append(conn.execute("SELECT last_seq FROM session").fetchone()[0])
            time.sleep(seconds)
            conn.execute("ROLLBACK")
            time.sleep(gap)
    return {"taken": taken}


def main(folder: Path, appenders: int, appends: int, holds: int, seconds: float, gap: float) -> None:
    path = folder / "crowd.db"
    with closing(operations.connect(path)) as conn:
        operations.append(conn, KEY, batch(record("first", "user", "go")), 0)
    start = time.monotonic() + 0.5
    adversary = in_child(partial(hold, path, holds, seconds, gap, start))
    children = [in_child(partial(append, path, f"p{at}", appends, start + 0.05)) for at in range(appenders)]
    answers = [answer_of(child) for child in children]
    sys.stdout.write(json.dumps({"appenders": answers, "adversary": answer_of(adversary)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]), *map(float, sys.argv[5:7]))
