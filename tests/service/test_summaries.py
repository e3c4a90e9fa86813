from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.ports.hooks import HookDetails, HookOutcome
from mcp_compact.ports.store import SessionFacts
from mcp_compact.ports.summarizer import Summarizer, TooLong, WriterFailed, Written
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import CompactResult
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock, tool_result
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.service.test_every_transcript import everything

SUMMARY = "## Requests and intent\nThe user wants the parser in src/parser.py mended; rule_7 fails on line 12.\n" * 4
AGENT = CompactCall(
    trigger="manual", force=True, target_tokens=6_000, custom_instructions="dwell on FOCUS-42", agent_writes=True
)


def conversation(rounds: int = 30) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{"role": "user", "content": "Mend the parser. Never touch vendor/."}]
    for n in range(rounds):
        call = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"src/module_{n}.py"}}
        out.append({"role": "assistant", "content": [{"type": "text", "text": f"reading module {n} now"}, call]})
        out.append({"role": "user", "content": [tool_result(f"t{n}", f"line of module_{n} with value_{n}\n" * 40)]})
    return [
        *out,
        {"role": "assistant", "content": "All modules are read."},
        {"role": "user", "content": "Now fix rule_7."},
    ]


@asynccontextmanager
async def opened(tmp_path: Path, **deps: Any) -> AsyncIterator[Service]:
    summarizers = tuple(deps.pop("summarizers", ("agent",)))
    settings = replace(load_settings({}), db=tmp_path / "a.db", hook_entry_points=False, summarizers=summarizers)
    async with open_service(settings) as service:
        yield replace(service, deps=replace(service.deps, **deps))


async def asked(service: Service, call: CompactCall = AGENT) -> CompactResult:
    await service.append_messages(conversation(), "s")
    result = await service.compact("s", call)
    assert result.status == "summary_required", result
    return result


async def test_the_agent_writes_the_summary_also_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        result = await asked(service)
        assert "FOCUS-42" in result.prompt
        assert "module_0" in result.material
        before = (await service.status("s")).live_hash
    async with opened(tmp_path) as service:
        assert (await service.status("s")).live_hash == before
        done = await service.submit_summary(result.compaction_id, SUMMARY)
        assert (done.status, done.strategy, done.writer) == ("compacted", "summary", "agent")
        assert done.tokens_after <= 6_000
        messages = await everything(service, "s")
        assert problems(messages) == []
        text = str(messages)
        assert "rule_7 fails on line 12" in text
        assert "Never touch vendor/." in text
        assert "Now fix rule_7." in text


async def test_the_material_comes_in_pages(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(200), "s")
        page = await service.compact("s", replace(AGENT, target_tokens=20_000))
        whole = page.material
        while page.next_cursor:
            page = await service.material("s", page.next_cursor)
            whole += page.material
        assert "module_0" in whole
        assert "module_150" in whole


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("", "blank"),
        (" \n\t ", "blank"),
        ("API Error: 500 overloaded", "error_text"),
        ("word " * 60_000, "too_large"),
    ],
)
async def test_a_bad_summary_is_refused_nothing_is_written_and_another_may_follow(
    tmp_path: Path, summary: str, reason: str
) -> None:
    async with opened(tmp_path) as service:
        result = await asked(service)
        before = await service.status("s")
        refused = await service.submit_summary(result.compaction_id, summary)
        assert refused.status == "failed"
        assert reason in [d.reason for d in refused.declined]
        after = await service.status("s")
        assert (after.live_hash, after.archived_records) == (before.live_hash, before.archived_records)
        assert (await service.submit_summary(result.compaction_id, SUMMARY)).status == "compacted"


async def test_a_copy_of_the_prompt_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        result = await asked(service)
        refused = await service.submit_summary(result.compaction_id, result.prompt)
        assert "copy_of_prompt" in [d.reason for d in refused.declined]


async def test_invented_names_are_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        result = await asked(service)
        done = await service.submit_summary(result.compaction_id, SUMMARY + "\nSee lib/never_was_here.py for it.")
        assert any("lib/never_was_here.py" in warning for warning in done.warnings)


