from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from mcp_compact.config import load_settings
from mcp_compact.ports.hooks import HookDetails, HookOutcome
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.service.test_breaker import HELLO, HOPELESS
from tests.service.test_every_transcript import everything
from tests.service.test_extraction import talk
from tests.service.test_summaries import conversation

SMALL = SessionFacts(context_window=20_000)


@asynccontextmanager
async def automatic(tmp_path: Path, **environ: str) -> AsyncIterator[Service]:
    known = load_settings({"MCP_COMPACT_AUTO": "1", **environ})
    async with open_service(replace(known, db=tmp_path / "a.db", hook_entry_points=False)) as service:
        yield service


class Broken:
    """A hook runner that is broken itself."""

    async def run(self, details: HookDetails) -> HookOutcome:
        raise RuntimeError(details.event)


async def test_an_append_that_makes_it_due_is_followed_by_a_compaction(tmp_path: Path) -> None:
    async with automatic(tmp_path) as service:
        result = await service.append_messages(conversation(40), "s", SMALL)
        assert result.compacted
        assert "compacted automatically (session_memory)" in result.note
        assert "get_messages_after_boundary" in result.note
        assert (result.status.compactions, result.status.should_compact) == (1, False)
        assert problems(await everything(service, "s")) == []


async def test_below_the_threshold_nothing_is_tried(tmp_path: Path) -> None:
    async with automatic(tmp_path) as service:
        result = await service.append_messages(conversation(40), "s")
        assert (result.compacted, result.note, result.status.compactions) == (False, "", 0)


async def test_it_is_off_unless_switched_on(tmp_path: Path) -> None:
    async with automatic(tmp_path, MCP_COMPACT_AUTO="0") as service:
        result = await service.append_messages(conversation(40), "s", SMALL)
        assert (result.compacted, result.note, result.status.should_compact) == (False, "", True)


async def test_a_client_that_keeps_its_own_history_is_left_alone(tmp_path: Path) -> None:
    async with automatic(tmp_path) as service:
        result = await service.append_messages(conversation(40), "s", replace(SMALL, owner="client"))
        assert (result.compacted, result.note, result.status.compactions) == (False, "", 0)


async def test_no_agent_is_ever_asked(tmp_path: Path) -> None:
    async with automatic(tmp_path, MCP_COMPACT_FLAG_SM_COMPACT="0") as service:
        result = await service.append_messages(conversation(40), "s", SMALL)
        assert not result.compacted
        assert "switched_off" in result.note
        assert "summary_required" not in result.note


async def test_what_cannot_shrink_is_tried_three_times_and_told(tmp_path: Path) -> None:
    async with automatic(tmp_path) as service:
        notes = [(await service.append_messages(HELLO, "s", HOPELESS)).note for _ in range(5)]
        assert all(notes)
        assert ["breaker_open" in note for note in notes] == [False, False, False, True, True]


async def test_a_failure_never_hides_that_the_messages_are_stored(tmp_path: Path) -> None:
    async with automatic(tmp_path) as service:
        broken = replace(service, deps=replace(service.deps, hooks=Broken()))
        result = await broken.append_messages(conversation(40), "s", SMALL)
        assert result.stored == len(conversation(40))
        assert "defect" in result.note
        assert result.status.compactions == 0


async def test_a_loop_of_many_turns_stays_below_its_window(tmp_path: Path) -> None:
    async with automatic(tmp_path) as service:
        done = []
        for turn in range(12):
            result = await service.append_messages(talk(4, 4 * turn), "s", SMALL)
            assert result.status.tokens < 10_000
            done.append(result.compacted)
        assert done.count(True) >= 3
        assert done.count(False) >= 3
