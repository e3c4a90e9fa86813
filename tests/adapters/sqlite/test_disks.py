"""Disks that are full, read-only or shared: really mounted, where the system lets a test do so."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import filesystem, hook_rows, operations
from mcp_compact.adapters.sqlite.connection import connect
from mcp_compact.errors import ServerError
from mcp_compact.ports.search import SearchQuery
from tests.adapters.sqlite.builders import KEY, batch, dialogue

ROOT = Path(__file__).resolve().parents[3]


def can_mount() -> bool:
    unshare = shutil.which("unshare")
    if unshare is None or sys.platform == "win32":
        return False
    return subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="nothing can be mounted here (unshare -m)")


def mounted(folder: Path, mounts: str, script: str) -> Any:
    """Run a script with mounts that no other process sees; what it prints as JSON."""
    command = ["unshare", "-m", "sh", "-ec", f'{mounts}\nexec "$0" -c "$2" "$1"', sys.executable, str(folder), script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


FULL = """
import json, sys
from pathlib import Path
from mcp_compact.adapters.sqlite import operations
from mcp_compact.errors import ServerError
from tests.adapters.sqlite.builders import KEY, batch, dialogue
folder = Path(sys.argv[1])
conn = operations.connect(folder / "a.db")
acknowledged, out = 0, {}
try:
    while True:
        operations.append(conn, KEY, batch(*dialogue(50, acknowledged)), 1)
        acknowledged += 50
except ServerError as error:
    out["code"], out["hint"] = error.code, error.hint
out["kept"] = operations.session(conn, KEY).last_seq == acknowledged > 500
(folder / "ballast").unlink()
operations.append(conn, KEY, batch(*dialogue(50, acknowledged)), 1)
out["sound"] = operations.check(conn, bodies=True).damage == ()
out["after"] = operations.session(conn, KEY).last_seq == acknowledged + 50
conn.close()
print(json.dumps(out))
"""


@needs_mounts
def test_a_full_disk_refuses_what_does_not_fit_and_nothing_else(tmp_path):
    mounts = 'mount -t tmpfs -o size=4m none "$1"; head -c 1000000 /dev/zero > "$1/ballast"'
    found = mounted(tmp_path, mounts, FULL)
    assert "free some space" in found.pop("hint")
    assert found == {"code": "disk_full", "kept": True, "sound": True, "after": True}


READ_ONLY = """
import json, sys
from pathlib import Path
from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.backups import back_up
from mcp_compact.errors import ServerError
from mcp_compact.ports.search import SearchQuery
from tests.adapters.sqlite.builders import KEY, batch, dialogue
def code(work):
    try:
        return work()
    except ServerError as error:
        return error.code
out = {}
for name in ("rest", "wal", "torn"):
    path = Path(sys.argv[1]) / name / "a.db"
    conn = code(lambda: operations.connect(path))
    if isinstance(conn, str):
        out[name] = conn
        continue
    out[name] = [
        operations.session(conn, KEY).last_seq,
        len(operations.search(conn, "local", SearchQuery("step")).hits),
        code(lambda: operations.append(conn, KEY, batch(*dialogue(5, 900)), 1)),
        operations.session(conn, KEY).last_seq,
    ]
    conn.close()
