"""Appending: what is prepared at once, and what in a thread, is stored alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio import to_thread

from tests.service.test_summaries import opened

ODD = [{"type": "system", "message": "text"}, {"type": "system", "message": ["x"]}, {"type": "x", "message": 7}]


@pytest.mark.parametrize("item", ODD, ids=str)
async def test_an_entry_whose_message_is_no_object_is_kept_as_it_is(tmp_path: Path, item: dict[str, object]) -> None:
    async with opened(tmp_path) as service:
        await to_thread.run_sync(service.deps.tokenizer.warm)
        assert service.deps.tokenizer.state == "ready"
        assert (await service.append_messages([item], "s")).stored == 1
