"""Backups: whole, checked, and put back without anything being lost."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_compact.adapters.sqlite import filesystem, operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.operations import backups
from mcp_compact.adapters.sqlite.operations.backups import back_up, known_backups, put_back
from mcp_compact.adapters.sqlite.operations.inspecting import examine
from mcp_compact.errors import CallerError, CompactError
from mcp_compact.ports.store import SessionKey
from tests.adapters.sqlite.builders import KEY, batch, dialogue

ROOT = Path(__file__).resolve().parents[4]
LATER = SessionKey("local", "later")


def quiet(done: int, total: int, what: str) -> None:
    pass


@pytest.fixture
def archive(path: Path) -> Path:
    conn = operations.connect(path)
    operations.append(conn, KEY, batch(*dialogue(100)), 1)
    conn.close()
    return path


@pytest.fixture
def backup(archive: Path, tmp_path: Path) -> Path:
    target = tmp_path / "backup.db"
    conn = operations.connect(archive)
    back_up(conn, archive, target, quiet)
    conn.close()
    return target


def has(path: Path, key: SessionKey) -> bool:
    conn = operations.connect(path)
    try:
        return operations.session(conn, key) is not None
    finally:
        conn.close()


def test_a_backup_of_an_archive_in_use_holds_what_was_acknowledged(archive, tmp_path):
    target = tmp_path / "backup.db"
    reader, writer = operations.connect(archive), operations.connect(archive)
    operations.append(writer, LATER, batch(*dialogue(5)), 2)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE session SET title = 'half written'")
    done = back_up(reader, archive, target, quiet)
    writer.execute("ROLLBACK")
    assert (done.sessions, done.records) == (2, 105)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(item.name for item in tmp_path.iterdir() if "part" in item.name) == []
    assert has(target, LATER)
    assert known_backups(archive) == [target]
    for conn in (reader, writer):
        conn.close()


def test_what_a_killed_backup_left_goes_with_the_next_one(archive, tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = [
        tmp_path / f".backup.db.{number}.part{suffix}"
        for number in (ended.pid, os.getppid())
        for suffix in ("", "-wal")
    ]
    for file in left:
        file.touch()
    conn = operations.connect(archive)
    back_up(conn, archive, tmp_path / "backup.db", quiet)
    conn.close()
    assert [file.exists() for file in left] == [False, False, True, True]


@pytest.mark.parametrize("kind", ["archive", "text", "folder", "no_folder", "open"])
def test_nothing_else_is_overwritten_by_a_backup(archive, tmp_path, kind):
    target = tmp_path / "target"
    conn = operations.connect(archive)
    other: ArchiveConnection | None = None
    match kind:
        case "archive":
            target = archive
        case "text":
            target.write_text("somebody's notes")
        case "folder":
            target.mkdir()
        case "no_folder":
            target = tmp_path / "nowhere" / "file"
        case "open":
            other = operations.connect(target)
    with pytest.raises(CallerError):
        back_up(conn, archive, target, quiet)
    if kind == "text":
        assert target.read_text() == "somebody's notes"
    for opened in filter(None, (conn, other)):
        opened.close()


def test_a_backup_of_a_damaged_archive_is_not_kept(archive, tmp_path):
    conn = operations.connect(archive)
    conn.execute("UPDATE body SET data = x'00' WHERE id = 7")
    with pytest.raises(CallerError) as caught:
        back_up(conn, archive, tmp_path / "backup.db", quiet)
    assert caught.value.code == "damaged_archive"
    assert not (tmp_path / "backup.db").exists()
    conn.close()


def test_what_a_restored_archive_was_before_is_kept(archive, backup, tmp_path):
    conn = operations.connect(archive)
    operations.append(conn, LATER, batch(*dialogue(5)), 2)
    conn.close()
    kept = tmp_path / "kept.db"
    done, replaced = put_back(archive, backup, kept, quiet)
    assert (done.records, replaced) == (100, True)
    assert (has(archive, KEY), has(archive, LATER)) == (True, False)
    assert has(kept, LATER)
    assert examine(archive, quiet).records == 100
    assert kept in known_backups(archive)


def test_where_there_was_no_archive_there_is_one(backup, tmp_path):
    new = tmp_path / "new" / "archive.db"
    assert put_back(new, backup, tmp_path / "kept.db", quiet)[1] is False
    assert has(new, KEY)


HOLDER = """
import sys
from mcp_compact.adapters.sqlite import operations
conn = operations.connect(sys.argv[1])
conn.execute("SELECT count(*) FROM record").fetchall()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="locks are told by fcntl")
@pytest.mark.parametrize("damaged", [False, True])
def test_an_archive_that_another_process_has_open_is_left_alone(archive, backup, tmp_path, monkeypatch, damaged):
    monkeypatch.setattr(backups, "IN_USE_SECONDS", 0.1)
    command = [sys.executable, "-c", HOLDER, str(archive)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        if damaged:
            with archive.open("r+b") as file:
                file.write(b"\0" * 100)
        before = archive.read_bytes()
        with pytest.raises(CallerError) as caught:
            put_back(archive, backup, tmp_path / "kept.db", quiet)
        holder.communicate()
    assert caught.value.code == "archive_in_use"
    if filesystem.holders(Path(os.devnull)) or Path("/proc/self/fd").is_dir():
        assert str(holder.pid) in caught.value.message
    assert archive.read_bytes() == before
    assert not (tmp_path / "kept.db").exists()


def test_a_file_that_sqlite_cannot_read_is_moved_aside(archive, backup, tmp_path):
    with archive.open("r+b") as file:
        file.write(b"\0" * 8192)
    spoilt = archive.read_bytes()
    kept = tmp_path / "kept.db"
    assert put_back(archive, backup, kept, quiet)[1] is True
    assert kept.read_bytes() == spoilt
    assert has(archive, KEY)


def _text(path: Path) -> None:
    path.write_text("no database" * 100)


def _random_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 12)
        file.write(bytes(range(256)) * 16)


def _short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30_000])


def _newer(path: Path) -> None:
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA user_version=99")
    conn.close()


def _foreign(path: Path) -> None:
    path.unlink()
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE recipes (name TEXT)")
    conn.close()


def _body(path: Path) -> None:
    conn = sqlite3.connect(path)
    conn.execute("UPDATE body SET data = x'00' WHERE id = 9")
    conn.commit()
    conn.close()


@pytest.mark.parametrize("spoil", [_text, _random_page, _short, _newer, _foreign, _body])
def test_a_backup_that_is_none_or_not_sound_changes_nothing(archive, backup, tmp_path, spoil):
    spoil(backup)
    before = archive.read_bytes()
    with pytest.raises(CompactError) as caught:
        put_back(archive, backup, tmp_path / "kept.db", quiet)
    assert caught.value.hint
    assert archive.read_bytes() == before
    assert not (tmp_path / "kept.db").exists()


def test_a_database_of_another_program_is_not_overwritten(backup, tmp_path):
    theirs = tmp_path / "theirs.db"
    conn = sqlite3.connect(theirs)
    conn.execute("CREATE TABLE recipes (name TEXT)")
    conn.close()
    with pytest.raises(CallerError) as caught:
        put_back(theirs, backup, tmp_path / "kept.db", quiet)
    assert caught.value.code == "foreign_database"
