"""One archive a process, however many servers and connections use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from mcp_compact import wiring
from mcp_compact.config import Settings
from mcp_compact.errors import CompactError
from mcp_compact.wiring import open_service


async def test_services_that_are_open_at_once_share_one_archive(settings: Settings):
    async with open_service(settings) as first:
        async with open_service(settings) as second:
            assert second.deps.store is first.deps.store
        await first.append_messages([{"role": "user", "content": "still open"}], "s")
    async with open_service(settings) as third:
        assert third.deps.store is not first.deps.store
        assert (await third.status("s")).live_messages == 1
    assert wiring._open == {}


async def test_services_opened_at_the_same_moment_share_one_archive(settings: Settings):
    stores = []
    leave = anyio.Event()

    async def use() -> None:
        async with open_service(settings) as service:
            stores.append(service.deps.store)
            await leave.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(use)
        while len(stores) < 8:
            await anyio.lowlevel.checkpoint()
        leave.set()
    assert len({id(store) for store in stores}) == 1
    assert wiring._open == {}


async def test_an_opening_that_is_cancelled_leaves_nothing_behind(settings: Settings):
    for _ in range(3):
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with open_service(settings) as service:
                await service.status("s")
        assert wiring._open == {}


async def test_an_archive_that_cannot_be_opened_is_an_error_with_a_hint_and_can_be_tried_again(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(CompactError) as caught:
        async with open_service(Settings(db=tmp_path / "folder")):
            pass
    assert caught.value.hint
    assert wiring._open == {}


def test_wiring_loads_neither_database_nor_tokenizer_nor_mcp_before_it_is_used():
    code = "import sys, mcp_compact.wiring; print([m for m in ('aiosqlite', 'tiktoken', 'mcp', 'sqlite3') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.strip() == "[]"
