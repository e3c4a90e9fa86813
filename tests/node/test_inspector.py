"""The Inspector's command line against the server: every transport, every era."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from mcp_compact.server import tool_rows
from tests.node.fetching import run
from tests.server.web import REPO, new_token, web

ERAS = ("legacy", "auto", "modern")
KINDS = {
    "http": ("--transport", "http"),
    "http, stateless": ("--transport", "http", "--stateless"),
    "sse": ("--transport", "sse"),
}
TOOL_FAILED = 5
PATIENCE_MS = "120000"
"""For the start of the server on a busy machine."""
CORE = {name for name, profile, _ in tool_rows() if profile != "full"}


class Target(NamedTuple):
    """Where the server is, as the Inspector takes it."""

    words: tuple[str, ...]
    folder: Path


@pytest.fixture(scope="module", params=["stdio", *KINDS])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("inspector")
    if request.param == "stdio":
        env = {"PYTHONPATH": str(REPO), "MCP_COMPACT_DB": str(folder / "archive.db")}
        given = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        yield Target((*given, sys.executable, "-m", "mcp_compact", "serve"), folder)
        return
    with web(folder, *KINDS[request.param]) as server:
        yield Target((server.url,), folder)


def inspect(
    target: Target, era: str, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return run(
        "inspector",
        "--cli",
        *target.words,
        "--protocol-era",
        era,
        "--format",
        "json",
        "--connect-timeout",
        PATIENCE_MS,
        *words,
        folder=target.folder,
        env=env,
    )


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_listed_and_their_schemas_travel(target, era):
    done = inspect(target, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert {tool["name"] for tool in listed.get("result", listed)["tools"]} == CORE


def test_a_call_is_answered_and_a_bad_one_is_told_by_the_exit_code(target):
    session = f"inspected-{os.urandom(4).hex()}"
    messages = json.dumps([{"role": "user", "content": "what is 7 squared?"}])
    call = ("--method", "tools/call", "--tool-name")
    good = inspect(
        target, "auto", *call, "append_messages", "--tool-arg", f"messages={messages}", f"session_id={session}"
    )
    assert good.returncode == 0, good.stderr
    assert session in good.stdout
    bad = inspect(target, "auto", *call, "get_context_status", "--tool-arg", "session_id=there-is-none")
    assert bad.returncode == TOOL_FAILED, (bad.stdout, bad.stderr)


def test_a_token_opens_the_server_and_without_one_nothing_is_listed(tmp_path):
    token = new_token(tmp_path, "inspector")
    with web(tmp_path, "--transport", "http") as server:
        there = Target((server.url,), tmp_path)
        opened = inspect(there, "auto", "--method", "tools/list", "--header", f"Authorization: Bearer {token}")
        assert opened.returncode == 0, (opened.stderr, server.stderr.decode())
        assert "compact_session" in opened.stdout
        shut = inspect(there, "auto", "--method", "tools/list")
        assert shut.returncode != 0
        assert "compact_session" not in shut.stdout