out["new"] = code(lambda: operations.connect(Path(sys.argv[1]) / "new" / "a.db"))
conn = operations.connect(Path(sys.argv[1]) / "rest" / "a.db")
out["backup"] = back_up(conn, Path(conn.path), Path(sys.argv[1] + "-backup.db"), lambda *_: None).records
print(json.dumps(out))
"""


@needs_mounts
def test_on_a_read_only_disk_reading_works_and_writing_says_why_not(tmp_path):
    folder = tmp_path / "disk"
    for name in ("rest", "wal", "torn"):
        path = folder / name / "a.db"
        conn = connect(path)
        operations.append(conn, KEY, batch(*dialogue(100)), 1)
        # As a killed process leaves it: the WAL is there, its shared memory may be.
        left = {item.name: item.read_bytes() for item in path.parent.iterdir()}
        conn.close()
        if name == "rest":
            continue
        for file, data in left.items():
            if name == "wal" or not file.endswith("-shm"):
                path.with_name(file).write_bytes(data)
    found = mounted(folder, 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"', READ_ONLY)
    assert found["rest"] == found["wal"] == [100, 20, "store_read_only", 100]
    assert found["torn"] == found["new"] == "store_read_only"
    assert found["backup"] == 100


def test_an_archive_that_comes_to_a_shared_folder_leaves_its_wal(path, monkeypatch):
    conn = connect(path)
    operations.append(conn, KEY, batch(*dialogue(10)), 1)
    monkeypatch.setattr(filesystem, "shared_kind", lambda _: "nfs4")
    # Another process, perhaps of another machine, has it open: nobody may take its WAL away.
    monkeypatch.setattr("mcp_compact.adapters.sqlite.connection.BUSY_SECONDS", 0.05)
    with pytest.raises(ServerError) as caught:
        connect(path)
    assert caught.value.code == "store_locked"
    conn.close()
    moved = connect(path)
    assert moved.journal_mode == "truncate"
    row = operations.session(moved, KEY)
    assert row is not None
    assert row.last_seq == 10
    others = [connect(path) for _ in range(2)]
    for number, other in enumerate([moved, *others]):
        operations.append(other, KEY, batch(*dialogue(1, 100 + number)), 1)
    assert len(operations.search(moved, "local", SearchQuery("step")).hits) > 0
    assert not path.with_name(path.name + "-wal").exists()
    for each in (moved, *others):
        each.close()


def test_where_it_is_asked_for_every_connection_waits_for_the_disk(path):
    connect(path).close()
    for conn in (connect(path, full_sync=True), hook_rows.open_known(str(path), full_sync=True)):
        assert conn is not None
        assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
        conn.close()
    usual = hook_rows.open_known(str(path))
    assert usual is not None
    assert usual.execute("PRAGMA synchronous").fetchone() == (1,)
    usual.close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA journal_mode=DELETE").fetchall()
    raw.close()
    unlogged = hook_rows.open_known(str(path))
    assert unlogged is not None
    assert unlogged.execute("PRAGMA synchronous").fetchone() == (2,)
    unlogged.close()


REMOVING = """
import json, sys
from pathlib import Path
from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.forgetting import forget
from mcp_compact.errors import ServerError
from tests.adapters.sqlite.builders import KEY, batch, dialogue
folder, out = Path(sys.argv[1]), {}
conn = operations.connect(folder / "a.db")
operations.append(conn, KEY, batch(*dialogue(3000)), 1)
with (folder / "more").open("wb", buffering=0) as more:
    try:
        while True:
            more.write(bytes(4096))
    except OSError:
        pass
for name, remove in (("delete", operations.delete_session), ("forget", lambda conn, key: forget(conn, [key]))):
    try:
        remove(conn, KEY)
    except ServerError as error:
        out[name] = [error.code, error.hint]
(folder / "more").unlink()
out["removed"] = operations.delete_session(conn, KEY)
conn.close()
print(json.dumps(out))
"""


@needs_mounts
def test_on_a_full_disk_removing_says_that_it_needs_room_too(tmp_path):
    found = mounted(tmp_path, 'mount -t tmpfs -o size=8m none "$1"', REMOVING)
    assert found["removed"] == 3000
    for name in ("delete", "forget"):
        code, hint = found[name]
        assert code == "disk_full"
        assert "Removing needs some room" in hint
        assert "MCP_COMPACT_DB" in hint


RESCUING = """
import json, sys
from pathlib import Path
from mcp_compact.adapters.sqlite.operations.rescuing import default_target, rescue
from mcp_compact.errors import CompactError
damaged = Path(sys.argv[1]) / "a.db"
try:
    rescue(damaged, default_target(damaged), lambda *_: None)
except CompactError as error:
    print(json.dumps([error.code, str(error)]))
"""


@needs_mounts
@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        ('mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"', "Read-only file system"),
        (
            'cp "$1/a.db" "$1/../kept.db"; mount -t tmpfs -o size=$(stat -c %s "$1/../kept.db") none "$1"; cp "$1/../kept.db" "$1/a.db"',
            "the disk is full",
        ),
    ],
)
def test_a_rescue_that_has_no_place_beside_the_archive_says_how_to_name_one(tmp_path, mounts, reason):
    folder = tmp_path / "disk"
    folder.mkdir()
    conn = operations.connect(folder / "a.db")
    operations.append(conn, KEY, batch(*dialogue(20)), 1)
    conn.close()
    code, said = mounted(folder, mounts, RESCUING)
    assert code == "output_refused"
    assert reason in said
    assert "rescue -o NEW" in said
