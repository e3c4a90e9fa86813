"""The packages for clients, checked by the clients' own tools."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.node.fetching import run
from tools import manifests

FOLDER = Path(__file__).resolve().parents[2] / "manifests"


def test_the_bundle_for_claude_desktop_is_valid_and_packs(tmp_path):
    folder, packed = tmp_path / "bundle", tmp_path / "mcp-compact.mcpb"
    assert manifests.main(["--bundle", str(folder)]) == 0
    valid = run("mcpb", "validate", str(folder / "manifest.json"), folder=tmp_path)
    assert valid.returncode == 0, valid.stdout + valid.stderr
    done = run("mcpb", "pack", str(folder), str(packed), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
        assert json.loads(archive.read("manifest.json"))["name"] == "mcp-compact"
    assert {"pyproject.toml", "mcp_compact/__main__.py", "mcp_compact/server/app.py", "LICENSE", "icon.png"} <= names
    committed = run("mcpb", "validate", str(FOLDER / "claude-desktop" / "mcpb" / "manifest.json"), folder=tmp_path)
    assert committed.returncode == 0, committed.stdout + committed.stderr


def test_what_is_no_manifest_is_refused_by_the_same_check(tmp_path):
    made = json.loads((FOLDER / "claude-desktop" / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
    del made["server"]
    (tmp_path / "manifest.json").write_text(json.dumps(made))
    assert run("mcpb", "validate", str(tmp_path / "manifest.json"), folder=tmp_path).returncode != 0


@pytest.mark.parametrize("break_it", [False, True])
def test_the_extension_for_gemini_cli_is_valid(break_it, tmp_path):
    folder = tmp_path / "extension"
    folder.mkdir()
    made = json.loads((FOLDER / "gemini-cli" / "extension" / "gemini-extension.json").read_text(encoding="utf-8"))
    if break_it:
        del made["name"]
    (folder / "gemini-extension.json").write_text(json.dumps(made))
    done = run("gemini", "extensions", "validate", str(folder), folder=tmp_path)
    assert (done.returncode == 0) is not break_it, done.stdout + done.stderr
    assert ("successfully validated" in done.stdout + done.stderr) is not break_it
