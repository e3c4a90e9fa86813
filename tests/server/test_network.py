"""The server on a network: both protocol eras, each transport, and a clean end."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.web import Web, command, web

KINDS = {
    "http": ("--transport", "http"),
    "http, stateless": ("--transport", "http", "--stateless"),
    "sse": ("--transport", "sse"),
}


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web"), *KINDS[request.param], "--profile", "full") as running:
        yield running


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_conversation_is_stored_and_read_back_in_both_eras(server: Web, era: str) -> None:
    session = f"session-{era}"
    messages = [{"role": "user", "content": f"what is {n} squared?"} for n in range(5)]
    async with server.client(era) as client:
        stored = await client.call_tool("append_messages", {"messages": messages, "session_id": session})
        assert not stored.is_error
    async with server.client(era) as client:
        read = await client.call_tool("get_messages_after_boundary", {"session_id": session})
    assert "4 squared" in json.dumps(read.structured_content)


async def test_many_connections_share_one_archive(server: Web) -> None:
    for number in range(4):
        async with server.client() as client:
            made = await client.call_tool("create_session", {"session_id": f"shared-{number}"})
            assert not made.is_error
    async with server.client() as client:
        listed = await client.call_tool("list_sessions", {})
    assert all(f"shared-{number}" in json.dumps(listed.structured_content) for number in range(4))


async def test_a_session_has_to_be_named_over_a_network(server: Web) -> None:
    async with server.client() as client:
        refused = await client.call_tool("get_context_status", {})
    assert refused.is_error
    assert "session_id is required" in str(refused.content)


async def test_no_file_is_read_by_path_over_a_network(server: Web) -> None:
    async with server.client() as client:
        refused = await client.call_tool("import_transcript", {"path": "/etc/passwd"})
    assert refused.is_error
    assert "no_roots" in str(refused.content)


def test_health_says_nothing_but_that_it_is_well(server: Web) -> None:
    assert json.loads(server.get("/health").body) == {"status": "ok"}


@pytest.mark.parametrize("path", ["/health", "own", "/nowhere"])
def test_a_foreign_host_or_origin_is_refused_on_every_route(server: Web, path: str) -> None:
    where = server.path if path == "own" else path
    assert server.get(where, {"Host": "evil.example"}).status == 421
    assert server.get(where, {"Origin": "https://evil.example"}).status == 403
    near = (
        f"127.0.0.1.evil.example:{server.port}",
        "127.0.0.1:evil.example",
        "localhost:80@evil.example",
        "[::1]evil:1",
    )
    assert {server.get(where, {"Host": name}).status for name in near} == {421}


def test_this_machine_by_any_of_its_names_and_a_forwarded_port_is_let_in(server: Web) -> None:
    names = ("127.0.0.1", "localhost", "[::1]")
    hosts = [f"{name}{port}" for name in names for port in ("", f":{server.port}", ":9000")]
    assert {server.get("/health", {"Host": name}).status for name in hosts} == {200}
    assert server.get("/health", {"Origin": "http://localhost:9000"}).status == 200


def test_it_ends_cleanly_when_it_is_told_to(tmp_path: Path) -> None:
    with web(tmp_path, "--transport", "http") as running:
        assert running.call("append_messages", {"messages": [], "session_id": "a"}).status == 200
        assert running.stop() == 0
        assert b"Traceback" not in running.stderr


def test_a_port_that_is_taken_is_told_with_the_callers_exit_code(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = command(tmp_path, "serve", "--transport", "http", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "cannot be listened at" in done.stderr
    assert done.stdout == ""


def test_nobody_listens_beyond_this_machine_without_a_token(tmp_path: Path) -> None:
    done = command(tmp_path, "serve", "--transport", "http", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - refused
    assert done.returncode == 2
    assert "token add" in done.stderr
    assert not (tmp_path / "archive.db").exists()
