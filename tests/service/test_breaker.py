from __future__ import annotations

from pathlib import Path

from mcp_compact.ports.hooks import HookDetails, HookOutcome
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import CompactResult
from mcp_compact.service.service import Service
from tests.service.test_summaries import conversation, opened

AUTO = CompactCall(trigger="auto")
HOPELESS = SessionFacts(context_window=30_000, overhead_tokens=29_000)
HELLO = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}]


async def hopeless(service: Service, session: str = "s") -> None:
    await service.append_messages(HELLO, session, HOPELESS)


async def tried(service: Service, times: int, call: CompactCall = AUTO) -> list[CompactResult]:
    return [await service.compact("s", call) for _ in range(times)]


def reasons(result: CompactResult) -> list[str]:
    return [declined.reason for declined in result.declined]


async def test_after_three_automatic_compactions_that_came_to_nothing_the_next_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await hopeless(service)
        results = await tried(service, 5)
        assert all("breaker_open" not in reasons(result) for result in results[:3])
        assert [(r.status, reasons(r)) for r in results[3:]] == [("no_progress", ["breaker_open"])] * 2
        assert "29000 of them overhead" in results[3].declined[0].detail
        assert "force=true" in results[3].next
        status = await service.status("s")
        assert (status.breaker_open, status.auto_failures) == (True, 3)


async def test_the_count_is_the_sessions_own_and_outlives_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await hopeless(service)
        await hopeless(service, "other")
        await tried(service, 3)
    async with opened(tmp_path) as service:
        assert (await service.status("s")).breaker_open
        assert (await service.status("other")).auto_failures == 0
        assert reasons((await tried(service, 1))[0]) == ["breaker_open"]


async def test_other_triggers_neither_count_nor_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await hopeless(service)
        await tried(service, 4, CompactCall(trigger="manual"))
        assert (await service.status("s")).auto_failures == 0
        await tried(service, 3)
        assert "breaker_open" not in reasons((await tried(service, 1, CompactCall(trigger="manual")))[0])


async def test_a_context_below_the_threshold_is_no_failure(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(HELLO, "s")
        assert [r.status for r in await tried(service, 4)] == ["below_threshold"] * 4
        assert (await service.status("s")).auto_failures == 0


async def test_a_forced_call_waives_it_and_begins_the_count_anew(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await hopeless(service)
        await tried(service, 3)
        forced = (await tried(service, 1, CompactCall(trigger="auto", force=True)))[0]
        assert "breaker_open" not in reasons(forced)
        status = await service.status("s")
        assert (status.breaker_open, status.auto_failures) == (False, 1)


async def test_a_dry_run_is_neither_refused_nor_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await hopeless(service)
        await tried(service, 4, CompactCall(trigger="auto", dry_run=True))
        assert (await service.status("s")).auto_failures == 0


class Forbidding:
    """A hook that never lets a compaction pass."""

    async def run(self, details: HookDetails) -> HookOutcome:
        return HookOutcome(blocked=f"{details.event} is forbidden")


async def test_a_hook_that_forbids_is_no_failure(tmp_path: Path) -> None:
    async with opened(tmp_path, hooks=Forbidding()) as service:
        await service.append_messages(conversation(40), "s", SessionFacts(context_window=12_000))
        assert [r.status for r in await tried(service, 4)] == ["blocked_by_hook"] * 4
        assert (await service.status("s")).auto_failures == 0


async def test_a_summary_that_is_refused_counts_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(40), "s", SessionFacts(context_window=12_000))
        asked = await service.compact("s", CompactCall("auto", custom_instructions="dwell on it", agent_writes=True))
        assert asked.status == "summary_required"
        assert (await service.status("s")).auto_failures == 0
        refused = await service.submit_summary(asked.compaction_id, "  ")
        assert refused.status == "failed"
        assert (await service.status("s")).auto_failures == 1


async def test_a_compaction_that_is_done_closes_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await hopeless(service)
        await tried(service, 3)
        await service.append_messages(conversation(40), "s", SessionFacts(overhead_tokens=0))
        done = await service.compact("s", CompactCall(trigger="manual", target_tokens=8_000))
        assert done.status == "compacted", done
        status = await service.status("s")
        assert (status.breaker_open, status.auto_failures) == (False, 0)
