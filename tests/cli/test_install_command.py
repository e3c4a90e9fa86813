from __future__ import annotations

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
        "That would change 1 file. Nothing was changed." in program("uninstall", "opencode", "--dry-run", env=env).out
    )


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]
