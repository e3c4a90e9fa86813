"""`mcp-compact import` with folders, several files, and files of several conversations."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.sqlite.test_disks import ROOT, needs_mounts
from tests.transcripts.foreign import WRITERS, Call, Turn

TALK = [Turn("Rename the gauges.", (("I look.", (Call("read", {"path": "a.py"}, "x = 1"),)),))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions of three harnesses, beside files that are none."""
    place = tmp_path / "sessions"
    (place / "below").mkdir(parents=True)
    (place / ".hidden").mkdir()
    (place / "one.json").write_bytes(WRITERS["gemini-cli"](TALK))
    (place / "below" / "two.jsonl").write_bytes(WRITERS["pi"](TALK).replace(b'"s"', b'"s2"'))
    (place / "below" / "three.json").write_bytes(WRITERS["langchain"](TALK))
    (place / ".hidden" / "four.json").write_bytes(WRITERS["gemini"](TALK))
    (place / "package.json").write_text('{"name":"x"}')
    (place / "notes.md").write_text("# Notes")
    return place


def test_a_folder_is_imported_and_summed_up(command, folder: Path):
    done = command("import", str(folder))
    assert done.code == 0
    assert "Imported 3 files: 10 messages in 3 sessions" in done.out
    assert "Sessions by format: " in done.out
    assert all(f"1 {name}" in done.out for name in ("gemini-cli", "pi", "langchain"))
    assert "1 file left out:" in done.out
    assert "package.json: This is JSON, but no transcript that is known." in done.out
    assert "notes.md" not in done.out


def test_what_is_known_is_skipped(command, folder: Path):
    command("import", str(folder))
    again = command("import", str(folder))
    assert "Nothing new: the archive holds all of 3 files, 3 sessions." in again.out
    assert (
        "Nothing new: the archive holds all of this file (pi)."
        in command("import", str(folder / "below" / "two.jsonl")).out
    )
    (folder / "five.json").write_bytes(WRITERS["gemini"](TALK))
    assert "3 files held nothing new." in command("import", str(folder)).out


def test_what_was_left_out_is_told_once_for_each_reason_by_its_place_in_the_folder(command, folder: Path):
    for number in range(5):
        (folder / "below" / f"{number}.json").write_text('{"name":"x"}')
    (folder / "unfinished.json").write_text('{"messages": [{"role": "user", "content": "Hel')
    done = command("import", str(folder))
    assert "7 files left out:" in done.out
    assert "  package.json, below/0.json, below/1.json and 3 more: This is JSON, but no transcript" in done.out
    assert "  unfinished.json: The file is not valid JSON" in done.out


def test_lines_that_cannot_be_read_and_what_has_no_meaning_are_told_with_their_places(command, folder: Path):
    two = folder / "below" / "two.jsonl"
    novel = b"".join(b'{"type":"novel %d","id":"n%d"}\n' % (number, number) for number in range(12))
    two.write_bytes(two.read_bytes() + b'{"type":"message","id":"x"\n' + novel)
    done = command("import", str(folder))
    assert "1 line could not be read:\n  below/two.jsonl: line 5: " in done.out
    assert "Kept, but without meaning here: 1 novel 0, " in done.out
    assert "1 novel 7 and 2 more kinds." in done.out
    alone = command("import", str(two), "--session", "alone", "--json").json
    assert alone["not_understood"]["novel 11"] == 1
    assert "line 6: not understood: novel 0" in alone["warnings"]


def test_hidden_folders_are_read_only_when_they_are_named(command, folder: Path):
    done = command("import", str(folder / ".hidden"))
    assert "Imported 1 file: 3 messages in 1 session" in done.out


def test_each_result_is_there_as_json(command, folder: Path):
    found = command("import", str(folder), "--json").json["files"]
    by_name = {Path(item["path"]).name: item for item in found}
    assert [result["format"] for result in by_name["one.json"]["results"]] == ["gemini-cli"]
    assert by_name["package.json"]["results"] == []
    assert "no transcript" in by_name["package.json"]["error"]


def test_a_file_that_was_named_and_cannot_be_read_fails_and_the_others_are_imported(command, folder: Path):
    done = command("import", str(folder / "one.json"), str(folder / "package.json"))
    assert done.code == 1
    assert "Imported 1 file" in done.out


def test_each_line_that_is_a_conversation_becomes_a_session(command, tmp_path: Path):
    def line(word: str) -> str:
        return json.dumps({"messages": [{"role": "user", "content": word}, {"role": "assistant", "content": "Yes."}]})

    file = tmp_path / "runs.jsonl"
    file.write_text(line("First?") + "\n\n" + line("Second?") + "\n")
    done = command("import", str(file))
    assert done.code == 0
    assert "4 messages in 2 sessions" in done.out
    assert command("import", str(file), "--json").json["files"][0]["results"][1]["session_id"] == "runs-3"


def test_a_line_of_conversations_that_is_none_is_told_and_the_others_are_imported(command, tmp_path: Path):
    talk = json.dumps({"messages": [{"role": "user", "content": "First?"}, {"role": "assistant", "content": "Yes."}]})
    file = tmp_path / "runs.jsonl"
    file.write_text(talk + "\n" + talk + "\n" + talk[:40])
    done = command("import", str(file))
    assert done.code == 0
    assert "4 messages in 2 sessions" in done.out
    assert "1 line could not be read:" in done.out
    assert "line 3: The file is not valid JSON" in done.out


