"""A question that one process asked is answered to another: the key that seals its state lies beside the archive."""

from __future__ import annotations

import socket
import stat
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.types import CallToolResult, InputRequiredResult

from mcp_compact.config import Settings
from mcp_compact.server.network import Network, network_app
from mcp_compact.server.state_key import KEY_BYTES, SUFFIX, state_key
from tests.server.talk import call, conversation
from tests.server.test_sampling import ASKED, SUMMARY, Model, text


@asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[str]:
    """A server as `serve --transport http --stateless` runs it, in this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        app = network_app(settings, Network(is_stateless=True), port=port)
        running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            yield f"http://127.0.0.1:{port}/mcp"
            running.should_exit = True


async def answered(client: Client, request_state: str | None) -> CallToolResult:
    """The call made again, with the summary that was asked for."""
    responses: dict[str, Any] = {"summary": text(SUMMARY)}
    return await client.session.call_tool(
        "compact_session", ASKED, input_responses=responses, request_state=request_state
    )


async def test_an_answer_reaches_another_server_of_the_same_archive_and_one_that_was_started_anew(
    tmp_path: Path,
) -> None:
    settings = Settings(db=tmp_path / "archive.db", hook_entry_points=False, summarizers=("sampling", "agent"))
    async with listening(settings) as first, Client(first, mode="2026-07-28", sampling_callback=Model()) as client:
        await call(client, "append_messages", session_id="s", messages=conversation(14))
        asked = await client.session.call_tool("compact_session", ASKED, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
    async with listening(settings) as later, Client(later, mode="2026-07-28", sampling_callback=Model()) as client:
        done = await answered(client, asked.request_state)
        assert done.structured_content
        assert (done.structured_content["status"], done.structured_content["writer"]) == (
            "compacted",
            "sampling:small-1",
        )
    other = Settings(db=tmp_path / "other" / "archive.db", hook_entry_points=False)
    async with listening(other) as foreign, Client(foreign, mode="2026-07-28", sampling_callback=Model()) as client:
        with pytest.raises(MCPError):
            await answered(client, asked.request_state)


def test_all_processes_have_one_key_which_its_owner_alone_can_read(tmp_path: Path) -> None:
    archive = tmp_path / "data" / "archive.db"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(state_key, [archive] * 16))
    assert len(keys) == 1
    kept = archive.with_name(archive.name + SUFFIX)
    assert kept.read_bytes() == keys.pop()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_key_that_others_could_read_is_replaced_and_so_is_a_damaged_one(tmp_path: Path) -> None:
    archive = tmp_path / "archive.db"
    kept = archive.with_name(archive.name + SUFFIX)
    kept.write_bytes(b"x" * KEY_BYTES)
    kept.chmod(0o644)
    assert state_key(archive) == kept.read_bytes() != b"x" * KEY_BYTES
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.write_bytes(b"half")
    assert state_key(archive) == state_key(archive) == kept.read_bytes()


def test_where_none_can_be_kept_a_server_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    archive = tmp_path / "file" / "archive.db"
    assert len(state_key(archive)) == KEY_BYTES
    assert state_key(archive) != state_key(archive)
