"""A damaged archive over MCP: each call says so and what to do, and the server lives on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server
from tests.server.talk import assistant, call, text_of, user


def _beginning(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def _pages(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


def _message(path: Path) -> None:
    conn = sqlite3.connect(path)
    conn.execute("UPDATE body SET data = x'7b7d'")
    conn.commit()
    conn.close()


@pytest.mark.parametrize(
    ("harm", "code"), [(_beginning, "store_damaged"), (_pages, "store_damaged"), (_message, "body_damaged")]
)
async def test_calls_say_what_to_do_and_the_server_lives_on(
    settings: Settings, harm: Callable[[Path], None], code: str
) -> None:
    async with Client(build_server(settings), mode="auto") as client:
        await call(client, "append_messages", session_id="s", messages=[user("hi"), assistant("there")])
    sound = settings.db.read_bytes()
    harm(settings.db)
    async with Client(build_server(settings), mode="auto") as client:
        for _ in range(2):
            said = await client.call_tool("get_messages_after_boundary", {"session_id": "s"})
            assert said.is_error
            assert code in text_of(said)
            assert "mcp-compact rescue" in text_of(said)
    settings.db.write_bytes(sound)
    async with Client(build_server(settings), mode="auto") as client:
        said = await client.call_tool("get_messages_after_boundary", {"session_id": "s"})
        assert not said.is_error
