"""Archives of every released schema are brought up to date: alone, by many at once, and killed in the middle."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.migrations import schema_versions
from mcp_compact.adapters.sqlite.operations.hook_state import hook_state
from mcp_compact.adapters.sqlite.operations.tokens import has_tokens
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import Batch, SourcePosition, Stamp
from tests.adapters.sqlite.builders import KEY, batch, dialogue, prepared, record
from tests.adapters.sqlite.model import check_boundaries, plan_of
from tests.adapters.sqlite.released_archives import CHILD, CLIENTS, FORK, KEYS, dump, fill, restore, versions
from tests.adapters.sqlite.test_processes import APPENDING, PROCESSES, together

ROOT = Path(__file__).resolve().parents[3]
NEWEST = schema_versions()[-1][0]
KILLS = int(os.environ.get("MIGRATION_KILLS", "6"))
SEED = os.environ.get("MIGRATION_SEED", "1")
each_version = pytest.mark.parametrize("version", versions())


def words(sql: str) -> str:
    """A schema's statement without comments and white space."""
    return " ".join(re.sub(r"--[^\n]*", "", sql).split())


def schema_of(conn: sqlite3.Connection) -> dict[str, str]:
    return {name: words(sql) for name, sql in conn.execute("SELECT name, sql FROM sqlite_master WHERE sql > ''")}


@pytest.fixture
def old(path: Path, version: int) -> Iterator[ArchiveConnection]:
    """The archive of a schema, opened by this release."""
    restore(version, path)
    conn = operations.connect(path)
    yield conn
    conn.close()


def test_there_is_an_archive_of_every_schema_before_the_newest():
    """Where one is missing: `python -m tests.adapters.sqlite.released_archives`, before a schema comes after it."""
    assert versions() == list(range(1, max(versions()) + 1))
    assert max(versions()) >= NEWEST - 1


def test_what_the_dumps_hold_is_what_is_written_today():
    """The command that writes the next one works, and gives an archive that is sound."""
    with closing(operations.connect(":memory:")) as full, closing(sqlite3.connect(":memory:")) as made:
        fill(full)
        made.executescript("\n".join(dump(full, NEWEST)))
        assert schema_of(made) == schema_of(full)
        health = operations.check(made, bodies=True)
        assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())


@each_version
def test_an_old_schema_becomes_what_a_new_archive_has(old, tmp_path):
    """A schema file that is changed after its release would make two kinds of archives."""
    with closing(operations.connect(tmp_path / "new.db")) as new:
        assert schema_of(old) == schema_of(new)
        assert old.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        stats = "SELECT tbl, idx, stat FROM sqlite_stat1 ORDER BY 1, 2"
        assert old.execute(stats).fetchall() == new.execute(stats).fetchall()


@each_version
def test_everything_in_an_old_archive_is_there_and_sound(old, version):
    health = operations.check(old, bodies=True)
    assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    stored = {
        key.session_id: [item.uuid for item in operations.records(old, key, after_seq=0, up_to_seq=99, live_only=False)]
        for key in KEYS
    }
    own = [item.uuid for item in dialogue(12)]
    later = [item.uuid for item in dialogue(8, 12)]
    assert stored[KEY.session_id] == [*own, "b1", "s1", *later, "img", "m1", "x1", "b2", "s2", "u1"]
    assert stored[CLIENTS.session_id] == ["c1", "c2", "c3", "c4", "n1", "n2"]
    assert stored[FORK.session_id][-1] == "f1"
    assert stored[CHILD.session_id] == ["a1"]
    memory = operations.memory(old, KEY)
    assert memory is not None
    assert memory.text.endswith("use tabs")
    assert [item.text for item in operations.registered(old, KEY)] == ["step 2 comes next"]
    assert operations.pending(old, "local", "c1") is not None
    assert operations.position(old, "local", "|/t.jsonl") == SourcePosition("|/t.jsonl", 4_096, 7, 0, "ab", '{"v": 1}')
    assert hook_state(old, CLIENTS).injection == ("keep this" if version >= 2 else "")
    assert has_tokens(old) is (version >= 3)
    for query, found in (("step 9", 1), ("mend", 1), ("halb", 1), ("nowhere_at_all", 0)):
        assert bool(operations.search(old, "local", SearchQuery(query)).hits) is bool(found), query
    assert operations.check(old).waiting == 0


@each_version
def test_an_old_archive_goes_on(old):
    """Appended to, compacted, taken back, completed by what a client's boundary still waits for, deleted."""
    operations.append(old, KEY, batch(*dialogue(6, 30)), 10_000)
    operations.append(old, CLIENTS, Batch((prepared(record("late", "user", "kept, but late", parent="n2")),)), 10_001)
    live = operations.live(old, CLIENTS, after=0, limit=99, max_bytes=1 << 30)
    assert live is not None
    assert [item.uuid for item in live.records] == ["n2", "c4", "late"]
    before = operations.session(old, KEY)
    snapshot = operations.snapshot(old, KEY, Reach(100, 2, 300))
    assert before is not None
    assert snapshot is not None
    committed = operations.commit(
        old, KEY, plan_of(snapshot, snapshot.tail, Weight(9, 0, 0, 1)), Stamp(11_000, ("b9", "s9"))
    )
    assert committed.marker is not None
    assert operations.undo(old, KEY, Stamp(12_000, ("u9",))).live_hash == before.live_hash
    for key in KEYS:
        check_boundaries(old, key)
    assert operations.record(old, KEY, MessageUuid("r3")) is not None
    for key in KEYS:
        assert operations.delete_session(old, key) > 0
        health = operations.check(old, bodies=True)
        assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    assert old.execute("SELECT count(*) FROM body").fetchone() == (0,)


@pytest.mark.process
def test_several_processes_bring_an_old_archive_up_to_date_at_once(path):
    """One of them does, the others wait; all of them append what they have."""
    restore(1, path)
    for code, out, err in together(path, APPENDING, "3"):
        assert (code, out, err) == (0, "done\n", "")
    with closing(operations.connect(path)) as conn:
        assert conn.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        for at in range(PROCESSES):
            count = conn.execute("SELECT count(*) FROM record WHERE uuid LIKE ?", (f"p{at}-%",)).fetchone()
            assert count == (3,)
        health = operations.check(conn, bodies=True)
        assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())


def killed(folder: Path, version: int) -> dict[str, Any]:
    """What the process that kills others while they migrate has to say."""
    command = [
        sys.executable,
        "-m",
        "tests.adapters.sqlite.migration_kills",
        str(folder),
        str(version),
        str(KILLS),
        SEED,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.process
def test_a_migration_that_is_killed_before_any_of_its_statements_loses_nothing(tmp_path):
    found = killed(tmp_path, 1)["statements"]
    assert found["kills"] > 10
    assert found["wrong"] == []


@pytest.mark.process
def test_a_larger_archive_whose_migrations_are_killed_at_any_moment_is_whole(tmp_path):
    """More of it: `MIGRATION_KILLS=200 python -m pytest tests/adapters/sqlite/test_migrations.py`."""
    found = killed(tmp_path, 0)["moments"]
    assert found["left_old"] + found["left_new"] == found["kills"] == KILLS
    assert found["wrong"] == []