def test_a_whole_history_is_read_only_when_it_is_asked_for_by_name(command, tmp_path: Path, monkeypatch):
    home = tmp_path / "claude"
    session = {"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "Hello"}}
    (home / "projects" / "app").mkdir(parents=True)
    (home / "projects" / "app" / "s.jsonl").write_text(json.dumps(session) + "\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    refused = command("import")
    assert refused.code != 0
    assert "--history" in refused.err
    done = command("import", "--history", "claude-code")
    assert done.code == 0
    assert "Imported 1 file: 1 message in 1 session" in done.out


def test_an_unknown_client_is_refused_with_those_that_are_known(command):
    refused = command("import", "--history", "someone")
    assert refused.code != 0
    assert "claude-code" in refused.err


def test_a_session_id_is_for_one_file(command, folder: Path):
    refused = command("import", str(folder), "--session", "mine")
    assert refused.code != 0
    assert "--session" in refused.err
    assert command("import", str(folder / "one.json"), "--session", "mine", "--json").json["session_id"] == "mine"


def test_the_sum_counts_sessions_by_one_unit(command, tmp_path: Path, transcript):
    """A session of sub-agents, one that two files hold, and a file of two conversations."""
    place = transcript.parent
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    own = lines[0]["sessionId"]
    agents = place / own / "subagents"
    agents.mkdir(parents=True)
    agent = [{**line, "isSidechain": True, "agentId": "a1b2"} for line in lines[:1]]
    (agents / "agent-a1b2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in agent))
    (place / "again.jsonl").write_bytes(transcript.read_bytes())
    (place / "chat.jsonl").write_text(
        "".join(json.dumps({"messages": [{"role": "user", "content": word}]}) + "\n" for word in ("one", "two"))
    )
    done = command("import", str(place))
    whole = re.search(r"in (\d+) sessions", done.out)
    parts = re.search(r"Sessions by format: (.*)\.", done.out)
    assert whole
    assert parts
    assert sum(int(part.split()[0]) for part in parts[1].split(", ")) == int(whole[1]) == 4


@needs_mounts
def test_on_a_disk_that_fills_up_what_was_stored_is_told_and_the_import_goes_on_from_there(tmp_path: Path, transcript):
    disk = tmp_path / "disk"
    disk.mkdir()
    text = transcript.read_text()
    for number in range(40):
        own = transcript.with_name(f"{number:02d}.jsonl")
        own.write_text(text.replace("5e551011", f"5e5510{number:02d}"))
    transcript.unlink()
    program = f"{sys.executable} -m mcp_compact"
    script = f"""
    mount -t tmpfs -o size=3m none "$1"
    export MCP_COMPACT_DB="$1/a.db"
    {program} import "$2" && exit 9
    {program} sessions --all --json
    mount -o remount,size=60m "$1"
    {program} import "$2" >&2
    """
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(disk), str(transcript.parent)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stored = json.loads(done.stdout)["sessions"]
    messages = sum(line["messages"] for line in stored)
    assert stored
    assert f"Stored so far, and kept: {len(stored)} session" in done.stderr
    assert f"with {messages:,} messages. Free some space, then import the same again" in done.stderr
    assert "Nothing was stored" not in done.stderr
    assert "in 40 sessions" in done.stderr


def pasted(said: str, name: str) -> str:
    """The last word of a command that is named, as a shell would take it."""
    [command] = re.findall(rf"(mcp-compact {name} .*?)(?:`|$)", said, re.MULTILINE)
    return shlex.split(command)[2]


@pytest.mark.parametrize("odd", ["it is", "two  blanks", "a;b", "it's $HOME", "plain"])
def test_a_command_that_is_named_can_be_pasted(command, archive: Path, tmp_path: Path, odd):
    place = tmp_path / odd
    place.mkdir()
    path = place / "one.jsonl"
    path.write_bytes(WRITERS["pi"](TALK).replace(b'"s"', json.dumps(f"s {odd}").encode()))
    assert pasted(command("import", str(path)).out, "status") == f"s {odd}"
    export, backup, saved = (str(place / name) for name in ("s.raw", "b.db", "r.db"))
    assert pasted(command("export", f"s {odd}", "--raw", "-o", export).out, "import") == export
    assert pasted(command("backup", backup).out, "restore") == backup
    assert pasted(command("rescue", "-o", saved).out, "restore") == saved
    refused = place / "bad.json"
    refused.write_text('[{"role": "assistant", "content": null}, {"role": "user", "content": "go"}]')
    assert pasted(command("validate", str(refused), "--provider", "openai-chat").out, "validate") == str(refused)
    brief = command("handoff", f"s {odd}").out
    assert shlex.split(brief[brief.index("mcp-compact search") :].split(" WORDS")[0])[3] == f"s {odd}"
    assert archive.exists()


def test_after_an_export_of_several_sessions_the_list_of_them_is_named(command, archive: Path, folder: Path, tmp_path):
    command("import", str(folder))
    export = tmp_path / "all.raw"
    assert command("export", "--all", "--raw", "-o", str(export)).code == 0
    archive.unlink()
    done = command("import", str(export))
    assert "Imported 3 sessions" in done.out
    assert "Next: mcp-compact sessions --all" in done.out
