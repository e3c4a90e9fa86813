"""Opening the file: who may read it, how it is journalled, and what is said when it is no archive."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_compact.adapters.sqlite import connection, filesystem, operations
from mcp_compact.adapters.sqlite.connection import check_point, connect, writing
from mcp_compact.adapters.sqlite.filesystem import shared_kind
from mcp_compact.adapters.sqlite.migrations import APPLICATION_ID, migrate, schema_versions
from mcp_compact.errors import ServerError
from tests.adapters.sqlite.builders import KEY, batch, dialogue

ROOT = Path(__file__).resolve().parents[3]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_file_wal_and_folder_are_for_their_owner_alone(tmp_path):
    path = tmp_path / "made" / "archive.db"
    before = os.umask(0)
    try:
        conn = connect(path)
        operations.append(conn, KEY, batch(*dialogue(3)), 1)
    finally:
        os.umask(before)
    assert mode_of(path.parent) == 0o700
    assert {name.name: mode_of(name) for name in path.parent.iterdir()} == {
        "archive.db": 0o600,
        "archive.db-wal": 0o600,
        "archive.db-shm": 0o600,
    }
    conn.close()


def test_a_file_that_others_could_read_is_taken_back(path):
    path.touch(mode=0o644)
    path.chmod(0o644)
    connect(path).close()
    assert mode_of(path) == 0o600


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path):
    tmp_path.chmod(0o755)
    connect(tmp_path / "a.db").close()
    assert mode_of(tmp_path) == 0o755


def test_settings_of_a_connection(conn):
    pragmas = ("journal_mode", "synchronous", "busy_timeout", "journal_size_limit", "mmap_size", "wal_autocheckpoint")
    assert [conn.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas] == ["wal", 1, 30_000, 4 << 20, 0, 0]


def test_full_sync_is_a_parameter(path):
    conn = connect(path, full_sync=True)
    assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
    conn.close()


def test_a_grown_wal_is_check_pointed_under_the_file_lock_and_cut_back(conn, path):
    wal = path.with_name(path.name + "-wal")
    conn.execute("CREATE TABLE filler (data BLOB)")
    for _ in range(4):
        with writing(conn):
            conn.execute("INSERT INTO filler VALUES (zeroblob(3000000))")
    assert path.stat().st_size > 9_000_000
    with writing(conn):
        conn.execute("INSERT INTO filler VALUES (1)")
    assert wal.stat().st_size <= 8 << 20


@pytest.mark.skipif(sys.platform == "win32", reason="file locks are fcntl's")
def test_no_two_processes_check_point_at_once(conn, path):
    import fcntl

    with Path(f"{path}-lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert check_point(conn) is False
    assert check_point(conn) is True


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 30 0:41 / /home/me/local\\040disk rw - ext4 /dev/sdb1 rw
32 22 0:42 / /mnt/c rw - 9p drvfs rw
33 22 0:43 / /mnt/ssh rw - fuse.sshfs host:/ rw
broken line
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/srv/a.db", ""),
        ("/home/me/a.db", "nfs4"),
        ("/home/me/local disk/a.db", ""),
        ("/homestead/a.db", ""),
        ("/mnt/c/a.db", "9p"),
        ("/mnt/ssh/deep/a.db", "fuse.sshfs"),
    ],
)
def test_shared_folders_are_told_by_their_mount(place, kind):
    assert shared_kind(Path(place), MOUNTS) == kind


def test_on_a_shared_folder_there_is_no_wal(path, monkeypatch):
    monkeypatch.setattr(filesystem, "shared_kind", lambda _: "nfs4")
    conn = connect(path)
    assert conn.journal_mode == "truncate"
    assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
    operations.append(conn, KEY, batch(*dialogue(3)), 1)
    assert not path.with_name(path.name + "-wal").exists()
    conn.close()


# ---- files that are none of ours, or no longer


def refused(path: Path) -> ServerError:
    before = path.read_bytes()
    with pytest.raises(ServerError) as caught:
        connect(path).close()
    assert path.read_bytes() == before
    assert caught.value.message
    assert caught.value.hint
    return caught.value


def archive_with_records(path: Path) -> None:
    conn = connect(path)
    operations.append(conn, KEY, batch(*dialogue(200)), 1)
    conn.close()


def test_a_text_file_is_refused_and_stays_as_it_is(path):
    path.write_text("no database at all, but somebody's notes\n" * 20)
    assert refused(path).code == "store_damaged"


def test_a_zeroed_header_is_refused(path):
    archive_with_records(path)
    with path.open("r+b") as file:
        file.write(b"\0" * 100)
    assert refused(path).code == "store_damaged"


def test_a_file_cut_short_is_told_when_it_is_read(path):
    archive_with_records(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ServerError) as caught:
        _read_all(path)
    assert caught.value.code == "store_damaged"


def _read_all(path: Path) -> None:
    conn = connect(path)
    operations.records(conn, KEY, after_seq=0, up_to_seq=1000, live_only=False)


def test_damage_inside_is_found_by_the_check(path):
    archive_with_records(path)
    conn = connect(path)
    assert operations.check(conn, bodies=True).wrong_bodies == ()
    conn.execute("UPDATE body SET data = x'00' WHERE id = 3")
    conn.execute("UPDATE session SET live_units = live_units + 1")
    health = operations.check(conn, bodies=True)
    assert (health.wrong_bodies, health.wrong_totals) == (((KEY, 3),), (KEY,))
    assert operations.check(conn).wrong_bodies == ()
    conn.close()


def test_an_archive_of_a_later_release_is_refused(path):
    conn = connect(path)
    conn.execute("PRAGMA journal_mode=DELETE")
    conn.execute("PRAGMA user_version=99")
    conn.close()
    error = refused(path)
    assert error.code == "newer_schema"
    assert "Upgrade mcp-compact" in error.hint


def test_a_database_of_another_program_is_refused(path):
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    assert refused(path).code == "foreign_database"


def test_a_folder_in_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "a.db").mkdir()
    with pytest.raises(ServerError) as caught:
        connect(tmp_path / "a.db")
    assert caught.value.code == "store_unreachable"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ServerError) as caught:
        connect(tmp_path / "file" / "a.db")
    assert caught.value.code == "store_unreachable"


def test_a_store_that_cannot_be_written_says_so(conn):
    conn.execute("PRAGMA query_only=1")
    with pytest.raises(ServerError) as caught:
        operations.append(conn, KEY, batch(*dialogue(1)), 1)
    assert caught.value.code == "store_read_only"


def test_a_lock_that_is_never_given_back_is_told_after_the_wait(path, monkeypatch):
    holder = connect(path)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    conn = connect(path)
    with pytest.raises(ServerError) as caught:
        operations.append(conn, KEY, batch(*dialogue(1)), 1)
    assert caught.value.code == "store_locked"
    # Reading needs no lock.
    assert operations.session(conn, KEY) is None
    holder.execute("ROLLBACK")
    assert operations.append(conn, KEY, batch(*dialogue(1)), 1).new == 1
    holder.close()
    conn.close()


DISK_FULL = """
import resource, sys
from mcp_compact.adapters.sqlite import operations
from mcp_compact.errors import ServerError
from tests.adapters.sqlite.builders import KEY, batch, dialogue
conn = operations.connect(sys.argv[1])
operations.append(conn, KEY, batch(*dialogue(10)), 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    operations.append(conn, KEY, batch(*dialogue(3000, 10)), 2)
except ServerError as error:
    print(error.code, conn.in_transaction, operations.session(conn, KEY).last_seq)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit on the size of files")
def test_a_full_disk_loses_only_what_was_not_acknowledged(path):
    done = subprocess.run(
        [sys.executable, "-c", DISK_FULL, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) in (("store_io False 10\n", ""), ("disk_full False 10\n", ""))
    conn = connect(path)
    assert operations.check(conn, bodies=True).damage == ()
    conn.close()


# ---- migrations


def test_migrating_twice_is_once(conn):
    migrate(conn)
    assert conn.execute("PRAGMA user_version").fetchone() == (schema_versions()[-1][0],)
    assert conn.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_an_old_archive_gets_the_later_migrations_alone(path):
    versions = schema_versions()
    later = (*versions, (versions[-1][0] + 1, "ALTER TABLE session ADD COLUMN later INTEGER DEFAULT 7;\n"))
    archive_with_records(path)
    conn = sqlite3.connect(path, isolation_level=None)
    migrate(conn, later)
    assert conn.execute("SELECT later FROM session").fetchone() == (7,)
    conn.close()


def test_a_migration_that_fails_leaves_the_version_before(path):
    versions = schema_versions()
    newest = versions[-1][0]
    broken = (*versions, (newest + 1, "CREATE TABLE half (x);\nINSERT INTO nowhere VALUES (1);\n"))
    archive_with_records(path)
    conn = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        migrate(conn, broken)
    assert conn.execute("PRAGMA user_version").fetchone() == (newest,)
    assert conn.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    conn.close()


@pytest.mark.parametrize("script", ["", "-- nothing\n", "CREATE TABLE a (x);\nCREATE TABLE b (\n"])
def test_a_schema_file_that_is_cut_short_makes_no_archive(path, script):
    conn = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(ServerError) as caught:
        migrate(conn, ((1, script),))
    assert caught.value.code == "broken_installation"
    assert conn.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert conn.execute("PRAGMA user_version").fetchone() == (0,)
    conn.close()
