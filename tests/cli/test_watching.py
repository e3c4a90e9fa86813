from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import anyio
import pytest

from mcp_compact.cli.watching import CLIENTS, LEFT_ALONE_MS, Watch, _roots, changed_files, look, pass_over_old
from mcp_compact.config import load_settings
from mcp_compact.wiring import open_service
from tests.cli.conftest import REPOSITORY, as_lines, records

SESSION = "5e551011-0000-4000-8000-000000000001"
AT = "2026-11-30T20:00:00.000Z"


def looked(watch, times=1):
    async def work():
        async with open_service(load_settings()) as service:
            for _ in range(times):
                await look(service, watch)

    anyio.run(work)


def test_what_is_new_is_imported_and_nothing_twice(archive, transcript):
    watch = Watch((transcript.parent,), str(transcript.parent))
    looked(watch, times=2)
    assert (watch.records, watch.sessions) == (62, {SESSION})
    items = records(transcript.parent, rounds=31)
    transcript.write_text(as_lines(items), encoding="utf-8")
    looked(watch)
    assert watch.records == len(items) == 64


def test_sessions_of_other_projects_are_left_alone(archive, transcript, tmp_path):
    watch = Watch((transcript.parent,), str(tmp_path / "another"))
    looked(watch)
    assert (watch.records, watch.foreign) == (0, {transcript})


def test_gemini_clis_chats_are_told_by_the_folder_that_is_written_above_them(archive, tmp_path):
    project, others = tmp_path / "project", tmp_path / "others"
    for name, folder in (("a", project), ("b", others)):
        chats = tmp_path / "tmp" / name / "chats"
        chats.mkdir(parents=True)
        (chats.parent / ".project_root").write_text(str(folder))
        lines = [
            {"sessionId": f"session-{name}", "projectHash": "x", "startTime": AT, "lastUpdated": AT},
            {"id": "1", "timestamp": AT, "type": "user", "content": [{"text": "Look."}]},
        ]
        (chats / f"session-{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    watch = Watch((tmp_path / "tmp",), str(project))
    looked(watch)
    assert watch.sessions == {"session-a"}
    assert [path.name for path in watch.foreign] == ["session-b.jsonl"]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_that_is_named_has_its_folders(client):
    assert list(_roots([client], everywhere=True))


def test_a_file_that_was_named_is_taken_whatever_its_project(archive, transcript, tmp_path):
    watch = Watch((transcript,), str(tmp_path / "another"))
    looked(watch)
    assert watch.records == 62


def test_old_files_are_left_alone_until_they_change(archive, transcript):
    watch = Watch((transcript.parent,), "")
    old_s = time.time() - 2 * LEFT_ALONE_MS / 1000
    os.utime(transcript, (old_s, old_s))
    pass_over_old(watch, int(time.time() * 1000))
    assert changed_files(watch) == []
    transcript.write_text(as_lines(records(transcript.parent, rounds=31)), encoding="utf-8")
    assert [path for path, _ in changed_files(watch)] == [transcript]


def test_what_cannot_be_read_is_said_once_and_the_rest_goes_on(archive, transcript, capfd):
    broken = transcript.parent / "a_broken.jsonl"
    broken.write_text("no json at all\n")
    watch = Watch((transcript.parent,), "")
    looked(watch, times=2)
    assert watch.records == 62
    assert capfd.readouterr().err.count("a_broken.jsonl") == 1


def test_once_looks_once(command, transcript, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    done = command("watch", str(transcript), "--once")
    assert done.code == 0
    assert done.out == ""
    assert "62 records of 1 session imported" in done.err


def test_a_path_that_is_not_there_is_said(command):
    done = command("watch", "no/such/folder", "--once")
    assert done.code == 2
    assert "no/such/folder" in done.err


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan", "1e9"])
def test_seconds_are_seconds(command, seconds):
    assert command("watch", "--every", seconds, "--once").code == 2


@pytest.mark.e2e
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(archive, transcript, sent):
    words = [sys.executable, "-m", "mcp_compact", "watch", str(transcript), "--every", "0.1"]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr.readline, "")
        assert any("62 new records" in line for line in lines)
        running.send_signal(sent)
        _, rest = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "62 records of 1 session imported." in rest
    assert json.dumps(rest)
