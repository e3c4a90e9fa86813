from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from mcp_compact.compaction.snapshot import Memory
from mcp_compact.config import Settings, load_settings
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import extraction
from mcp_compact.service.extraction import DEAD_AFTER_MS, Extractions
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock, tool_result
from mcp_compact.wiring import open_service

KEY = SessionKey("local", "s")


class HeldStore:
    """The real store; reading bodies waits until it is let go, and the reading that has begun is told of."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.reached = anyio.Event()
        self.go = anyio.Event()
        self.readings = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def records(self, key: SessionKey, **span: Any) -> list[Record]:
        self.readings += 1
        self.reached.set()
        await self.go.wait()
        found: list[Record] = await self.store.records(key, **span)
        return found


def talk(rounds: int, first: int = 0) -> list[dict[str, Any]]:
    """A round of one call has about 1,200 tokens."""
    out: list[dict[str, Any]] = [{"role": "user", "content": f"Mend parser_{first}. Never touch vendor/."}]
    for n in range(first, first + rounds):
        call = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"src/module_{n}.py"}}
        out.append({"role": "assistant", "content": [{"type": "text", "text": f"reading module {n}"}, call]})
        out.append({"role": "user", "content": [tool_result(f"t{n}", f"line of module_{n} with value_{n}\n" * 90)]})
    return [*out, {"role": "assistant", "content": "Read."}]


def settings_of(tmp_path: Path, **environ: str) -> Settings:
    return replace(load_settings(environ), db=tmp_path / "a.db", hook_entry_points=False)


@asynccontextmanager
async def hosted(tmp_path: Path, **environ: str) -> AsyncIterator[Service]:
    async with (
        anyio.create_task_group() as tasks,
        open_service(settings_of(tmp_path, **environ), tasks=tasks) as service,
    ):
        yield service


@asynccontextmanager
async def held(tmp_path: Path, wait_s: float = 15.0) -> AsyncIterator[tuple[Service, HeldStore, FixedClock]]:
    """A service whose background reads bodies only when it is let go; the use cases themselves are not held."""
    async with anyio.create_task_group() as tasks, open_service(settings_of(tmp_path)) as service:
        store, clock = HeldStore(service.deps.store), FixedClock()
        extractions = _extractions(service, store, clock, tasks, wait_s)
        yield replace(service, deps=replace(service.deps, extractions=extractions)), store, clock
        await extractions.close()


def _extractions(service: Service, store: HeldStore, clock: FixedClock, tasks: TaskGroup, wait_s: float) -> Extractions:
    held_store: Any = store
    return Extractions(replace(service.deps, store=held_store, clock=clock), tasks, wait_s=wait_s)


async def idle(service: Service) -> None:
    """Until nothing runs in the background any more."""
    assert service.deps.extractions is not None
    while run := service.deps.extractions._runs.get(KEY):
        await run.ended.wait()


async def test_an_append_that_makes_it_due_brings_the_memory_up_to_date(tmp_path: Path) -> None:
    async with hosted(tmp_path) as service:
        result = await service.append_messages(talk(12), "s")
        assert result.status.memory_version == 0
        await idle(service)
        memory = await service.get_memory("s")
        assert memory.version == 1
        assert "Never touch vendor/." in memory.content
        assert (memory.last_summarized_uuid, memory.uncovered_messages) == (result.uuids[-1], 0)


async def test_below_ten_thousand_tokens_nothing_is_started(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, _):
        status = (await service.append_messages(talk(2), "s")).status
        assert status.message_tokens < 10_000
        await idle(service)
        assert store.readings == 0


async def test_the_next_update_waits_for_five_thousand_tokens_more(tmp_path: Path) -> None:
    async with hosted(tmp_path) as service:
        await service.append_messages(talk(12), "s")
        await idle(service)
        await service.append_messages(talk(1, 12), "s")
        await idle(service)
        assert (await service.get_memory("s")).version == 1
        await service.append_messages(talk(8, 13), "s")
        await idle(service)
        memory = await service.get_memory("s")
        assert (memory.version, memory.uncovered_messages) == (2, 0)


async def test_an_import_starts_one_too(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(message) for message in talk(12))
    async with hosted(tmp_path) as service:
        await service.import_content(lines, session_id="s")
        await idle(service)
        assert (await service.get_memory("s")).version == 1


@pytest.mark.parametrize("off", ["MCP_COMPACT_EXTRACT", "MCP_COMPACT_FLAG_SESSION_MEMORY"])
async def test_each_of_two_switches_turns_it_off(tmp_path: Path, off: str) -> None:
    async with hosted(tmp_path, **{off: "0"}) as service:
        await service.append_messages(talk(12), "s")
        if service.deps.extractions is not None:
            await idle(service)
        assert (await service.get_memory("s")).version == 0


async def test_without_a_host_there_is_no_background(tmp_path: Path) -> None:
    async with open_service(settings_of(tmp_path)) as service:
        assert service.deps.extractions is None


async def test_an_append_is_answered_while_one_runs_and_starts_no_second(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, _):
        await service.append_messages(talk(12), "s")
        await store.reached.wait()
        result = await service.append_messages(talk(12, 12), "s")
        assert result.stored == len(talk(12, 12))
        store.go.set()
        await idle(service)
        assert (store.readings, (await service.get_memory("s")).version) == (1, 1)


async def test_what_an_agent_writes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, _):
        await service.append_messages(talk(12), "s")
        await store.reached.wait()
        await service.update_memory("s", "# Notes\n\n## Current state\nhalf of rule_7 is done: NOTE-77\n")
        store.go.set()
        await idle(service)
        memory = await service.get_memory("s")
        assert "NOTE-77" in memory.content
        kept = await service.deps.store.memory(KEY, 1)
        assert kept is not None
        assert "NOTE-77" in kept.text


async def test_a_section_that_an_agent_writes_keeps_what_was_extracted_meanwhile(tmp_path: Path) -> None:
    async with open_service(settings_of(tmp_path)) as service:
        await service.append_messages(talk(12), "s")
        slow: Any = ReadThenExtracted(service)
        agent = replace(service, deps=replace(service.deps, store=slow))
        await agent.update_memory("s", "half of rule_7 is done: NOTE-77", section="Current state")
        memory = await service.get_memory("s")
        assert memory.version == 2
        assert "NOTE-77" in memory.content
        assert "Never touch vendor/." in memory.content


class ReadThenExtracted:
    """The real store; after the first reading of the memory the extractor writes a version."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.is_first = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.service.deps.store, name)

    async def memory(self, key: SessionKey) -> Memory | None:
        found = await self.service.deps.store.memory(key)
        if self.is_first:
            self.is_first = False
            await self.service.extract_memory(key.session_id)
        return found


