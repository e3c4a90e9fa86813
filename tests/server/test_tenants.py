"""Bearer tokens: each opens its own tenant's sessions, in every tool, and nothing else."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.server.web import WAIT_S, Web, command, new_token, web

SECRET = "the launch code is 0000-zebra"
CALLERS = 8


class Site(NamedTuple):
    """A server that two tenants use."""

    web: Web
    ann: str
    bob: str


@pytest.fixture(scope="module", params=["http", "sse"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    ann, bob = new_token(folder, "ann"), new_token(folder, "bob")
    with web(folder, "--transport", request.param, "--profile", "full") as running:
        yield Site(running, ann, bob)


def test_without_a_good_token_nothing_is_answered(site: Site) -> None:
    method, body = ("GET", None) if site.web.path == "/sse" else ("POST", b"{}")
    for header in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}, {"Authorization": ""}):
        refused = site.web.request(method, site.web.path, body, {"Content-Type": "application/json", **header})
        assert refused.status == 401
        assert "www-authenticate" in refused.headers


def test_nobody_waits_for_the_body_of_a_caller_without_a_token(site: Site) -> None:
    path = "/messages/?session_id=0123456789abcdef0123456789abcdef" if site.web.path == "/sse" else site.web.path
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.web.port}\r\nContent-Length: 1000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.web.port), timeout=WAIT_S) as own:
        own.sendall(head.encode())
        assert b" 401 " in own.recv(4_096)


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_another_tenants_session_is_unknown_to_every_tool(site: Site, era: str) -> None:
    if site.web.path == "/sse" and era == "auto":
        pytest.skip("SSE is for clients of the older protocols")
    session = f"plans-{era}"
    message = {"role": "user", "content": SECRET}
    async with site.web.client(era, site.ann) as client:
        stored = await client.call_tool("append_messages", {"messages": [message], "session_id": session})
        assert not stored.is_error
        uuid = (stored.structured_content or {})["uuids"][0]
    own: dict[str, Any] = {"session_id": session}
    calls = {
        "append_messages": own | {"messages": [{"role": "user", "content": "mine"}]},
        "search_messages": {"query": "zebra"},
        "get_original": own | {"id": uuid},
        "snip_messages": own | {"uuids": uuid},
        "update_session_memory": own | {"text": "# Memory\n\nx"},
        "pin_instruction": own | {"text": "x"},
        "unpin": own | {"name": "x"},
        "submit_summary": {"compaction_id": "x", "summary": "y"},
        "apply_plan": own | {"plan_id": "x"},
        "fork_session": own,
        "import_transcript": {"content": json.dumps([{"role": "user", "content": "hers"}]), "session_id": "other"},
    }
    async with site.web.client(era, site.bob) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        for name in names:
            answer = await client.call_tool(name, calls.get(name, own))
            if name not in ("append_messages", "import_transcript"):
                assert SECRET not in answer.model_dump_json(), name
    async with site.web.client(era, site.ann) as client:
        read = await client.call_tool("get_messages_after_boundary", own)
    assert SECRET in json.dumps(read.structured_content)
    assert "mine" not in json.dumps(read.structured_content)


def test_a_token_is_kept_as_its_hash_alone(site: Site) -> None:
    kept = b"".join(path.read_bytes() for path in site.web.folder.glob("archive.db*"))
    assert site.ann.encode() not in kept
    assert site.ann.encode() not in site.web.stderr


def test_a_revoked_token_opens_nothing_from_the_next_request_on(tmp_path: Path) -> None:
    token = new_token(tmp_path, "guest")
    with web(tmp_path, "--transport", "http") as running:
        bearer = {"Authorization": f"Bearer {token}"}
        call = ("get_context_status", {"session_id": "x"}, bearer)
        assert running.call(*call).status == 200
        assert command(tmp_path, "token", "revoke", "guest").returncode == 0
        assert running.call(*call).status == 401


def until_tokens(running: Web) -> set[int]:
    """Ask for its health, each time anew, until it serves those with a token; the statuses."""
    guard, statuses = time.monotonic() + WAIT_S, set[int]()
    while b"with a bearer token" not in running.stderr:
        assert time.monotonic() < guard, running.stderr.decode()
        statuses.add(running.get("/health").status)
    return statuses


def test_a_first_token_is_needed_at_once_of_a_server_that_asked_nobody(tmp_path: Path) -> None:
    with web(tmp_path, "--transport", "http") as running:
        known = {"messages": [{"role": "user", "content": "made while it was open"}], "session_id": "x"}
        assert running.call("append_messages", known).status == 200
        token = new_token(tmp_path, "owner", "--namespace", "local")
        # It goes on where it listens: whoever calls meanwhile waits, and is not turned away.
        with ThreadPoolExecutor(CALLERS) as callers:
            answers = [each.result() for each in [callers.submit(until_tokens, running) for _ in range(CALLERS)]]
        assert set().union(*answers) == {200}
        assert running.call("get_context_status", {"session_id": "x"}).status == 401
        mine = running.call("get_context_status", {"session_id": "x"}, {"Authorization": f"Bearer {token}"})
        assert (mine.status, b'"live_messages":1' in mine.body) == (200, True)
        assert running.stop() == 0


def test_a_token_ends_with_its_time(tmp_path: Path) -> None:
    token = new_token(tmp_path, "guest", "--days", "1")
    connection = sqlite3.connect(tmp_path / "archive.db")
    connection.execute("UPDATE token SET expires_ms = created_ms")
    connection.commit()
    connection.close()
    with web(tmp_path, "--transport", "http") as running:
        answer = running.call("get_context_status", {"session_id": "x"}, {"Authorization": f"Bearer {token}"})
        assert answer.status == 401


def test_limits_of_a_tenant_are_held(tmp_path: Path) -> None:
    bearer = {"Authorization": f"Bearer {new_token(tmp_path, 'small')}"}
    limits = {"MCP_COMPACT_HTTP_MAX_SESSIONS": "2", "MCP_COMPACT_HTTP_MAX_MESSAGE_MB": "1"}
    with web(tmp_path, "--transport", "http", env=limits) as running:

        def append(session: str, text: str) -> str:
            messages = [{"role": "user", "content": text}]
            answer = running.call("append_messages", {"messages": messages, "session_id": session}, bearer)
            assert answer.status == 200
            return answer.body.decode()

        assert "message_too_large" in append("one", "x" * (1 << 20))
        assert "stored" in append("one", "hello")
        assert "stored" in append("two", "hello")


def test_requests_a_minute_are_limited(tmp_path: Path) -> None:
    bearer = {"Authorization": f"Bearer {new_token(tmp_path, 'eager')}"}
    with web(tmp_path, "--transport", "http", env={"MCP_COMPACT_HTTP_CALLS_PER_MINUTE": "5"}) as running:
        answers = [running.call("get_context_status", {"session_id": "x"}, bearer) for _ in range(8)]
        assert 429 in [answer.status for answer in answers]
        refused = next(answer for answer in answers if answer.status == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert running.get("/health").status == 200


class TestTokenCommand:
    def test_names_are_unique_until_they_are_revoked(self, tmp_path: Path) -> None:
        new_token(tmp_path, "ann")
        again = command(tmp_path, "token", "add", "bob", "ann")
        assert again.returncode == 2
        listed = json.loads(command(tmp_path, "token", "list", "--json").stdout)["tokens"]
        assert [token["name"] for token in listed] == ["ann"]
        assert command(tmp_path, "token", "revoke", "ann").returncode == 0
        new_token(tmp_path, "ann")

    def test_many_are_made_and_revoked_at_once(self, tmp_path: Path) -> None:
        made = command(tmp_path, "token", "add", "agent", "--count", "12", "--namespace", "team", "--json")
        tokens = json.loads(made.stdout)["tokens"]
        assert [token["name"] for token in tokens][:2] == ["agent-01", "agent-02"]
        assert len({token["token"] for token in tokens}) == 12
        revoked = command(tmp_path, "token", "revoke", "--namespace", "team", "--json")
        assert len(json.loads(revoked.stdout)["revoked"]) == 12

    @pytest.mark.parametrize(
        "arguments",
        [["add", ""], ["add", "a\nb"], ["add", "x", "--namespace", "signed:eve"], ["revoke"], ["revoke", "no"]],
    )
    def test_bad_requests_change_nothing(self, tmp_path: Path, arguments: list[str]) -> None:
        done = command(tmp_path, "token", *arguments)
        assert done.returncode == 2
        assert done.stderr
        assert json.loads(command(tmp_path, "token", "list", "--json").stdout)["tokens"] == []
