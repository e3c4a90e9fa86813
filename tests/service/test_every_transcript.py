"""Every handed Claude Code transcript: imported, compacted, read back, undone."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mcp_compact.config import load_settings
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.paging import joined
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service
from tests.conftest import SHARED

FILES = sorted((SHARED / "transcripts").glob("claude-code/*.jsonl")) if SHARED else []
FILES += sorted((SHARED / "transcripts").glob("recall/*.jsonl")) if SHARED else []

SMALL_TOKENS = 60_000
"""Below this a session is compacted to half of it, since the default target would let nothing leave."""


def referee(shared: Path) -> ModuleType:
    """The fault cases' own reading of the API's rules."""
    spec = importlib.util.spec_from_file_location("expand", shared / "cases" / "expand.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def everything(service: Service, session_id: str, format_name: str = "anthropic") -> list[dict[str, Any]]:
    pages: list[Mapping[str, Any]] = []
    cursor = ""
    while True:
        page = await service.messages(session_id, format_name=format_name, cursor=cursor)
        pages += page.messages
        cursor = page.next_cursor
        if not cursor:
            return joined(pages)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem[-12:]}")
async def test_a_transcript_goes_in_is_compacted_read_and_undone(path: Path, shared: Path, tmp_path: Path) -> None:
    rules = referee(shared)
    settings = replace(load_settings({}), db=tmp_path / "archive.db")
    async with open_service(settings) as service:
        done = await service.import_file(path)
        assert done.messages > 0
        before = await service.status(done.session_id)
        messages = await everything(service, done.session_id)
        assert rules.problems(messages) == []
        again = await service.import_file(path)
        assert again.stored == 0

        target = max(60, before.message_tokens // 2) if before.message_tokens < SMALL_TOKENS else None
        call = CompactCall(trigger="manual", force=True, target_tokens=target)
        result = await service.compact(done.session_id, call)
        assert result.status in {"prepared", "nothing_to_compact"}, result.declined
        after = await service.status(done.session_id)
        assert rules.problems(await everything(service, done.session_id)) == []
        if result.status == "nothing_to_compact":
            assert after.live_hash == before.live_hash
            return
        assert after.message_tokens == result.tokens_after < result.tokens_before
        assert result.tokens_after <= result.target_tokens
        assert result.loss.instructions_missing == ()

        second = await service.compact(done.session_id, replace(call, force=False))
        assert second.status in {"nothing_to_compact", "no_progress"}
        assert second.declined
        assert (await service.status(done.session_id)).live_hash == after.live_hash

        undone = await service.undo(done.session_id)
        assert undone.status == "undone"
        assert undone.live_hash == before.live_hash
        assert await everything(service, done.session_id) == messages
