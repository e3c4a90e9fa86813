from __future__ import annotations

import sqlite3
import sys

import pytest

from mcp_compact.cli import doctor
from mcp_compact.hooking import notes


def by_check(done):
    return {item["check"]: item for item in done.json["findings"]}


def test_a_fresh_installation_is_in_order(command, archive):
    done = command("doctor", "--json")
    assert (done.code, done.json["ok"]) == (0, True)
    found = by_check(done)
    assert found["archive"]["state"] == "note"
    assert str(archive) in found["archive"]["text"]
    assert found["tokenizer"]["state"] == "ok"
    assert not archive.parent.exists()


def test_an_archive_in_use_is_in_order(command, transcript, archive):
    command("import", str(transcript))
    done = command("doctor", "--json")
    assert done.code == 0
    found = by_check(done)
    assert "1 session, 62 messages" in found["contents"]["text"]
    assert found["permissions"]["text"].startswith("0600")
    assert found["quick check"]["state"] == "ok"
    assert str(archive) in found["archive"]["text"]


def test_each_finding_that_is_not_in_order_says_what_to_do(command, monkeypatch):
    monkeypatch.setenv("MCP_COMPACT_NONSENSE", "1")
    monkeypatch.setenv("TENGU_SM_COMPACT", "1")
    monkeypatch.setenv("ENABLE_CLAUDE_CODE_SM_COMPACT", "1")
    monkeypatch.setenv("MCP_COMPACT_ROOTS", "/nowhere/at/all")
    findings = command("doctor", "--json").json["findings"]
    assert all(item["todo"] for item in findings if item["state"] != "ok")
    said = " ".join(item["text"] for item in findings)
    for word in ("MCP_COMPACT_NONSENSE", "TENGU_SM_COMPACT", "ENABLE_CLAUDE_CODE_SM_COMPACT", "/nowhere/at/all"):
        assert word in said


@pytest.mark.parametrize("content", [b"this is no database" * 100, b""], ids=["text", "empty"])
def test_a_file_that_is_no_archive_is_broken_or_made_new(command, archive, content):
    archive.parent.mkdir()
    archive.write_bytes(content)
    archive.chmod(0o600)
    done = command("doctor", "--json")
    assert done.code == (1 if content else 0)
    if content:
        assert by_check(done)["quick check"]["state"] == "broken"
        assert archive.read_bytes() == content


def test_somebody_elses_database_is_told_apart(command, archive):
    archive.parent.mkdir()
    other = sqlite3.connect(archive)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.commit()
    other.close()
    archive.chmod(0o600)
    done = command("doctor", "--json")
    assert done.code == 1
    assert by_check(done)["contents"]["state"] == "broken"


def test_a_damaged_archive_is_broken(command, transcript, archive):
    command("import", str(transcript))
    content = bytearray(archive.read_bytes())
    for at in range(8192, len(content), 4096):
        content[at : at + 200] = b"\xff" * 200
    archive.write_bytes(content)
    done = command("doctor", "--json")
    assert done.code == 1
    assert by_check(done)["quick check"]["state"] == "broken"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_an_archive_that_others_may_read_is_broken_and_the_command_that_mends_it_is_given(command, transcript, archive):
    command("import", str(transcript))
    archive.chmod(0o644)
    done = command("doctor", "--json")
    assert done.code == 1
    assert by_check(done)["permissions"]["todo"] == f"Run: chmod 600 {archive}"


def test_a_folder_in_the_archives_place_is_broken(command, archive):
    archive.mkdir(parents=True)
    assert command("doctor").code == 1


def test_the_version_with_the_check_point_fault_is_named(monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    assert doctor._sqlite().state == "note"
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    assert doctor._sqlite().state == "ok"


def test_the_page_is_readable(command):
    done = command("doctor")
    assert done.code == 0
    assert all(len(line) <= 80 for line in done.out.splitlines() if "/" not in line)
    assert "Nothing is broken" in done.out


def test_what_hooks_kept_to_themselves_is_told_and_then_forgotten(command, archive):
    for event in ("PreCompact", "Stop"):
        notes.keep(
            str(archive), {"at_ms": 1, "event": event, "code": "disk_full", "text": "The disk is full.", "off": True}
        )
    notes.told(str(archive))
    found = by_check(command("doctor", "--json"))["hooks"]
    assert (found["state"], found["text"]) == (
        "note",
        "2 hooks failed (PreCompact, Stop): disk_full: The disk is full.",
    )
    assert "forgotten" in found["todo"]
    assert by_check(command("doctor", "--json"))["hooks"]["state"] == "ok"
    assert not notes.untold(str(archive))


def test_it_is_kept_while_the_archive_is_broken(command, archive):
    archive.parent.mkdir()
    archive.write_bytes(b"this is no database" * 100)
    notes.keep(str(archive), {"at_ms": 1, "event": "Stop", "code": "archive", "text": "no database", "off": True})
    for _ in range(2):
        assert "Mend the archive first" in by_check(command("doctor", "--json"))["hooks"]["todo"]
    assert notes.untold(str(archive))
