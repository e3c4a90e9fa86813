"""Long work tells a client that asked how far it is, or that it goes on; what fails in it is told as always."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import Context

from mcp_compact.config import Settings
from mcp_compact.errors import CallerError
from mcp_compact.server import progress
from mcp_compact.server.app import build_server, local_place
from mcp_compact.wiring import open_service
from tests.server.talk import call, conversation, jsonl, refused, transcript

Report = tuple[float, float | None, str | None]


async def test_work_that_takes_long_is_reported_where_the_client_asks(tmp_path: Path, era: str) -> None:
    settings = Settings(db=tmp_path / "archive.db", hook_entry_points=False)
    told: list[Report] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with Client(
        build_server(settings, profile="full", place=local_place(settings, tmp_path)), mode=era
    ) as client:
        await call(client, "append_messages", session_id="s", messages=conversation(14))
        asked = {"session_id": "s", "trigger": "manual", "target_tokens": 6_000, "custom_instructions": "dwell on 42"}
        for tool, arguments in (
            ("extract_session_memory", {"session_id": "s"}),
            ("search_messages", {"query": "module"}),
            ("compact_session", asked),
        ):
            before = len(told)
            answer = await client.call_tool(tool, arguments, progress_callback=note)
            assert not answer.is_error
            assert len(told) > before, tool
        waiting = (answer.structured_content or {})["compaction_id"]
        summary = {"compaction_id": waiting, "summary": "## Requests\nLook into every module, leave the rest alone."}
        assert not (await client.call_tool("submit_summary", summary, progress_callback=note)).is_error
        assert "summary" in str(told[-1][2])
        assert "unknown_session" in await refused(client, "compact_session", session_id="nobody")
        assert "unknown_compaction" in await refused(client, "submit_summary", compaction_id="x", summary="y")


async def test_an_extraction_and_an_import_tell_how_much_of_the_whole_is_done(
    settings: Settings, project: Path, era: str
) -> None:
    told: list[Report] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    place = local_place(settings, project)
    (project / "session.jsonl").write_text(jsonl(transcript("long", str(project), 120)), encoding="utf-8")
    async with Client(build_server(settings, profile="full", place=place), mode=era) as client:
        path = str(project / "session.jsonl")
        answer = await client.call_tool("import_transcript", {"path": path}, progress_callback=note)
        assert not answer.is_error
        size = (project / "session.jsonl").stat().st_size
        assert shares(told)[-1] == (size, size)
        told.clear()
        found = await client.call_tool("search_messages", {"query": "module"}, progress_callback=note)
        assert not found.is_error
        done = shares(told)
        assert done[-1][0] == done[-1][1]
        assert len(done) > 2, "it tells how much is indexed, batch by batch"
        assert "indexing" in str(told[0][2])
        told.clear()
        given = {"content": (project / "session.jsonl").read_text(encoding="utf-8"), "session_id": "long"}
        assert not (await client.call_tool("import_transcript", given, progress_callback=note)).is_error
        assert shares(told)[-1] == (size, size)
        told.clear()
        asked = {"session_id": "long"}
        answer = await client.call_tool("extract_session_memory", asked, progress_callback=note)
        assert not answer.is_error
    done = shares(told)
    assert len({total for _, total in done}) == 1
    assert done[-1][0] == done[-1][1] == 2 * 480
    assert len(done) > 3, "it tells of the way too, not of the end alone"


def shares(told: list[Report]) -> list[tuple[float, float | None]]:
    """What was done, and of how much; each report says more than the one before."""
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    return [(done, total) for done, total, _ in told]


async def test_an_extraction_that_is_taken_back_ends_and_writes_nothing(settings: Settings, project: Path) -> None:
    async with open_service(settings) as service:
        await service.append_messages(conversation(100), "s")
        before = (await service.status("s")).memory_version
        with anyio.CancelScope() as scope:

            def report(done: int, total: int, what: str) -> None:
                assert done < total, what
                scope.cancel()

            await service.extract_memory("s", report)
        assert scope.cancelled_caught
        assert (await service.status("s")).memory_version == before
        assert (await service.extract_memory("s")).version == before + 1


class Told:
    """The part of a call's context that takes reports."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    async def report_progress(self, done: float, total: float | None, message: str | None) -> None:
        self.reports.append((done, total, message))


async def test_reports_go_on_while_it_goes_on_and_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEAT_S", 0)
    told: Any = Told()
    context: Context[Any] = told

    async def work() -> str:
        while len(told.reports) < 4:
            await anyio.lowlevel.checkpoint()
        return "done"

    assert await progress.with_beat(context, "at work", work) == "done"
    assert [report[0] for report in told.reports[:4]] == [0, 1, 2, 3]

    async def fails() -> None:
        raise CallerError("code", "What is wrong.", "What to do.")

    with pytest.raises(CallerError, match="What is wrong"):
        await progress.with_beat(context, "at work", fails)


async def test_a_call_that_is_taken_back_ends_its_work() -> None:
    told: Any = Told()
    ended: list[bool] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(progress.with_beat, told, "at work", work)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert ended == [True]
