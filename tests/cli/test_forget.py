"""`mcp-compact forget`: nothing of what was said stays in the archive's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_compact.cli.main import main

WORD = "zanzibarite"
"""Stands in no other text."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MCP_COMPACT_DB", str(tmp_path / "archive.db"))
    return folder


def transcript(folder: Path, session: str, word: str = WORD, agent: str = "") -> Path:
    lines = [
        {"uuid": f"{session}-{agent}-{n}", "parentUuid": f"{session}-{agent}-{n - 1}" if n else None, "type": role,
         "sessionId": session, "cwd": str(folder), "timestamp": f"2026-01-01T00:00:{n:02}.000Z",
         **({"agentId": agent, "isSidechain": True} if agent else {}),
         "message": {"role": role, "content": f"{word} {n}: always keep {word}."}}
        for n, role in enumerate(("user", "assistant") * 3)
    ]  # fmt: skip
    path = folder / f"{session}{agent}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def stored_bytes(archive: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(archive.parent.glob(archive.name + "*")))


def test_a_session_goes_from_tables_index_and_wal(project: Path, capsys: pytest.CaptureFixture[str]):
    archive = project.parent / "archive.db"
    for session, word in (("mine", WORD), ("other", "harmless")):
        assert main(["import", str(transcript(project, session, word))]) == 0
    assert main(["search", WORD]) == 0
    assert WORD.encode() in stored_bytes(archive)
    capsys.readouterr()
    assert main(["forget", "mine", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forgotten"] == ["mine"]
    assert WORD.encode() not in stored_bytes(archive)
    assert main(["search", "harmless", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"]


def test_a_project_goes_with_its_sub_agents_and_others_stay(project: Path, capsys: pytest.CaptureFixture[str]):
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    assert main(["import", str(transcript(project, "mine"))]) == 0
    assert main(["import", str(transcript(project, "mine", agent="a1"))]) == 0
    assert main(["import", str(transcript(elsewhere, "kept", "harmless"))]) == 0
    capsys.readouterr()
    assert main(["forget", str(project), "--dry-run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (len(shown["would_forget"]), shown["forgotten"]) == (2, [])
    assert main(["forget", str(project), "--yes"]) == 0
    capsys.readouterr()
    assert main(["sessions", "--all", "--json"]) == 0
    assert [line["session_id"] for line in json.loads(capsys.readouterr().out)["sessions"]] == ["kept"]
    assert WORD.encode() not in stored_bytes(project.parent / "archive.db")


def test_nothing_goes_without_a_yes(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["import", str(transcript(project, "mine"))]) == 0
    assert main(["forget", "mine"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert main(["search", WORD]) == 0


@pytest.mark.parametrize("target", ["nobody", "."])
def test_what_there_is_not_is_told(project: Path, target: str, capsys: pytest.CaptureFixture[str]):
    assert main(["import", str(transcript(project.parent, "mine"))]) == 0
    assert main(["forget", target, "--yes"]) == 2
    assert capsys.readouterr().err