async def test_a_compaction_waits_for_one_under_way(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, _):
        await service.append_messages(talk(12), "s")
        await store.reached.wait()
        results = []

        async def compact() -> None:
            results.append(await service.compact("s", CompactCall("manual", target_tokens=9_000, force=True)))

        async with anyio.create_task_group() as group:
            group.start_soon(compact)
            await anyio.wait_all_tasks_blocked()
            assert results == []
            store.go.set()
        assert results[0].status == "compacted"
        assert not any("update" in warning for warning in results[0].warnings)
        assert (await service.get_memory("s")).version >= 1


async def test_a_compaction_goes_on_with_a_warning_where_it_takes_too_long(tmp_path: Path) -> None:
    async with held(tmp_path, wait_s=0.01) as (service, store, _):
        await service.append_messages(talk(12), "s")
        await store.reached.wait()
        result = await service.compact("s", CompactCall("manual", target_tokens=9_000, force=True))
        assert result.status == "compacted"
        assert any("was not ready after 0.01 s" in warning for warning in result.warnings)


async def test_one_older_than_a_minute_counts_as_dead_and_is_replaced(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, clock):
        await service.append_messages(talk(12), "s")
        await store.reached.wait()
        clock.at_ms += DEAD_AFTER_MS + 1
        result = await service.compact("s", CompactCall("manual", target_tokens=9_000, dry_run=True, force=True))
        assert any("counts as dead" in warning for warning in result.warnings)
        store.go, store.reached = anyio.Event(), anyio.Event()
        store.go.set()
        await service.append_messages(talk(1, 12), "s")
        await idle(service)
        assert (store.readings, (await service.get_memory("s")).version) == (2, 1)


async def test_closing_stops_it_and_nothing_is_half_written(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with held(tmp_path) as (service, store, _):
            await service.append_messages(talk(12), "s")
            await store.reached.wait()
        async with hosted(tmp_path) as service:
            assert (await service.get_memory("s")).version == 0
            await service.append_messages(talk(1, 12), "s")
        async with open_service(settings_of(tmp_path)) as service:
            assert (await service.get_memory("s")).version in (0, 1)


async def test_only_a_few_run_at_once(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, _):
        for n in range(5):
            await service.append_messages(talk(12), f"s{n}")
        await anyio.wait_all_tasks_blocked()
        assert store.readings == extraction.AT_ONCE
        store.go.set()
        assert service.deps.extractions is not None
        for run in list(service.deps.extractions._runs.values()):
            await run.ended.wait()
        versions = [(await service.get_memory(f"s{n}")).version for n in range(5)]
        assert versions == [1] * 5


async def test_a_session_that_is_deleted_meanwhile_disturbs_nobody(tmp_path: Path) -> None:
    async with held(tmp_path) as (service, store, _):
        await service.append_messages(talk(12), "s")
        await store.reached.wait()
        await service.delete_session("s")
        store.go.set()
        await idle(service)
        assert await service.deps.store.session(KEY) is None
