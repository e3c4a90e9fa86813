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
from tests.server.talk import call, conversation, refused

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