async def test_a_handle_works_once_for_an_hour_and_in_its_own_namespace_only(tmp_path: Path) -> None:
    clock = FixedClock()
    async with opened(tmp_path, clock=clock) as service:
        result = await asked(service)
        with pytest.raises(CallerError, match="No compaction waits"):
            await replace(service, namespace="other").submit_summary(result.compaction_id, SUMMARY)
        with pytest.raises(CallerError, match="No compaction waits"):
            await service.submit_summary("nonsense", SUMMARY)
        clock.at_ms += 3_600_001
        with pytest.raises(CallerError, match="older than an hour"):
            await service.submit_summary(result.compaction_id, SUMMARY)
        clock.at_ms -= 3_600_001
        await service.submit_summary(result.compaction_id, SUMMARY)
        with pytest.raises(CallerError, match="handed in already"):
            await service.submit_summary(result.compaction_id, SUMMARY)


async def test_what_is_appended_while_the_summary_is_written_follows_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        result = await asked(service)
        added = await service.append_messages([{"role": "assistant", "content": "said meanwhile"}], "s")
        done = await service.submit_summary(result.compaction_id, SUMMARY)
        assert done.status == "compacted"
        assert "said meanwhile" in str((await everything(service, "s"))[-1])
        assert added.stored == 1


async def test_a_compaction_that_came_between_makes_the_summary_void(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        result = await asked(service)
        other = CompactCall(trigger="manual", force=True, target_tokens=6_000)
        assert (await service.compact("s", other)).status == "compacted"
        late = await service.submit_summary(result.compaction_id, SUMMARY)
        assert late.status == "failed"
        assert [d.reason for d in late.declined] == ["base_changed"]


async def test_where_nobody_writes_instructions_become_lines_that_are_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        done = await service.compact("s", replace(AGENT, agent_writes=False))
        assert (done.status, done.strategy) == ("compacted", "session_memory")
        assert "FOCUS-42" in str(await everything(service, "s"))


class Scripted:
    """A writer that gives what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: Written | TooLong | WriterFailed) -> None:
        self.answers = list(answers)
        self.asked: list[SummaryRequest] = []
        self.name = "scripted"

    async def write(self, request: SummaryRequest) -> Written | TooLong | WriterFailed:
        self.asked.append(request)
        return self.answers.pop(0)


def good() -> Written:
    return Written(SummaryAnswer(SUMMARY, "end_turn"), "scripted", 900, 80, 0.01)


async def by_writer(tmp_path: Path, writer: Summarizer) -> CompactResult:
    async with opened(tmp_path, summarizers=("provider",), writers={"provider": writer}) as service:
        await service.append_messages(conversation(), "s")
        result = await service.compact("s", AGENT)
        assert problems(await everything(service, "s")) == []
        return result


async def test_a_provider_writes_and_its_cost_is_told(tmp_path: Path) -> None:
    writer = Scripted(good())
    result = await by_writer(tmp_path, writer)
    assert (result.status, result.writer) == ("compacted", "scripted")
    assert any("900 tokens read" in warning for warning in result.warnings)
    assert "FOCUS-42" in writer.asked[0].prompt
    assert writer.asked[0].max_tokens <= 32_000


async def test_too_long_material_loses_its_oldest_rounds_and_each_request_is_smaller(tmp_path: Path) -> None:
    writer = Scripted(TooLong(Overrun(10_000, 9_500)), TooLong(Overrun()), good())
    result = await by_writer(tmp_path, writer)
    assert result.status == "compacted"
    sizes = [request.material_tokens for request in writer.asked]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3
    assert all("FOCUS-42" in request.prompt for request in writer.asked)


@pytest.mark.parametrize(
    "writer",
    [
        Scripted(WriterFailed("timeout", "nothing came")),
        Scripted(*[TooLong(Overrun())] * 9),
        Scripted(Written(SummaryAnswer("", "end_turn"), "scripted")),
        Scripted(Written(SummaryAnswer(SUMMARY, "max_tokens"), "scripted")),
        Scripted(Written(SummaryAnswer(SUMMARY, "refusal"), "scripted")),
        Scripted(
            Written(SummaryAnswer([{"type": "tool_use", "id": "x", "name": "Bash", "input": {}}], ""), "scripted")
        ),
        Scripted(Written(SummaryAnswer([{"type": "thinking", "thinking": "hm", "signature": "s"}], ""), "scripted")),
    ],
)
async def test_a_writer_that_fails_leaves_everything_as_it_was(tmp_path: Path, writer: Scripted) -> None:
    result = await by_writer(tmp_path, writer)
    assert result.status == "failed"
    assert result.boundary_uuid == ""
    assert len(writer.asked) <= 4


class Hooked:
    """Hooks that say what they are told to."""

    def __init__(self, **said: HookOutcome) -> None:
        self.said = said
        self.seen: list[HookDetails] = []

    async def run(self, details: HookDetails) -> HookOutcome:
        self.seen.append(details)
        return self.said.get(details.event, HookOutcome())


MEMORY = CompactCall(trigger="manual", target_tokens=6_000)


async def test_hooks_run_once_on_each_event_and_their_lines_are_in_the_context(tmp_path: Path) -> None:
    hooks = Hooked(
        pre_compact=HookOutcome("KEEP-ME-77"),
        session_start=HookOutcome("CONTEXT-88"),
        post_compact=HookOutcome("not good", verified=False, warnings=("post hook: not good",)),
    )
    async with opened(tmp_path, hooks=hooks) as service:
        await service.append_messages(conversation(), "s")
        result = await service.compact("s", MEMORY)
        assert result.status == "compacted"
        assert result.verified is False
        assert "post hook: not good" in result.warnings
        text = str(await everything(service, "s"))
        assert text.count("KEEP-ME-77") == 1
        assert text.count("CONTEXT-88") == 1
        assert [details.event for details in hooks.seen] == ["pre_compact", "session_start", "post_compact"]


async def test_a_blocking_hook_stops_the_compaction_unless_it_is_forced(tmp_path: Path) -> None:
    hooks = Hooked(pre_compact=HookOutcome(blocked="not today"))
    async with opened(tmp_path, hooks=hooks) as service:
        await service.append_messages(conversation(), "s")
        before = (await service.status("s")).live_hash
        result = await service.compact("s", MEMORY)
        assert (result.status, result.declined[0].detail) == ("blocked_by_hook", "not today")
        assert (await service.status("s")).live_hash == before
        assert (await service.compact("s", replace(MEMORY, force=True))).status == "compacted"


async def test_no_hook_runs_for_a_dry_run_or_where_nothing_is_done(tmp_path: Path) -> None:
    hooks = Hooked()
    async with opened(tmp_path, hooks=hooks) as service:
        await service.append_messages(conversation(), "s")
        assert (await service.compact("s", replace(MEMORY, dry_run=True))).status == "dry_run"
        assert (await service.compact("s", CompactCall(trigger="auto"))).status == "below_threshold"
        assert hooks.seen == []


async def test_hook_lines_are_reused_by_a_pending_summary(tmp_path: Path) -> None:
    hooks = Hooked(pre_compact=HookOutcome("KEEP-ME-77"), session_start=HookOutcome("CONTEXT-88"))
    async with opened(tmp_path, hooks=hooks) as service:
        result = await asked(service)
        assert "KEEP-ME-77" in result.prompt
        done = await service.submit_summary(result.compaction_id, SUMMARY)
        assert done.status == "compacted"
        text = str(await everything(service, "s"))
        assert "KEEP-ME-77" in text
        assert "CONTEXT-88" in text
        assert [d.event for d in hooks.seen] == ["pre_compact", "session_start", "post_compact"]


@pytest.mark.parametrize(
    "error",
    [
        "prompt is too long: 12000 tokens > 9000 maximum",
        "This model's maximum context length is 9000 tokens. However, your messages resulted in 12000 tokens.",
        "",
        "Input is too long for requested model.",
    ],
)
async def test_a_prompt_that_was_too_long_loses_its_oldest_rounds(tmp_path: Path, error: str) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        before = await service.status("s")
        result = await service.compact("s", CompactCall(trigger="reactive", error=error))
        assert (result.status, result.strategy) == ("compacted", "reactive"), result.declined
        assert result.tokens_after < before.message_tokens * 0.82
        messages = await everything(service, "s")
        assert problems(messages) == []
        assert "Never touch vendor/." in str(messages)


async def test_where_even_the_last_round_is_too_long_the_largest_messages_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        stored = await service.append_messages([{"role": "user", "content": "only one turn " * 4_000}], "s")
        error = "prompt is too long: 12000 tokens > 9000 maximum"
        result = await service.compact("s", CompactCall(trigger="reactive", error=error))
        assert result.status == "failed"
        assert any(d.reason == "too_long" and stored.uuids[0] in d.detail for d in result.declined)
        assert result.boundary_uuid == ""


def failing(results: int = 8) -> list[dict[str, Any]]:
    """A small session of commands, half of which failed."""
    out: list[dict[str, Any]] = [{"role": "user", "content": "Fix it."}]
    for n in range(results):
        call = {"type": "tool_use", "id": f"e{n}", "name": "Bash", "input": {"command": f"make t{n}"}}
        said = f"ERR_CODE_{n}: undefined symbol\n" + f"WHOLE_{n} " * 150
        out += [{"role": "assistant", "content": [call]}]
        out += [{"role": "user", "content": [tool_result(f"e{n}", said, is_error=n % 2 == 0)]}]
    for n in range(6):
        out += [{"role": "assistant", "content": f"I think aloud {n}. " + "w " * 2_500}]
        out += [{"role": "user", "content": f"Yes, {n}."}]
    return out


FAILURES = CompactCall(force=True, custom_instructions="List every error code.", agent_writes=True)


async def whole_material(service: Service, page: CompactResult) -> str:
    text = page.material
    while page.next_cursor:
        page = await service.material("s", page.next_cursor)
        text += page.material
    return text


async def test_the_agent_is_given_every_result_of_a_session_that_its_context_has_room_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(failing(), "s", SessionFacts(context_window=200_000))
        text = await whole_material(service, await service.compact("s", FAILURES))
        assert [n for n in range(8) if f"WHOLE_{n}" in text] == list(range(8))


async def test_in_a_full_context_old_results_leave_the_material_and_all_pages_are_of_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(failing(30), "s", SessionFacts(context_window=48_000))
        page = await service.compact("s", FAILURES)
        # What is measured meanwhile leaves another room, and the pages are to be of the same material.
        await service.append_messages([{"role": "assistant", "content": "word " * 500}], "s")
        text = await whole_material(service, page)
        shown = [n for n in range(30) if f"WHOLE_{n}" in text]
        assert 5 <= len(shown) < 30
        assert shown[-5:] == list(range(25, 30))
        assert [n for n in range(0, 30, 2) if f"ERR_CODE_{n}:" in text] == list(range(0, 30, 2))
        assert text.count("[Call Bash]") == 30


@pytest.mark.parametrize("summarizers", [("provider",), ("provider", "agent")])
async def test_a_model_is_given_every_result_that_a_window_of_its_own_has_room_for(
    tmp_path: Path, summarizers: tuple[str, ...]
) -> None:
    writer = Scripted(good())
    async with opened(tmp_path, summarizers=summarizers, writers={"provider": writer}) as service:
        await service.append_messages(failing(), "s", SessionFacts(context_window=48_000))
        await service.compact("s", FAILURES)
        assert [n for n in range(8) if f"WHOLE_{n}" in writer.asked[0].material] == list(range(8))


async def test_a_model_that_says_it_is_too_long_is_given_fewer_results_before_fewer_rounds(tmp_path: Path) -> None:
    writer = Scripted(TooLong(Overrun(5_000, 4_000)), good())
    async with opened(tmp_path, summarizers=("provider",), writers={"provider": writer}) as service:
        await service.append_messages(failing(30), "s")
        await service.compact("s", FAILURES)
        first, second = writer.asked
        assert second.material_tokens <= first.material_tokens - 1_000
        assert second.dropped_messages == 0
        assert [n for n in range(0, 30, 2) if f"WHOLE_{n}" in second.material] == list(range(0, 30, 2))


async def test_an_agent_after_a_model_is_given_what_its_own_context_has_room_for(tmp_path: Path) -> None:
    writer = Scripted(WriterFailed("unavailable", "not today"))
    async with opened(tmp_path, summarizers=("provider", "agent"), writers={"provider": writer}) as service:
        await service.append_messages(failing(30), "s", SessionFacts(context_window=48_000))
        page = await service.compact("s", FAILURES)
        text = await whole_material(service, page)
        assert page.declined[-1].reason == "unavailable"
        assert len([n for n in range(30) if f"WHOLE_{n}" in text]) < 30
        assert all(f"WHOLE_{n}" in writer.asked[0].material for n in range(30))
