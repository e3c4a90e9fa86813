"""Appending: what is prepared at once, and what in a thread, is stored alike."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from anyio import to_thread

from mcp_compact.errors import CallerError
from tests.service.test_summaries import opened

ODD = [{"type": "system", "message": "text"}, {"type": "system", "message": ["x"]}, {"type": "x", "message": 7}]


@pytest.mark.parametrize("item", ODD, ids=str)
async def test_an_entry_whose_message_is_no_object_is_kept_as_it_is(tmp_path: Path, item: dict[str, object]) -> None:
    async with opened(tmp_path) as service:
        await to_thread.run_sync(service.deps.tokenizer.warm)
        assert service.deps.tokenizer.state == "ready"
        assert (await service.append_messages([item], "s")).stored == 1


async def test_the_collector_runs_again_after_an_append_however_it_ended(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages([{"role": "user", "content": f"step {number}"} for number in range(5)], "s")
        assert gc.isenabled()
        with pytest.raises(CallerError):
            await service.append_messages([{"role": "user", "content": {1, 2}}, {"role": "user"}], "s")
        with pytest.raises(CallerError):
            await service.append_messages([{"role": "user", "x": {1}}, {"role": "user"}], "s")
        assert gc.isenabled()


async def test_a_result_in_a_message_that_is_nobodys_turn_is_kept_and_weighs_nothing(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    async with opened(tmp_path) as service:
        done = await service.append_messages([{"role": "system", "content": [result]}], "s")
        assert (done.stored, done.status.tokens) == (1, 0)
        assert (await service.messages("s")).messages == ()
