"""Plans of a dry run: carried out to the letter, or refused with what changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.ports.hooks import HookDetails, HookOutcome
from mcp_compact.ports.store import SessionFacts
from mcp_compact.ports.tokenizer import Tokenizer
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import CompactResult
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock
from tests.problems import problems
from tests.service.test_every_transcript import everything
from tests.service.test_summaries import Hooked, conversation, opened

DRY = CompactCall(trigger="manual", target_tokens=6_000, dry_run=True)
REPO = Path(__file__).resolve().parents[2]


async def dry_run(service: Service, call: CompactCall = DRY) -> CompactResult:
    await service.append_messages(conversation(), "s")
    result = await service.compact("s", call)
    assert result.status == "dry_run", result.declined
    return result


def said(result: CompactResult) -> str:
    """What a refused plan names as changed."""
    assert result.status == "failed", result
    [reason] = result.declined
    assert reason.reason == "plan_changed"
    assert result.boundary_uuid == ""
    assert "dry_run" in result.next
    return reason.detail


async def test_a_plan_is_carried_out_to_the_letter(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        done = await service.apply_plan("s", plan.plan_id)
        assert done.status == "compacted"
        assert done.boundary_uuid
        same = (
            "strategy",
            "tokens_before",
            "tokens_after",
            "target_tokens",
            "spans",
            "loss",
            "memory_tokens",
            "plan_id",
        )
        assert [getattr(done, name) for name in same] == [getattr(plan, name) for name in same]
        assert (await service.status("s")).message_tokens == plan.tokens_after
        assert problems(await everything(service, "s")) == []


async def test_a_dry_run_changes_nothing_and_gives_the_same_plan_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        before = await service.status("s")
        assert (await service.compact("s", DRY)).plan_id == plan.plan_id
        other = await service.compact("s", replace(DRY, target_tokens=5_000))
        assert other.plan_id != plan.plan_id
        assert await service.status("s") == before


async def test_a_plan_writes_what_compacting_at_once_would_have_written(tmp_path: Path) -> None:
    texts = []
    for name in ("planned", "at once"):
        folder = tmp_path / name
        folder.mkdir()
        async with opened(folder) as service:
            if name == "planned":
                await service.apply_plan("s", (await dry_run(service)).plan_id)
            else:
                await service.append_messages(conversation(), "s")
                await service.compact("s", replace(DRY, dry_run=False))
            texts.append(await everything(service, "s"))
    assert texts[0] == texts[1]


async def test_a_plan_survives_a_restart_with_other_hash_seeds(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
    script = (
        "import sys, anyio\n"
        "from pathlib import Path\n"
        "from tests.service.test_summaries import opened\n"
        "async def main():\n"
        "    async with opened(Path(sys.argv[1])) as service:\n"
        "        done = await service.apply_plan('s', sys.argv[2])\n"
        "        print(done.status, done.tokens_after, [d.detail for d in done.declined])\n"
        "anyio.run(main)\n"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(REPO)}
    ran = await anyio.run_process(
        [sys.executable, "-c", script, str(tmp_path), plan.plan_id], env=env, stderr=subprocess.PIPE
    )
    assert ran.stdout.decode().strip() == f"compacted {plan.tokens_after} []"


@pytest.mark.parametrize(
    "call",
    [
        DRY,
        CompactCall(trigger="reactive", force=True, dry_run=True),
        replace(DRY, target_tokens=None, trigger="agent", force=True),
    ],
)
async def test_what_was_appended_since_follows_the_plan(tmp_path: Path, call: CompactCall) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s", SessionFacts(context_window=16_000))
        plan = await service.compact("s", call)
        assert plan.status == "dry_run", plan.declined
        await service.append_messages(
            [{"role": "assistant", "content": "said meanwhile"}], "s", SessionFacts(overhead_tokens=77)
        )
        await service.append_messages([{"role": "user", "content": "and more " * 500}], "s")
        done = await service.apply_plan("s", plan.plan_id)
        assert done.status == "compacted", done.declined
        assert (done.tokens_after, done.loss, done.spans) == (plan.tokens_after, plan.loss, plan.spans)
        texts = [str(message) for message in await everything(service, "s")]
        assert "said meanwhile" in texts[-2]
        assert "and more" in texts[-1]
        assert (await service.status("s")).message_tokens > plan.tokens_after


async def test_a_plan_works_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        await service.apply_plan("s", plan.plan_id)
        after = await service.status("s")
        assert "a compaction" in said(await service.apply_plan("s", plan.plan_id))
        assert await service.status("s") == after


async def test_an_undo_makes_a_plan_void_and_a_new_dry_run_makes_it_good_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        await service.apply_plan("s", plan.plan_id)
        await service.undo("s")
        assert "an undo" in said(await service.apply_plan("s", plan.plan_id))
        anew = await service.compact("s", DRY)
        assert (await service.apply_plan("s", anew.plan_id)).status == "compacted"


async def snipped(service: Service) -> None:
    done = await service.snip("s", SnipRequest(rules=("tool:Read",)))
    assert done.executed


async def cleared(service: Service) -> None:
    assert (await service.microcompact("s", MicroRequest(mode=MicroMode.ALL))).tokens_freed > 0


async def compacted(service: Service) -> None:
    assert (await service.compact("s", CompactCall(trigger="manual", force=True, target_tokens=5_000))).boundary_uuid


async def noted(service: Service) -> None:
    await service.update_memory("s", "# Notes\n\n## Task\nMend rule_7.\n")


async def widened(service: Service) -> None:
    await service.append_messages([{"role": "assistant", "content": "ok"}], "s", SessionFacts(context_window=50_000))


async def renamed(service: Service) -> None:
    await service.append_messages([{"role": "assistant", "content": "ok"}], "s", SessionFacts(model="claude-opus-4-1"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (snipped, "a snip"),
        (cleared, "a clearing of tool results"),
        (compacted, "a compaction"),
        (noted, "the session memory"),
        (widened, "the context window"),
        (renamed, "the model"),
    ],
)
async def test_what_changed_since_is_named_and_nothing_is_written(tmp_path: Path, change: Any, named: str) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        await change(service)
        before = await service.status("s")
        assert named in said(await service.apply_plan("s", plan.plan_id))
        assert await service.status("s") == before


async def test_other_settings_make_a_plan_void(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
    settings = replace(
        load_settings({}), policy=Policy(min_gain_percent=6), db=tmp_path / "a.db", summarizers=("agent",)
    )
    async with opened(tmp_path, settings=settings) as service:
        assert "the settings" in said(await service.apply_plan("s", plan.plan_id))


async def test_lines_of_hooks_are_told_as_a_change(tmp_path: Path) -> None:
    hooks = Hooked(pre_compact=HookOutcome("KEEP-ME-77"))
    async with opened(tmp_path, hooks=hooks) as service:
        plan = await dry_run(service)
        assert hooks.seen == []
        assert "hooks add lines" in said(await service.apply_plan("s", plan.plan_id))
        assert "KEEP-ME-77" not in str(await everything(service, "s"))


async def test_hooks_that_add_nothing_run_once_and_do_not_void_a_plan(tmp_path: Path) -> None:
    hooks = Hooked(pre_compact=HookOutcome(warnings=("slow hook",)), post_compact=HookOutcome(verified=False))
    async with opened(tmp_path, hooks=hooks) as service:
        plan = await dry_run(service)
        done = await service.apply_plan("s", plan.plan_id)
        assert (done.status, done.verified) == ("compacted", False)
        assert "slow hook" in done.warnings
        assert [details.event for details in hooks.seen] == ["pre_compact", "session_start", "post_compact"]


async def test_a_blocking_hook_blocks_a_plan_that_was_not_forced(tmp_path: Path) -> None:
    hooks = Hooked(pre_compact=HookOutcome(blocked="not today"))
    async with opened(tmp_path, hooks=hooks) as service:
        plan = await dry_run(service)
        assert (await service.apply_plan("s", plan.plan_id)).status == "blocked_by_hook"
        forced = await service.compact("s", replace(DRY, force=True))
        assert (await service.apply_plan("s", forced.plan_id)).status == "compacted"


class Undoing:
    """A hook during which somebody else compacts."""

    def __init__(self) -> None:
        self.service: Service | None = None

    async def run(self, details: HookDetails) -> HookOutcome:
        if self.service is not None and details.event == "pre_compact":
            await compacted(replace(self.service, deps=replace(self.service.deps, hooks=None)))
        return HookOutcome()


async def test_a_compaction_while_the_hooks_run_makes_the_plan_void(tmp_path: Path) -> None:
    hooks = Undoing()
    async with opened(tmp_path, hooks=hooks) as service:
        plan = await dry_run(service)
        hooks.service = service
        assert "at this very moment" in said(await service.apply_plan("s", plan.plan_id))
        assert (await service.status("s")).compactions == 1


async def test_two_at_once_write_one_boundary(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        results: list[CompactResult] = []

        async def one() -> None:
            results.append(await service.apply_plan("s", plan.plan_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)
        assert sorted(result.status for result in results) == ["compacted", "failed"]
        assert (await service.status("s")).compactions == 1


async def test_plans_that_are_not_there_expired_or_another_sessions_are_refused(tmp_path: Path) -> None:
    clock = FixedClock()
    async with opened(tmp_path, clock=clock) as service:
        plan = await dry_run(service)
        await service.append_messages(conversation(), "other")
        twin = await service.compact("other", DRY)
        assert twin.plan_id != plan.plan_id
        with pytest.raises(CallerError, match="of another session"):
            await service.apply_plan("other", plan.plan_id)
        with pytest.raises(CallerError, match="no plan of this id"):
            await service.apply_plan("s", "nonsense")
        with pytest.raises(CallerError, match="no plan of this id"):
            await service.apply_plan("s", "")
        with pytest.raises(CallerError, match="no plan of this id"):
            await service.apply_plan("s", "plan-ffff")
        with pytest.raises(CallerError, match="There is no session"):
            await service.apply_plan("nobody", plan.plan_id)
        elsewhere = replace(service, namespace="tenant")
        await elsewhere.append_messages(conversation(), "s")
        with pytest.raises(CallerError, match="no plan of this id"):
            await elsewhere.apply_plan("s", plan.plan_id)
        clock.at_ms += 3_600_001
        with pytest.raises(CallerError, match="older than an hour"):
            await service.apply_plan("s", plan.plan_id)
        assert (await service.apply_plan("s", (await service.compact("s", DRY)).plan_id)).status == "compacted"


async def test_a_fork_has_plans_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        fork = await service.fork_session("s", new_session_id="twin")
        own = await service.compact("twin", DRY)
        assert own.plan_id != plan.plan_id
        assert (await service.apply_plan("s", plan.plan_id)).status == "compacted"
        assert (await service.apply_plan(fork.session_id, own.plan_id)).status == "compacted"


async def test_a_plan_is_no_summary_that_waits_and_a_summary_no_plan(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        with pytest.raises(CallerError, match="No compaction waits"):
            await service.submit_summary(plan.plan_id, "a summary")
        asked = await service.compact(
            "s", replace(DRY, dry_run=False, agent_writes=True, custom_instructions="dwell on rule_7")
        )
        assert asked.status == "summary_required"
        with pytest.raises(CallerError, match="no plan of this id"):
            await service.apply_plan("s", asked.compaction_id)


async def test_a_dry_run_that_would_need_a_summary_has_no_plan(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        result = await service.compact("s", replace(DRY, agent_writes=True, custom_instructions="dwell on rule_7"))
        assert (result.status, result.plan_id) == ("dry_run", "")


async def test_a_client_s_own_history_is_only_prepared(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s", SessionFacts(owner="client"))
        plan = await service.compact("s", DRY)
        done = await service.apply_plan("s", plan.plan_id)
        assert (done.status, done.applies_to) == ("prepared", "stored_view")


async def test_a_rewound_prompt_makes_a_plan_void(tmp_path: Path) -> None:
    records = [
        {
            "type": message["role"],
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": "s",
            "timestamp": f"2026-01-01T00:{number % 60:02d}:00.000Z",
            "message": message,
        }
        for number, message in enumerate(conversation())
    ]
    async with opened(tmp_path) as service:
        await service.import_content("\n".join(json.dumps(record) for record in records))
        plan = await service.compact("s", DRY)
        again = {
            **records[-1],
            "uuid": "again",
            "parentUuid": "u40",
            "message": {"role": "user", "content": "Go back."},
        }
        await service.import_content(json.dumps(again), session_id="s")
        assert "Go back." in str((await everything(service, "s"))[-1])
        assert said(await service.apply_plan("s", plan.plan_id)).endswith("the live context")


class Grown:
    """The tokenizer under its own name, but with a vocabulary that counts more."""

    def __init__(self, inner: Tokenizer) -> None:
        self.inner = inner
        self.name, self.state, self.reason = inner.name, inner.state, ""

    def warm(self) -> None:
        self.inner.warm()
        self.state = self.inner.state

    def count(self, texts: Sequence[str]) -> list[int]:
        return [number * 2 for number in self.inner.count(texts)]


async def test_a_plan_that_comes_out_otherwise_is_not_carried_out_even_if_nothing_can_be_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        plan = await dry_run(service)
        other = replace(service, deps=replace(service.deps, tokenizer=Grown(service.deps.tokenizer)))
        assert "the plan itself" in said(await other.apply_plan("s", plan.plan_id))
        assert (await service.apply_plan("s", plan.plan_id)).status == "compacted"
