"""The plugin in a home whose name ends every kind of quotes."""

from __future__ import annotations

import json

import pytest

from tests.e2e.claude import Claude
from tests.e2e.conftest import program_of
from tests.e2e.endpoint import Model, Rule, whole_text


@pytest.fixture
def odd_claude(model: Model, tmp_path) -> Claude:
    base = tmp_path / 'it\'s "all" $x `y` z'
    for name in ("home", "project"):
        (base / name).mkdir(parents=True)
    return Claude(program_of("claude"), base / "home", base / "project", model)


def test_commands_hooks_and_server_run_from_a_home_of_any_name(odd_claude):
    assert odd_claude.ours_json("install", "claude-code")["changed"]
    odd_claude.model.script(Rule(""))
    asked = json.loads(odd_claude.run("-p", "Never touch the folder vendor/.", "--output-format", "json").stdout)
    assert odd_claude.holds_all(asked["session_id"])
    done = json.loads(
        odd_claude.run("-p", "/mcp-compact:rules", "--output-format", "json", "--resume", asked["session_id"]).stdout
    )
    assert not done["is_error"]
    told = whole_text(odd_claude.model.requests[-1])
    assert "command not found" not in json.dumps(done) + told
    assert "Rules of session" in told
    assert "connected" in odd_claude.run("mcp", "list").stdout.lower()
