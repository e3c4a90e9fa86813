from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from mcp_compact.cli.clients import CLIENTS, next_step, server_command


def nothing(_name):
    return None


def only(*names):
    return lambda name: f"/opt/bin/{name}" if name in names else None


@pytest.mark.parametrize(
    ("program", "begins"),
    [
        ("claude", "claude mcp add --scope user mcp-compact -- "),
        ("codex", "codex mcp add mcp-compact -- "),
        ("gemini", "gemini mcp add -s user mcp-compact "),
    ],
)
def test_a_client_with_a_command_gets_one_that_can_be_pasted(tmp_path, program, begins):
    step = next_step(tmp_path, only(program))
    assert step.command.startswith(begins)
    assert shlex.split(step.command)[-1] == "serve"
    assert any(Path(word).is_absolute() for word in shlex.split(step.command))


def test_a_client_is_found_by_its_folder_alone(tmp_path):
    (tmp_path / ".cursor").mkdir()
    step = next_step(tmp_path, nothing)
    assert step.client == "Cursor"
    assert json.loads(step.command)["mcpServers"]["mcp-compact"]["args"][-1] == "serve"


def test_a_program_counts_more_than_a_folder_and_the_others_are_named(tmp_path):
    (tmp_path / ".claude").mkdir()
    step = next_step(tmp_path, only("codex"))
    assert (step.client, step.others) == ("Codex", ("Claude Code",))


def test_without_any_client_there_is_an_entry_for_all(tmp_path):
    step = next_step(tmp_path, nothing)
    assert step.client == ""
    entry = json.loads(step.command)["mcpServers"]["mcp-compact"]
    assert [entry["command"], *entry["args"]] == server_command(nothing)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_path_with_blanks_survives_in_every_command(client):
    command = client.command(["/a folder/mcp-compact", "serve"])
    if command.startswith("{"):
        assert "/a folder/mcp-compact" in json.dumps(json.loads(command))
    else:
        assert "/a folder/mcp-compact" in " ".join(shlex.split(command))


def test_the_server_is_started_by_an_absolute_path(tmp_path):
    first, *rest = server_command(nothing)
    assert Path(first).is_absolute()
    assert rest[-1] == "serve"
