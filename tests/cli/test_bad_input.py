from __future__ import annotations

import json
import os

import pytest

from tests.cli.conftest import as_lines, records


def missing(folder):
    return folder / "nowhere.jsonl"


def a_folder(folder):
    return folder


def empty(folder):
    return written(folder, b"")


def blank(folder):
    return written(folder, b"\n\n  \n")


def binary(folder):
    return written(folder, bytes(range(256)) * 40)


def other_json(folder):
    return written(folder, b'{"name": "package", "version": "1.0.0"}')


def no_json(folder):
    return written(folder, b"Dear diary,\ntoday I wrote no JSON.\n")


def foreign(folder):
    return written(folder, b'{"v":1,"agent":"a","cli_version":"1","type":"user","content":[]}')


def written(folder, content):
    path = folder / "input.jsonl"
    path.write_bytes(content)
    return path


BAD = (missing, a_folder, empty, blank, binary, other_json, no_json, foreign)


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["compact", "import", "demo"])
def test_what_is_no_transcript_ends_with_2_a_clear_message_and_nothing_stored(command, archive, tmp_path, name, make):
    path = make(tmp_path)
    done = command(name, str(path))
    assert (done.code, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert first.startswith("mcp-compact: ")
    assert path.name in first
    assert second.startswith("  ")
    if archive.exists():
        assert command("sessions", "--all", "--json").json["sessions"] == []


@pytest.mark.parametrize("words", [["compact", "{}", "--format", "nonsense"], ["import", "{}", "--format", "nonsense"]])
def test_an_unknown_format_says_which_there_are(command, transcript, words):
    done = command(*(word.format(transcript) for word in words))
    assert (done.code, done.out) == (2, "")
    assert "anthropic" in done.err
    assert "claude-code" in done.err


def test_empty_stdin_is_said(program):
    done = program("compact", "-")
    assert (done.code, done.out) == (2, "")
    assert "stdin: " in done.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_named_pipe_does_not_hang(command, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = command("import", str(tmp_path / "pipe"))
    assert done.code == 2
    assert "no plain file" in done.err


@pytest.mark.parametrize("name", ["\x00", "x" * 5000, "x/" * 3000, "~no-such-user-at-all/x", "\ud83d"])
@pytest.mark.parametrize("verb", ["import", "compact"])
def test_a_path_that_cannot_be_is_said(command, verb, name):
    done = command(verb, name)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert 0 < len(done.err) < 1000


@pytest.mark.parametrize("words", [["status"], ["sessions"], ["search", "x"], ["memory"], ["undo", "x"]])
def test_without_an_archive_it_is_said_and_none_is_made(command, archive, words):
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert str(archive) in done.err
    assert "import" in done.err
    assert not archive.parent.exists()


@pytest.mark.parametrize(
    "words", [["status", "nope"], ["memory", "nope"], ["undo", "nope"], ["search", "x", "--session", "nope"]]
)
def test_an_unknown_session_is_said(command, transcript, words):
    command("import", str(transcript))
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert "nope" in done.err
    assert "mcp-compact sessions" in done.err


def cut_off(lines):
    return "".join(lines)[:-40]


def without_call(lines):
    return "".join(line for line in lines if '"toolu_0003", "name"' not in line)


def without_content(lines):
    broken = json.loads(lines[1])
    del broken["message"]["content"]
    return "".join([lines[0], json.dumps(broken) + "\n", *lines[2:]])


@pytest.mark.parametrize("damage", [cut_off, without_call, without_content], ids=lambda damage: damage.__name__)
def test_a_damaged_transcript_is_imported_with_a_warning(command, tmp_path, damage):
    lines = as_lines(records(tmp_path)).splitlines(keepends=True)
    path = written(tmp_path, damage(lines).encode())
    done = command("import", str(path))
    assert done.code == 0
    assert "warning" in done.out
    said = command("import", str(path), "--session", "again", "--json").json
    assert said["warnings"] or said["problems"]
    assert said["messages"] >= len(lines) - 2


@pytest.mark.parametrize("damage", [cut_off, without_call, without_content], ids=lambda damage: damage.__name__)
def test_a_damaged_transcript_compacts_with_a_warning(command, tmp_path, damage):
    lines = as_lines(records(tmp_path)).splitlines(keepends=True)
    path = written(tmp_path, damage(lines).encode())
    done = command("compact", str(path), "--target", "8000")
    assert done.code == 0
    assert "warning" in done.err


def test_a_stray_argument_is_refused_with_the_usage_of_its_command(command):
    ended = command("status", "one", "two", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("usage: mcp-compact status ")
    assert "mcp-compact status: error: unrecognized arguments: two" in ended.err


@pytest.mark.parametrize("words", [("--port", "8765"), ("--host", "127.0.0.1")])
def test_an_address_without_a_network_transport_is_refused_instead_of_waiting_on_stdin(command, words):
    ended = command("serve", *words)
    assert ended.code == 2
    assert "--transport http" in ended.err


@pytest.mark.parametrize("verb", ["resume", "handoff", "rules", "report"])
@pytest.mark.parametrize("name", [".", "folder", "./folder"])
def test_a_folder_in_place_of_a_session_is_said(command, tmp_path, monkeypatch, verb, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = command(verb, name)
    assert done.code == 2
    assert f"{name!r} is a folder, and no session." in done.err
    assert "mcp-compact sessions" in done.err
