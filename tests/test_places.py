"""Where things lie, by the environment: what a hook asks, and what the settings agree with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_compact import places
from mcp_compact.config import load_settings


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"MCP_COMPACT_DB": "/data/a.db"},
        {"MCP_COMPACT_DB": "~/a.db"},
        {"MCP_COMPACT_DB": "  "},
        {"MCP_COMPACT_DB": "~nobody-at-all/a.db"},
        {"XDG_DATA_HOME": "/data"},
        {"XDG_DATA_HOME": "relative"},
    ],
)
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_hooks_and_settings_mean_the_same_archive(environ: dict[str, str], system: str, monkeypatch):
    monkeypatch.setattr("sys.platform", system)
    assert places.database(environ) == str(load_settings(environ).db)


def test_a_switch_file_counts_for_the_folders_below_it(tmp_path: Path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    archive = str(tmp_path / "data" / "archive.db")
    assert not places.is_off(str(inner), archive)
    (tmp_path / "a" / places.SWITCH).touch()
    assert places.is_off(str(inner), archive)
    assert not places.is_off(str(tmp_path), archive)
    assert not places.is_off("", archive)
    assert not places.is_off("a/b", archive)


def test_the_switch_beside_the_archive_counts_everywhere(tmp_path: Path):
    (tmp_path / places.SWITCH_ALL).touch()
    assert places.is_off("", str(tmp_path / "archive.db"))


def test_transcripts_are_read_in_the_clients_folders_and_where_the_settings_allow(tmp_path: Path):
    folder = tmp_path / "client" / "projects"
    folder.mkdir(parents=True)
    inside, outside = folder / "s.jsonl", tmp_path / "client" / "projects-of-others" / "s.jsonl"
    outside.parent.mkdir()
    for path in (inside, outside):
        path.touch()
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path / "client")}
    assert places.readable_transcript(str(inside), environ) == str(inside.resolve())
    assert places.readable_transcript(str(outside), environ) == ""
    assert places.readable_transcript(str(folder), environ) == ""
    assert places.may_be_read(str(folder / "later.jsonl"), environ)
    assert places.readable_transcript(str(folder / "later.jsonl"), environ) == ""
    allowed = environ | {"MCP_COMPACT_ROOTS": os.pathsep.join(["relative", str(outside.parent), " "])}
    assert places.readable_transcript(str(outside), allowed) == str(outside.resolve())


@pytest.mark.parametrize(("text", "pid"), [("123", 123), ("", 0), ("-1", 0), ("1e3", 0), ("\u0661", 0), ("9" * 30, 0)])
def test_a_client_states_its_process_as_a_number(text: str, pid: int):
    assert places.stated_client({"CLAUDE_PID": text}) == pid
