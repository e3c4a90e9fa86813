from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from mcp_compact.cli.clients import CLIENTS, next_step, server_command
from mcp_compact.cli.parser import build_parser


def nothing(_name):
    return None


def only(*names):
    return lambda name: f"/opt/bin/{name}" if name in names else None


@pytest.mark.parametrize(
    ("program", "client"),
    [("claude", "claude-code"), ("codex", "codex"), ("gemini", "gemini-cli"), ("opencode", "opencode"), ("pi", "pi")],
)
def test_a_client_that_we_install_into_gets_a_command_that_can_be_pasted(tmp_path, program, client):
    step = next_step(tmp_path, only(program))
    first, *_, verb, named = shlex.split(step.command)
    assert (verb, named) == ("install", client)
    assert Path(first).is_absolute()
    assert build_parser().parse_args(["install", client]).client == client


def test_a_client_is_found_by_its_folder_alone(tmp_path):
    (tmp_path / ".cursor").mkdir()
    step = next_step(tmp_path, nothing)
    assert step.client == "Cursor"
    words = shlex.split(step.command)
    assert words[-3:] == ["manifest", "cursor", "--write"]
    assert build_parser().parse_args(words[-3:]).write


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
