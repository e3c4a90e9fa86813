"""What a server does beside its calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server, local_place
from tests.service.test_extraction import talk


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db=tmp_path / "archive.db", hook_entry_points=False)


async def call(client: Client, name: str, **arguments: object) -> dict:
    result = await client.call_tool(name, {"session_id": "s", **arguments})
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


async def test_the_memory_comes_by_itself_and_a_closing_server_stops_what_runs(
    settings: Settings, project: Path, era: str
) -> None:
    place = local_place(settings, project)
    with anyio.fail_after(120):
        async with Client(build_server(settings, place=place), mode=era) as client:
            await call(client, "append_messages", messages=talk(12))
        async with Client(build_server(settings, place=place), mode=era) as client:
            await call(client, "append_messages", messages=talk(2, 12))
            while (await call(client, "get_session_memory")).get("version", 0) == 0:
                await checkpoint()
            assert "Never touch vendor/." in (await call(client, "get_session_memory"))["content"]


async def test_an_append_tells_of_an_automatic_compaction(settings: Settings, project: Path, era: str) -> None:
    auto = replace(settings, auto=True)
    async with Client(build_server(auto, place=local_place(auto, project)), mode=era) as client:
        small = await call(client, "append_messages", messages=talk(1), context_window=20_000)
        assert not small.get("compacted")
        assert not small.get("note")
        done = await call(client, "append_messages", messages=talk(12, 1))
        assert done["compacted"]
        assert "get_messages_after_boundary" in done["note"]
