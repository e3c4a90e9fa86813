"""Many processes on one archive: nobody is told that it is locked, and nobody waits in vain.

For longer: `CROWD_HOLDS=200 python -m pytest tests/faults/test_crowd.py`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import operations
from tests.faults.crowd_child import KEY
from tests.hooking.client import SESSION, ClientFolder
from tests.server.talk import user
from tests.server.wire import Wire, data_of

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]
HOLDS = int(os.environ.get("CROWD_HOLDS", "12"))
APPENDERS = 5
HELD_S = 2.5
"""Far longer than any transaction, shorter than a hook's patience: its client waits for it."""


def crowd(folder: Path, appends: int, holds: int, seconds: float, gap: float) -> dict[str, Any]:
    words = [str(folder), str(APPENDERS), str(appends), str(holds), str(seconds), str(gap)]
    command = [sys.executable, "-m", "tests.faults.crowd_child", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    assert [answer["failed"] for answer in found["appenders"] if "failed" in answer] == []
    return found


def test_a_program_that_keeps_the_lock_but_for_moments_keeps_nobody_out_for_good(tmp_path: Path):
    """It gives the lock back for 20 ms at a time. Asking ten times a second, as SQLite does, would miss most of them."""
    found = crowd(tmp_path, max(3, HOLDS // 3), HOLDS, 0.3, 0.02)
    taken = found["adversary"]["taken"]
    assert len(taken) == HOLDS
    for appender in found["appenders"]:
        seqs = appender["seqs"]
        before = [sum(at < seq for at in taken) for seq in seqs]
        waits = [later - earlier for earlier, later in zip([0, *before[:-1]], before, strict=True)]
        assert max(waits) <= HOLDS // 2, f"one waited while the lock was taken {max(waits)} times: {waits}"
    everybody = sorted(seq for appender in found["appenders"] for seq in appender["seqs"])
    assert everybody == list(range(2, len(everybody) + 2))
    with closing(operations.connect(tmp_path / "crowd.db")) as conn:
        row = operations.session(conn, KEY)
        assert row is not None
        assert row.live_count == len(everybody) + 1
        assert operations.check(conn, bodies=True).wrong_totals == ()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """What is started inside waits for the lock; it is given back after a while, and everything then goes on."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        yield
        # There is no other way to be in the way of a process than to be there for some time.
        time.sleep(HELD_S)
        conn.execute("ROLLBACK")


def test_servers_hooks_and_the_command_line_wait_for_each_other_and_for_whoever_holds_the_lock(tmp_path: Path):
    client = ClientFolder(tmp_path)
    client.write(client.talk(1))
    told = json.dumps(client.given("Stop")).encode()
    with ExitStack() as stack:
        client.archive.parent.mkdir()
        env = {"MCP_COMPACT_DB": str(client.archive)}
        servers = [stack.enter_context(Wire(tmp_path, env)) for _ in range(2)]
        for at, server in enumerate(servers):
            server.handshake()
            server.call("append_messages", session_id="both", messages=[user(f"server {at} begins")])
        with locked(client.archive):
            asked = [
                (
                    server,
                    server.start_call("append_messages", session_id="both", messages=[user(f"{at} in turn {turn}")]),
                )
                for turn in range(3)
                for at, server in enumerate(servers)
            ]
            reads = [
                (server, server.start_call("search_messages", query="begins", session_id="both")) for server in servers
            ]
            hooks = [client.start() for _ in range(2)]
            command = ["from mcp_compact.cli.main import main; raise SystemExit(main())"]
            imports = client.start("import", str(client.transcript), code=command[0])
            for hook in hooks:
                assert hook.stdin is not None
                hook.stdin.write(told)
                hook.stdin.close()
        for server, call in asked:
            assert data_of(server.answer(call))["stored"] == 1
        for server, call in reads:
            assert len(data_of(server.answer(call))["hits"]) == 2
        out, err = imports.communicate(timeout=120)
        assert (imports.returncode, err) == (0, b""), out
        for hook in hooks:
            hook.stdin = None
            assert (hook.communicate(timeout=120), hook.returncode) == ((b"", b""), 0)
        assert [server.leave() for server in servers] == [0, 0]
        assert [server.stderr for server in servers] == ["", ""]
    assert client.notes() == []
    assert client.stored() == [line["uuid"] for line in client.talk(1)]
    with closing(operations.connect(client.archive)) as conn:
        health = operations.check(conn, bodies=True)
        assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    assert client.rows("SELECT last_seq FROM session WHERE session_id = 'both'") == [(8,)]
    assert client.rows("SELECT count(*) FROM session") == [(2,)]
    assert SESSION in str(client.rows("SELECT session_id FROM session"))
