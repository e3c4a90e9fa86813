"""The memory brought up to date on request, by the extractor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.policy import MemoryPolicy, Policy
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.jobs import CompactCall
from tests.service.test_summaries import conversation, opened


async def test_a_memory_is_written_that_covers_everything_within_its_limit(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        added = await service.append_messages(conversation(), "s")
        before = await service.status("s")
        memory = await service.extract_memory("s")
        assert (memory.version, memory.uncovered_messages) == (1, 0)
        assert memory.last_summarized_uuid == added.uuids[-1]
        assert "Never touch vendor/." in memory.content
        assert "Now fix rule_7." in memory.content
        assert memory.tokens <= service.deps.settings.policy.memory.total_tokens
        after = await service.status("s")
        assert (after.live_hash, after.archived_records) == (before.live_hash, before.archived_records)


async def test_what_is_covered_is_not_read_again_and_nothing_new_writes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        first = await service.extract_memory("s")
        again = await service.extract_memory("s")
        assert (again.version, again.content) == (first.version, first.content)
        assert any("nothing is new" in warning for warning in again.warnings)
        added = await service.append_messages(
            [
                {"role": "assistant", "content": "rule_7 holds now."},
                {"role": "user", "content": "Always run make check."},
            ],
            "s",
        )
        store, read = service.deps.store, []
        records = store.records

        async def seen(key: Any, **reach: Any) -> Any:
            found = await records(key, **reach)
            read.append(len(found))
            return found

        store.records = seen  # type: ignore[method-assign]
        second = await service.extract_memory("s")
        assert read == [2]
        assert (second.version, second.last_summarized_uuid) == (2, added.uuids[-1])
        assert "Always run make check." in second.content
        assert "Never touch vendor/." in second.content


async def test_notes_of_the_agent_are_what_it_starts_from(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        await service.update_memory("s", "# Work\n\n## Learnings\n- the lexer eats tabs in lib/tabs_only.py\n")
        await service.append_messages([{"role": "assistant", "content": "Now lib/next_step.py is due."}], "s")
        memory = await service.extract_memory("s")
        assert "lib/tabs_only.py" in memory.content
        assert "lib/next_step.py" in memory.content


async def test_notes_written_meanwhile_are_not_lost(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(5), "s")
        store = service.deps.store
        records = store.records

        async def meanwhile(key: Any, **reach: Any) -> Any:
            store.records = records  # type: ignore[method-assign]
            await service.update_memory(
                "s",
                "# Work\n\n## Learnings\n- the lexer eats tabs in lib/meanwhile.py\n",
                summarized_through=(await records(key, **reach))[3].uuid,
            )
            return await records(key, **reach)

        store.records = meanwhile  # type: ignore[method-assign]
        memory = await service.extract_memory("s")
        assert memory.version == 2
        assert "lib/meanwhile.py" in memory.content
        assert "Now fix rule_7." in memory.content


async def test_after_a_compaction_nothing_is_new_and_the_next_messages_are(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        await service.compact("s", CompactCall(trigger="manual", force=True, target_tokens=6_000))
        first = await service.extract_memory("s")
        assert first.uncovered_messages == 0
        assert (await service.extract_memory("s")).version == first.version
        await service.append_messages([{"role": "assistant", "content": "lib/after_it.py is next."}], "s")
        assert "lib/after_it.py" in (await service.extract_memory("s")).content


async def test_a_summary_without_memory_is_taken_into_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        call = CompactCall(
            trigger="manual", force=True, target_tokens=6_000, custom_instructions="dwell", agent_writes=True
        )
        asked = await service.compact("s", call)
        text = "## Requests and intent\nThe user wants src/module_3.py mended, rule_7 fails on line 12.\n" * 6
        assert (await service.submit_summary(asked.compaction_id, text)).status == "compacted"
        memory = await service.extract_memory("s")
        assert "src/module_3.py" in memory.content
        assert (await service.extract_memory("s")).version == memory.version


async def test_an_empty_session_has_nothing_to_extract(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.create_session("s")
        memory = await service.extract_memory("s")
        assert (memory.version, memory.content) == (0, "")
        with pytest.raises(CallerError, match="There is no session"):
            await service.extract_memory("nobody")


async def test_where_session_memory_is_off_nothing_is_extracted(tmp_path: Path) -> None:
    settings = replace(load_settings({}), policy=Policy(session_memory=False))
    async with opened(tmp_path, settings=settings) as service:
        await service.append_messages(conversation(2), "s")
        with pytest.raises(CallerError) as raised:
            await service.extract_memory("s")
        assert raised.value.code == "extractor_off"
        assert (await service.get_memory("s")).version == 0


async def test_the_limits_of_the_settings_hold(tmp_path: Path) -> None:
    settings = replace(load_settings({}), policy=Policy(memory=MemoryPolicy(section_tokens=200, total_tokens=400)))
    async with opened(tmp_path, settings=settings) as service:
        await service.append_messages(conversation(), "s")
        memory = await service.extract_memory("s")
        assert 0 < memory.tokens <= 400


async def test_notes_of_the_agent_are_carried_on_whole(tmp_path: Path) -> None:
    notes = "# Notes\n\n## Worklog\nThe port is half done and nobody knows why it works.\n\n## My own\nplain words"
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(3), "s")
        await service.update_memory("s", notes)
        await service.append_messages([{"role": "user", "content": "Always run make check."}], "s")
        memory = await service.extract_memory("s")
        assert "The port is half done and nobody knows why it works." in memory.content
        assert "## My own\nplain words" in memory.content
        assert "Always run make check." in memory.content
