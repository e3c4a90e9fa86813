"""Keeping the archive, as a person does it: backup, restore, export, import, rescue, a deep look."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from mcp_compact.cli.archive import opened
from mcp_compact.config import load_settings


@pytest.fixture
def stored(command, transcript, archive) -> Path:
    assert command("import", str(transcript)).code == 0
    return archive


def sessions(command) -> list[dict[str, object]]:
    found: list[dict[str, object]] = command("sessions", "--all", "--json").json["sessions"]
    return found


def damage(archive: Path) -> str:
    """Change a byte of a message; its uuid."""
    conn = sqlite3.connect(archive)
    uuid, body = conn.execute("SELECT uuid, body_id FROM record WHERE seq = 5").fetchone()
    conn.execute("UPDATE body SET data = CAST(replace(data, 'gauge', 'gouge') AS BLOB) WHERE id = ?", (body,))
    conn.commit()
    conn.close()
    return str(uuid)


def test_back_and_forth(command, stored, tmp_path):
    before = sessions(command)
    done = command("backup", str(tmp_path), "--json")
    assert done.code == 0
    file = Path(done.json["file"])
    assert (file.parent, stat.S_IMODE(file.stat().st_mode)) == (tmp_path, 0o600)
    assert command("forget", str(before[0]["session_id"]), "--yes").code == 0
    assert sessions(command) == []
    restored = command("restore", str(file), "--json")
    assert restored.code == 0
    assert sessions(command) == before
    assert Path(restored.json["replaced"]).is_file()
    told = command("backup", str(file))
    assert f"mcp-compact restore {file}" in told.out


REFUSED = [
    (["backup", "ARCHIVE"], "archive itself"),
    (["backup", "/nowhere/at/all"], "does not exist"),
    (["backup", "TEXT"], "no archive"),
    (["restore", "TEXT"], "no archive"),
    (["restore", "ARCHIVE"], "archive itself"),
    (["restore", "/nowhere"], "no file"),
    (["export", "--raw", "nobody"], "no session"),
    (["export", "--raw", "--all", "5e551011"], "--all"),
    (["export", "--raw", "--json"], "-o FILE"),
    (["export", "--raw", "5e551011", "-o", "FOLDER"], "no plain file"),
    (["rescue", "TEXT"], "Nothing of an archive"),
    (["rescue", "-o", "TEXT"], "is there already"),
    (["rescue", "/nowhere"], "no file"),
]


def test_what_cannot_be_is_said_and_nothing_is_written(command, stored, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("somebody's notes")
    names = {"ARCHIVE": stored, "TEXT": text, "FOLDER": tmp_path}
    before = sorted(item.name for item in tmp_path.rglob("*"))
    for words, said in REFUSED:
        done = command(*[str(names.get(word, word)) for word in words])
        assert (words, done.code, done.out) == (words, 2, "")
        assert said in done.err
        assert len(done.err.splitlines()) == 2
        assert text.read_text() == "somebody's notes"
        assert sorted(item.name for item in tmp_path.rglob("*")) == before


def test_without_an_archive_nothing_is_made(command, archive, tmp_path):
    for words in (["backup", str(tmp_path / "b.db")], ["export", "--raw", "--all"], ["rescue"]):
        done = command(*words)
        assert (done.code, done.out) == (2, "")
        assert "no archive yet" in done.err
    assert not archive.parent.exists()


def test_a_session_goes_into_another_archive_and_back_out_the_same(command, stored, tmp_path, monkeypatch):
    raw = tmp_path / "s.raw"
    assert command("export", "--raw", "5e551011", "-o", str(raw)).code == 0
    assert stat.S_IMODE(raw.stat().st_mode) == 0o600
    assert command("export", "--raw", "5e551011").out.encode() == raw.read_bytes()
    monkeypatch.setenv("MCP_COMPACT_DB", str(tmp_path / "other" / "archive.db"))
    told = command("import", str(raw))
    assert told.code == 0
    assert "byte for byte" in told.out
    assert command("export", "--raw", "--all").out.encode() == raw.read_bytes()
    assert command("import", str(raw), "--json").json["known"]
    assert command("import", str(raw), "--session", "copy").code == 0
    assert {line["session_id"] for line in sessions(command)} == {"copy", "5e551011-0000-4000-8000-000000000001"}
    cut = tmp_path / "cut.raw"
    cut.write_bytes(raw.read_bytes()[:-50])
    refused = command("import", str(cut))
    assert (refused.code, "cut short" in refused.err) == (2, True)
    several = command("import", str(raw), str(raw))
    assert (several.code, "export of whole sessions" in several.out) == (1, True)


def test_damage_is_found_named_and_rescued(command, stored, tmp_path):
    assert command("doctor", "--deep", "--json").json["ok"] is True
    uuid = damage(stored)
    assert command("doctor", "--json").json["ok"] is True
    deep = command("doctor", "--deep", "--json")
    found = {item["check"]: item for item in deep.json["findings"]}
    assert (deep.code, found["messages"]["state"]) == (1, "broken")
    assert uuid in found["messages"]["text"]
    assert "mcp-compact rescue" in found["messages"]["todo"]
    assert command("backup", str(tmp_path / "b.db")).code == 2
    done = command("rescue", "--json")
    assert done.code == 1
    assert [item["uuid"] for item in done.json["sessions"][0]["lost"]] == [uuid]
    told = command("rescue")
    assert uuid in told.out
    assert command("restore", done.json["file"]).code == 0
    assert command("doctor", "--deep", "--json").json["ok"] is True
    assert command("search", "gauge_reading_7_3", "--all", "--json").json["hits"]


def test_a_damaged_file_is_said_by_each_face(program, stored, tmp_path):
    content = bytearray(stored.read_bytes())
    content[:100] = bytes(100)
    stored.write_bytes(content)
    said = program("sessions", "--all")
    assert said.code == 1
    assert "mcp-compact rescue" in said.err
    event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s", "cwd": str(tmp_path)}
    hook = program("hook", stdin=json.dumps(event).encode())
    assert (hook.code, "mcp-compact doctor" in hook.out) == (0, True)
    assert program("rescue").code == 0


def test_what_commands_write_waits_for_the_disk_where_that_is_set(stored, monkeypatch):
    monkeypatch.setenv("MCP_COMPACT_SYNCHRONOUS", "full")
    conn = opened(load_settings())
    assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
    conn.close()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not hold for this user")
def test_a_folder_that_may_not_be_written_to_takes_no_backup(command, stored, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    done = command("backup", str(folder / "b.db"))
    assert (done.code, "may not be written" in done.err) == (2, True)
