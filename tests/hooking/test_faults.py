"""A hook never fails its client: whatever is wrong, it ends with 0, is silent, and keeps a note for `doctor`."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from mcp_compact import places
from mcp_compact.hooking import given, notes
from mcp_compact.hooking.noting import OFF
from tests.hooking.client import RULE, SESSION, ClientFolder
from tests.hooking.test_events import uuids

pytestmark = pytest.mark.e2e
EVENTS = ("PreCompact", "UserPromptSubmit", "SessionEnd")


def silent(client: ClientFolder, *events: str) -> None:
    """These events say nothing and end well."""
    for event in events:
        said = client.hook(event, trigger="auto", compact_summary="s", prompt="p", source="compact")
        assert (said.code, said.out, said.err) == (0, "", ""), event


# ---------------------------------------------------------------- the archive


def broken(client: ClientFolder) -> None:
    client.archive.parent.mkdir()
    client.archive.write_bytes(b"this is no database" * 1000)


def of_another_program(client: ClientFolder) -> None:
    client.archive.parent.mkdir()
    conn = sqlite3.connect(client.archive)
    conn.execute("CREATE TABLE recipes (name TEXT)")
    conn.close()


def of_a_later_release(client: ClientFolder) -> None:
    client.hook("SessionStart", source="startup")
    conn = sqlite3.connect(client.archive, isolation_level=None)
    conn.execute("PRAGMA user_version=99")
    conn.close()


def a_folder(client: ClientFolder) -> None:
    client.archive.mkdir(parents=True)


@pytest.mark.parametrize("make", [broken, of_another_program, of_a_later_release, a_folder])
def test_an_archive_that_cannot_be_used_is_silence_a_note_and_one_line_at_the_start(client: ClientFolder, make):
    make(client)
    client.write(client.talk(2))
    before = client.archive.read_bytes() if client.archive.is_file() else b""
    silent(client, *EVENTS)
    kept = client.notes()
    assert [note["event"] for note in kept] == list(EVENTS)
    assert all(note["off"] and note["code"] for note in kept)
    said = client.hook("SessionStart", source="startup")
    assert (said.code, said.person, said.context) == (0, OFF, "")
    assert (client.archive.read_bytes() if client.archive.is_file() else b"") == before


def test_where_nothing_can_be_written_at_all_the_start_still_says_so(client: ClientFolder):
    client.archive.parent.write_text("a file where the folder should be")
    client.write(client.talk(2))
    silent(client, *EVENTS)
    assert client.hook("SessionStart", source="startup").person == OFF


def test_a_fault_that_has_passed_is_told_once_at_the_next_start(client: ClientFolder):
    broken(client)
    client.write(client.talk(2))
    silent(client, "PreCompact")
    client.archive.unlink()
    assert client.hook("SessionStart", source="resume").person == OFF
    assert client.hook("SessionStart", source="resume").person == "mcp-compact: recording"
    assert RULE in client.hook("PreCompact", trigger="auto").out


def test_an_archive_that_is_locked_is_waited_for_and_then_missed_without_alarm(client: ClientFolder):
    client.hook("SessionStart", source="startup")
    conn = sqlite3.connect(client.archive, isolation_level=None)
    conn.execute("BEGIN IMMEDIATE")
    client.env["CLAUDE_PID"] = str(os.getppid())
    silent(client, "UserPromptSubmit")
    conn.execute("ROLLBACK")
    conn.close()
    [note] = client.notes()
    assert (note["code"], note["off"]) == ("busy", False)
    assert client.hook("SessionStart", source="resume").person == "mcp-compact: recording"


def test_notes_say_nothing_of_the_conversation_and_do_not_grow_without_end(client: ClientFolder):
    broken(client)
    client.write(client.talk(2))
    silent(client, "Stop")
    assert "config_0" not in json.dumps(client.notes())
    for number in range(1500):
        notes.keep(str(client.archive), {"at_ms": number, "event": "Stop", "code": "x", "text": "y" * 50, "off": True})
    path = Path(notes.place(str(client.archive)))
    assert path.stat().st_size <= notes.MOST_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert client.notes()[-1]["at_ms"] == 1499


# ---------------------------------------------------------------- the input


@pytest.mark.parametrize(
    "data",
    [
        b"", b"   ", b"null", b"[]", b'"text"', b"{", b"no json", b"\xff\xfe\x00", b"[" * 200_000, b"{}",
        b'{"hook_event_name": 7, "session_id": ["x"]}', b'{"hook_event_name": "\\ud83d", "cwd": "\\ud83d"}',
    ],
)  # fmt: skip
def test_any_input_is_taken_with_silence(client: ClientFolder, data: bytes):
    said = client.raw(data)
    assert (said.code, said.out, said.err) == (0, "", "")


def test_an_input_without_end_is_not_read_to_its_end(client: ClientFolder):
    said = client.raw(b'{"hook_event_name":"Stop","x":"' + b"a" * given.MOST_BYTES + b'"}')
    assert (said.code, said.out) == (0, "")
    assert client.notes()[0]["code"] == "bad_hook_input"


def test_a_large_prompt_is_no_fault(client: ClientFolder):
    assert client.hook("UserPromptSubmit", prompt="word " * 1_000_000).code == 0
    assert client.notes() == []


@pytest.mark.parametrize(
    "name", ["../../etc", "a/b", "x" * 300, "", " ", "\ud83d", "'; DROP TABLE session; --", "a\nb"]
)
def test_a_session_id_is_a_name_and_nothing_else(client: ClientFolder, name: str):
    client.write(client.talk(1))
    for event in ("SessionStart", "Stop"):
        said = client.hook(event, session_id=name, source="startup")
        assert (said.code, said.err) == (0, "")
    assert client.rows(
        "SELECT count(*) FROM session WHERE session_id <> trim(?)", name.replace("\ud83d", "\ufffd")
    ) == [(0,)]


# ---------------------------------------------------------------- the transcript


def elsewhere(client: ClientFolder) -> Path:
    path = client.root / "elsewhere.jsonl"
    client.write(client.talk(1))
    client.transcript.rename(path)
    return path


def linked(client: ClientFolder) -> Path:
    path = elsewhere(client)
    client.transcript.symlink_to(path)
    return client.transcript


def upwards(client: ClientFolder) -> Path:
    elsewhere(client)
    return client.transcript.parent / ".." / ".." / ".." / "elsewhere.jsonl"


def a_device(client: ClientFolder) -> Path:
    client.transcript.parent.mkdir(parents=True)
    client.transcript.symlink_to("/dev/zero")
    return client.transcript


@pytest.mark.parametrize("make", [elsewhere, linked, upwards, a_device])
def test_a_file_outside_of_the_clients_folders_is_never_read(client: ClientFolder, make):
    path = make(client)
    for event in ("SessionStart", "Stop"):
        said = client.hook(event, transcript_path=str(path), source="startup")
        assert (said.code, said.err) == (0, "")
    assert client.rows("SELECT count(*) FROM session") == [(0,)]
    assert client.rows("SELECT transcript FROM binding") == [("",)]
    assert {note["code"] for note in client.notes()} == {"transcript_elsewhere"}
    assert client.hook("SessionStart", transcript_path=str(path), source="resume").person == OFF


def test_a_setting_allows_another_folder(client: ClientFolder):
    path = elsewhere(client)
    client.env["MCP_COMPACT_ROOTS"] = str(client.root)
    client.hook("Stop", transcript_path=str(path))
    assert len(client.stored()) == 4


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "relative/path.jsonl", "", "a\0b"])
def test_a_transcript_that_is_no_file_is_no_fault_or_a_note(client: ClientFolder, name: str):
    client.transcript.parent.mkdir(parents=True)
    path = name if name.startswith(("relative", "a\0")) or not name else str(client.transcript.parent / name)
    said = client.hook("PreCompact", transcript_path=path, trigger="auto")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert client.rows("SELECT count(*) FROM session") == [(0,)]


@pytest.mark.parametrize("content", [b"no transcript", b"\x00\x01\x02" * 100, b"[" * 100_000, b'{"type":"mode"}\n'])
def test_a_file_that_is_no_transcript_is_silence(client: ClientFolder, content: bytes):
    client.write(content)
    silent(client, "PreCompact", "Stop")
    assert client.rows("SELECT count(*) FROM record") == [(0,)]


def test_a_line_that_is_still_being_written_is_completed_later(client: ClientFolder):
    records = client.talk(2)
    client.write(records)
    whole = client.transcript.read_bytes()
    client.write(whole[:-30])
    silent(client, "Stop")
    client.write(whole)
    silent(client, "Stop")
    assert client.stored() == uuids(records)


# ---------------------------------------------------------------- switched off


@pytest.mark.parametrize("place", ["project", "root", "archive"])
def test_a_switch_file_is_obeyed_at_once(client: ClientFolder, place: str):
    client.write(client.talk(2))
    client.hook("Stop")
    known = client.stored()
    client.write(client.talk(4))
    switch = {
        "project": client.project / places.SWITCH,
        "root": client.root / places.SWITCH,
        "archive": client.archive.parent / places.SWITCH_ALL,
    }[place]
    switch.touch()
    silent(client, "SessionStart", *EVENTS)
    assert client.stored() == known
    assert client.notes() == []
    switch.unlink()
    client.hook("Stop")
    assert len(client.stored()) == 16


# ---------------------------------------------------------------- at once, and cut off


def test_hooks_of_two_clients_and_many_at_once_store_everything_once(client: ClientFolder):
    records = client.talk(60)
    client.write(records)
    data = json.dumps(client.given("Stop")).encode()
    running = [client.start() for _ in range(4)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
    for process in running:
        assert process.wait(timeout=120) == 0
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            assert stream.read() == b""
            stream.close()
    assert client.stored() == uuids(records)
    assert client.notes() == []


def test_a_hook_that_is_killed_in_the_middle_leaves_what_the_next_one_completes(client: ClientFolder):
    records = client.talk(700)
    client.write(records)
    client.hook("SessionStart", source="startup")
    process = client.start()
    assert process.stdin is not None
    process.stdin.write(json.dumps(client.given("Stop")).encode())
    process.stdin.close()
    reading = sqlite3.connect(client.archive)
    while process.poll() is None and not reading.execute("SELECT 1 FROM source").fetchone():
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    [(before,)] = reading.execute("SELECT count(*) FROM record").fetchall()
    reading.close()
    assert 0 < before < len(records)
    client.hook("Stop")
    assert client.stored() == uuids(records)
    assert client.rows("PRAGMA quick_check") == [("ok",)]


def test_a_start_after_a_compaction_makes_good_what_a_killed_hook_did_not(client: ClientFolder):
    client.write(client.talk(4))
    client.hook("Stop")
    assert RULE in client.hook("SessionStart", source="compact").context
    assert client.rows("SELECT session_id FROM session") == [(SESSION,)]
