"""Several processes on one file: nothing is lost, nobody is told that the database is locked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mcp_compact.adapters.sqlite import operations
from mcp_compact.ports.store import SessionKey

ROOT = Path(__file__).resolve().parents[3]
PROCESSES = 4

APPENDING = """
import sys
from mcp_compact.adapters.sqlite import operations
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import SessionKey
from tests.adapters.sqlite.builders import batch, record
path, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
conn = operations.connect(path)
for at in range(number):
    operations.append(conn, SessionKey("local", "shared"), batch(record(f"{name}-{at}", "user", f"x {at}")), at)
    operations.append(conn, SessionKey("local", name), batch(record(f"{at}", "user", f"y {at}")), at)
    if at % 5 == 4:
        operations.search(conn, "local", SearchQuery("x"))
conn.close()
print("done")
"""


def together(path: Path, script: str, *arguments: str) -> list[tuple[int, str, str]]:
    """Run the script in several processes that start at one moment."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), f"p{at}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for at in range(PROCESSES)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [process.communicate(timeout=120) for process in running]
    return [(process.returncode, out, err) for process, (out, err) in zip(running, done, strict=True)]


def test_four_processes_append_at_once_and_lose_nothing(path):
    """They make the file together too: one of them migrates it, the others wait."""
    for code, out, err in together(path, APPENDING, "25"):
        assert (code, out, err) == (0, "done\n", "")
    conn = operations.connect(path)
    shared = operations.records(conn, SessionKey("local", "shared"), after_seq=0, up_to_seq=10_000, live_only=False)
    assert [item.seq for item in shared] == list(range(1, 101))
    for at in range(PROCESSES):
        own = [item.uuid for item in shared if item.uuid.startswith(f"p{at}-")]
        assert own == [f"p{at}-{number}" for number in range(25)]
        row = operations.session(conn, SessionKey("local", f"p{at}"))
        assert row is not None
        assert (row.last_seq, row.live_count) == (25, 25)
    health = operations.check(conn, bodies=True)
    assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    conn.close()
