"""Reported faults of reading a context, of empty sessions, restarts and repeated imports, through the service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from mcp_compact.compaction.micro import MicroRequest
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.reading import live_messages
from tests.problems import problems
from tests.service.test_cases_summary import KEY, CaseOf, Writer, archive, blocks_of, case_of, opened, padded
from tests.service.test_every_transcript import everything

__all__ = ["case_of"]
MANUAL = CompactCall(trigger="manual", force=True)


@pytest.mark.parametrize("name", ["THINK-03"])
async def test_a_repair_parts_no_thinking_from_its_message_id(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    async with opened(tmp_path, Writer([])) as service:
        await service.append_messages(case["messages"], "s")
        view = await everything(service, "s")
        assert await archive(service) == case["messages"]
    assert problems(view) == []
    kinds = [block["type"] for message in view for block in blocks_of([message]) if message["role"] == "assistant"]
    assert kinds[:2] == ["thinking", "tool_use"]
    (thinking,) = [block for block in blocks_of(view) if block["type"] == "thinking"]
    assert thinking == case["messages"][1]["message"]["content"][0]


@pytest.mark.parametrize("name", ["SHAPE-05"])
async def test_an_empty_session_is_answered_by_every_verb_and_nothing_is_written(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    assert case_of(name)["messages"] == []
    async with opened(tmp_path, Writer([])) as service:
        await service.create_session("s")
        for call in (MANUAL, replace(MANUAL, dry_run=True), CompactCall(trigger="reactive", force=True)):
            assert (await service.compact("s", call)).status == "nothing_to_compact"
        assert (await service.microcompact("s", MicroRequest())).status == "nothing_to_compact"
        assert (await service.undo("s")).status == "nothing_to_undo"
        assert await everything(service, "s") == []
        assert (await service.get_memory("s")).is_empty
        assert (await service.search("anything", session_id="s")).hits == ()
        assert (await service.boundaries("s")).boundaries == ()
        status = await service.status("s", detail=True)
        assert (status.archived_records, status.compactions) == (0, 0)


@pytest.mark.parametrize("name", ["MEDIA-02"])
async def test_many_bytes_in_few_tokens_are_told_of_and_clearing_is_offered(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    case = case_of(name)
    async with opened(tmp_path, Writer([])) as service:
        window = case["context_window"]
        before = (await service.append_messages(case["messages"], "s", SessionFacts(context_window=window))).status
        sent = len(json.dumps(await live_messages(service.deps, KEY)))
        assert (before.level, before.media_count) == ("ok", 42)
        assert 0.99 * sent < before.media_bytes <= before.bytes < 1.01 * sent
        assert "media=all" in before.next
        assert "42 images and documents of 33.6 MB" in before.next

        await service.microcompact("s", MicroRequest(all_media=True))
        after = await service.status("s")
        assert (after.media_count, after.media_bytes, after.next) == (1, before.media_bytes // 42, "")
        await service.undo("s")
        undone = await service.status("s")
        assert (undone.media_count, undone.bytes, undone.next) == (before.media_count, before.bytes, before.next)
        assert await archive(service) == case["messages"]


@pytest.mark.parametrize("name", ["BOUND-01"])
async def test_the_context_is_the_same_after_a_restart(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    async with opened(tmp_path, Writer(None)) as service:
        await service.append_messages(padded(case["messages"]), "s")
        done = await service.compact("s", MANUAL)
        assert done.status == "compacted", done.declined
        view, status = await everything(service, "s"), await service.status("s")
    async with opened(tmp_path, Writer(None)) as service:
        assert await everything(service, "s") == view
        again = await service.status("s")
        assert (again.live_hash, again.tokens) == (status.live_hash, status.tokens)


@pytest.mark.parametrize("name", ["DEDUP-02"])
async def test_importing_twice_also_at_once_adds_nothing(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    content = "".join(json.dumps(message) + "\n" for message in case_of(name)["messages"])
    async with opened(tmp_path, Writer([])) as service:
        stored: list[int] = []

        async def take() -> None:
            result = await service.import_content(content, format_name="claude-code", session_id="s")
            stored.append(result.stored)
            assert result.stored + result.known == 3

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            tasks.start_soon(take)
        await take()
        assert sorted(stored) == [0, 0, 3]
        assert len(await archive(service)) == 3
