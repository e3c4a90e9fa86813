"""A stand-in program takes the client's part here; tests/cli/test_real_clients.py runs the client itself."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.conftest import as_lines, records

KEY = "sk-ant-" + "api03-" + "Zx8Qw2" * 8 + "-aA9kLm"
SESSION = "5e551011-0000-4000-8000-000000000001"
STAND_IN = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
pathlib.Path({seen!r}).write_text(json.dumps([words, str(pathlib.Path.cwd())]))
mode = {mode!r}
if mode == "fails":
    print("API Error: the key " + {key!r} + " is wrong", file=sys.stderr)
    sys.exit(1)
if mode == "says":
    print(json.dumps({{"type": "result", "is_error": True, "result": "Not enough messages to compact."}}))
    sys.exit(0)
if mode == "compacts":
    meta = {{"trigger": "manual", "preTokens": 90000, "postTokens": 4000}}
    lines = [
        {{"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None, "sessionId": {session!r},
          "logicalParentUuid": {last!r}, "compactMetadata": meta, "timestamp": "2026-01-02T00:00:00.000Z"}},
        {{"type": "user", "uuid": "s1", "parentUuid": "b1", "sessionId": {session!r}, "isCompactSummary": True,
          "isVisibleInTranscriptOnly": True, "timestamp": "2026-01-02T00:00:01.000Z",
          "message": {{"role": "user", "content": "The summary."}}}},
    ]
    with open({transcript!r}, "a") as stream:
        stream.write("".join(json.dumps(line) + "\\n" for line in lines))
print(json.dumps({{"type": "result", "is_error": False, "result": ""}}))
"""


@pytest.fixture
def own(tmp_path, monkeypatch, transcript):
    """The session among Claude Code's own, in a home directory of its own."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    cwd = transcript.parent
    path = home / ".claude" / "projects" / str(cwd).replace("/", "-").replace("_", "-") / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(transcript.read_bytes())
    monkeypatch.chdir(cwd)
    return path


@pytest.fixture
def client(tmp_path, monkeypatch, own):
    """Put a stand-in for the client on the path; what it was started with is read with the answer's `seen()`."""
    seen = tmp_path / "seen.json"

    def install(mode):
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "claude"
        text = STAND_IN.format(
            python=sys.executable, seen=str(seen), mode=mode, key=KEY, transcript=str(own), session=SESSION,
            last=records(own.parent)[-1]["uuid"],
        )  # fmt: skip
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    install.seen = lambda: json.loads(seen.read_text())  # type: ignore[attr-defined]
    return install


def test_the_client_compacts_with_the_lines_that_must_be_kept(command, client, transcript):
    client("compacts")
    answer = command("now", SESSION[:8], "--json").json
    assert (answer["status"], answer["tokens_before"], answer["tokens_after"]) == ("compacted", 90_000, 4_000)
    words, cwd = client.seen()
    assert words[0] == "-p"
    assert words[1].startswith("/compact ")
    assert "Never touch the folder vendor/." in words[1]
    assert words[2:] == ["--resume", SESSION, "--output-format", "json"]
    assert cwd == str(transcript.parent)


def test_a_rule_with_a_nul_in_it_is_passed_without(command, client, own, transcript):
    items = records(transcript.parent)
    for item in items[:1]:
        item["message"]["content"] = "Never touch the\0folder vendor/."
    own.write_text(as_lines(items), encoding="utf-8")
    client("compacts")
    assert command("now", SESSION).code == 0
    assert "\0" not in client.seen()[0][1]
    assert "folder vendor/." in client.seen()[0][1]


def test_people_are_told_what_happened(command, client):
    client("compacts")
    done = command("now", SESSION)
    assert "90.0k -> 4.0k tokens by its own count" in done.out
    assert f"claude --resume {SESSION}" in done.out


def test_where_nothing_was_compacted_that_is_said(command, client):
    client("idle")
    done = command("now", SESSION)
    assert done.code == 0
    assert "no new compaction" in done.out


@pytest.mark.parametrize(("mode", "words"), [("fails", "API Error"), ("says", "Not enough messages to compact.")])
def test_what_the_client_said_is_passed_on_without_secrets(command, client, mode, words):
    client(mode)
    done = command("now", SESSION)
    assert done.code == 2
    assert words in done.err
    assert KEY not in done.err
    assert f"mcp-compact resume {SESSION}" in done.err


def test_a_client_that_is_not_installed_is_said(command, own, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = command("now", SESSION)
    assert done.code == 2
    assert "Claude Code is not installed" in done.err


def test_a_session_of_another_client_cannot_be_compacted_so(command, client, own):
    client("compacts")
    command("import", str(own))
    own.unlink()
    done = command("now", SESSION)
    assert done.code == 2
    assert "holds no session" in done.err
