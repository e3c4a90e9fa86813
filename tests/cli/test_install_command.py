from __future__ import annotations

import json
import os

import pytest


@pytest.mark.process
def test_the_whole_command_tests_itself_installs_and_takes_back(tmp_path, program):
    home = tmp_path / "a person's home"
    home.mkdir()
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    dry = program("install", "claude-code", "--dry-run", "--json", env=env).json
    assert (dry["changed"], files(home)) == (False, [])
    done = program("install", "claude-code", "--json", env=env).json
    assert done["changed"]
    assert {check["name"]: check["ok"] for check in done["checks"]} | {"client": True} == dict.fromkeys(
        ("client", "server", "hook"), True
    )
    again = program("install", "claude-code", env=env)
    assert "Installed already: nothing was changed." in again.out
    back = program("uninstall", "claude-code", env=env)
    assert back.code == 0
    assert files(home) == []
    nothing = program("uninstall", "claude-code", env=env)
    assert "not installed there" in nothing.out


@pytest.mark.process
def test_a_client_without_our_slash_commands_is_not_told_of_them(tmp_path, program):
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = program("install", "opencode", env=env)
    assert "Start a new session of the client.\n" in done.out
    assert "/mcp-compact status" not in done.out
    assert (
        "That would change 2 files. Nothing was changed." in program("uninstall", "opencode", "--dry-run", env=env).out
    )


@pytest.mark.process
def test_what_an_environment_holds_is_not_shown(tmp_path, program):
    path = tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    mine = {"command": "mine", "env": {"TOKEN": "correct horse"}, "headers": {"x": "battery staple"}}
    path.write_text(json.dumps({"mcpServers": {"mcp-compact": mine}}))
    done = program("install", "gemini-cli", "--dry-run", env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert '"env": {"TOKEN": "***"}, "headers": {"x": "***"}' in done.out
    assert "correct horse" not in done.out
    assert "battery staple" not in done.out


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]
