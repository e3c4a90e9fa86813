"""What a caller is told to do where a compaction came to nothing, for every reason that there is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mcp_compact
from mcp_compact.compaction.in_memory import conversation, snapshot_of
from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.compaction.pipeline import NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest, Surroundings
from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.ports.hooks import HookDetails, HookOutcome
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.next_steps import NEXT, OF_PATHS, OF_SIZE, Situation, next_step
from mcp_compact.service.service import Service
from mcp_compact.testing import Talk, tool_result
from tests.conversations import live
from tests.service.test_summaries import conversation as long_work
from tests.service.test_summaries import opened

TOLD_ELSEWHERE = {"breaker_open", "plan_changed"}
"""With a sentence of their own where they arise."""
OF_OTHER_TOOLS = ("compaction/micro.py", "compaction/snip.py")
"""Declines of clearing and snipping: what to do stands there."""
MADE_OF_ANOTHER = {
    "answer.reason",
    "committed.reason",
    "done.reason",
    "failed.reason",
    "peeled.reason",
    "text.reason",
    "written.reason",
}
"""Reasons handed on, which are found where they arise."""
CALL = CompactCall(trigger="manual", force=True)


def _strings(node: ast.AST, names: Mapping[str, ast.AST]) -> Iterator[str]:
    """The texts that an expression can be; what it is made of where it is not one of the source's own."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _strings(body, names)
            yield from _strings(orelse, names)
        case ast.Name(id=name) if name in names:
            yield from _strings(names[name], names)
        case ast.Call(func=ast.Name(id="_reason")):
            return
        case _:
            yield f"?{ast.unparse(node)}"


def _in_source(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Declined"), args=[_, reason, *_]):
                yield from _strings(reason, names)
            case ast.Call(func=ast.Name(id="Refused" | "WriterFailed"), args=[reason, *_]):
                yield from _strings(reason, names)
            case ast.FunctionDef(name="_reason"):
                values = [leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Return)]
                for value in filter(None, values):
                    yield from _strings(value, names)
            case ast.Call(func=ast.Name(id="Committed"), args=[ast.Constant(value=None), reason]):
                yield from _strings(reason, names)


def reasons_in_the_source() -> set[str]:
    root = Path(mcp_compact.__file__).parent
    paths = [path for path in root.rglob("*.py") if not path.as_posix().endswith(OF_OTHER_TOOLS)]
    return {reason for path in paths for reason in _in_source(path)}


def situation(target: int | None = None, instructions: str = "", overhead: int = 0) -> Situation:
    """An ordinary session of some 2,000 tokens."""
    talk = Talk()
    talk.user("Please look.")
    talk.assistant("answer " * 2_000)
    snapshot = snapshot_of(conversation(live(talk), CLAUDE, Surroundings()))
    request = CompactRequest("manual", target_tokens=target, custom_instructions=instructions)
    return Situation(replace(snapshot, overhead_tokens=overhead), request, Policy())


def told(reason: str, there: Situation, path: str = "session_memory") -> str:
    return next_step(NothingDone("failed", (Declined(path, reason, ""),)), there)


def test_every_reason_that_there_is_has_its_sentence_and_no_sentence_is_of_none() -> None:
    found = reasons_in_the_source()
    assert {reason[1:] for reason in found if reason.startswith("?")} <= MADE_OF_ANOTHER
    # What clearing, snipping and undoing answer of their commits.
    others = {"nothing_to_clear", "nothing_to_snip", "nothing_to_undo"}
    known = {reason for reason in found if not reason.startswith("?")} - TOLD_ELSEWHERE - others
    assert known == {*NEXT, *OF_PATHS, *OF_SIZE, "same_attempt"}


@pytest.mark.parametrize("reason", sorted({*NEXT, *OF_PATHS, *OF_SIZE, "same_attempt"}))
def test_a_reason_that_is_no_matter_of_the_target_does_not_ask_for_another_one(reason: str) -> None:
    within, above = told(reason, situation()), told(reason, situation(target=500))
    assert within.endswith((".", "all the same"))
    assert "larger target_tokens" not in within or reason == "too_large"
    by_size = reason in (*OF_SIZE, "same_attempt") and reason != "too_long"
    assert ("larger target_tokens" in above) == (by_size or reason == "too_large")
    assert ("smaller target_tokens" in within) == by_size
    assert "smaller target_tokens" not in above


@pytest.mark.parametrize("reason", sorted(NEXT))
def test_a_writer_that_failed_is_not_the_only_way_where_only_instructions_need_one(reason: str) -> None:
    plain, asked = told(reason, situation(), "summary"), told(reason, situation(instructions="dwell"), "summary")
    assert asked.startswith(plain)
    assert ("Without custom_instructions" in asked) == (asked != plain)


def test_the_last_reason_decides_and_one_that_only_names_a_path_never_does() -> None:
    declined = (
        Declined("session_memory", "custom_instructions", ""),
        Declined("reactive", "not_configured", ""),
        Declined("summary", "no_key", ""),
    )
    assert next_step(NothingDone("failed", declined), situation()) == NEXT["no_key"]
    assert next_step(NothingDone("failed", (*declined[:2], declined[1])), situation())


@pytest.mark.parametrize("reason", OF_SIZE)
def test_after_a_prompt_that_was_too_long_nobody_is_told_to_go_on(reason: str) -> None:
    there = situation()
    text = told(reason, replace(there, request=replace(there.request, trigger="reactive")), "reactive")
    assert "too long for the provider" in text
    assert "The largest message is r2 (assistant, " in text
    assert "larger window" in text
    assert "Go on working" not in text


def test_an_overhead_that_fills_the_window_is_named() -> None:
    text = told("no_room", situation(overhead=190_000))
    assert "too large" in text
    assert "190000 tokens" in text


def one_large(chars: int) -> list[dict[str, Any]]:
    """A request, a call, and one result that is nearly all of it."""
    call = {"type": "tool_use", "id": "b1", "name": "Bash", "input": {"command": "cat x"}}
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [tool_result("b1", "word " * (chars // 5))]},
    ]


WIDE = SessionFacts(model="claude-sonnet-4-5", context_window=200_000)


@pytest.mark.parametrize("agent_writes", [True, False])
@pytest.mark.parametrize("target", [300, None])
async def test_a_full_context_that_cannot_shrink_is_told_with_its_largest_message_and_what_helps(
    tmp_path: Path, target: int | None, agent_writes: bool
) -> None:
    async with opened(tmp_path) as service:
        uuids = (await service.append_messages(one_large(1_800_000), "s", WIDE)).uuids
        call = replace(CALL, target_tokens=target, agent_writes=agent_writes)
        result = await service.compact("s", call)
        assert result.status == "nothing_to_compact"
        assert "Go on working" not in result.next
        assert "of 200000 tokens" in result.next
        assert f"{uuids[2]} (user, result of Bash, " in result.next
        assert "mode=all and keep=0" in result.next
        assert f"uuids={uuids[2]} and force=true" in result.next
        assert "larger window" in result.next


async def test_what_is_said_to_help_does_help(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(one_large(1_800_000), "a", WIDE)
        await service.microcompact("a", MicroRequest(mode=MicroMode.ALL, keep=0))
        assert (await service.status("a")).level == "ok"
        uuids = (await service.append_messages(one_large(1_800_000), "b", WIDE)).uuids
        await service.snip("b", SnipRequest(uuids=(MessageUuid(uuids[2]),), force=True))
        assert (await service.status("b")).level == "ok"


async def test_messages_above_a_target_that_cannot_be_reached_are_told_so_whatever_the_window(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = (await service.append_messages(one_large(48_000), "s", WIDE)).uuids
        result = await service.compact("s", replace(CALL, target_tokens=500))
        assert result.status in ("nothing_to_compact", "failed")
        assert "above the target of 500" in result.next
        assert uuids[2] in result.next
        assert "a larger target_tokens" in result.next


async def test_only_what_would_be_done_is_offered(tmp_path: Path) -> None:
    """A call that waits is taken out by nothing, and what a tool that is never cleared said is not cleared."""
    async with opened(tmp_path) as service:
        large = one_large(1_800_000)
        large[1]["content"] += [{"type": "tool_use", "id": "b2", "name": "Bash", "input": {"command": "sleep 9"}}]
        large[1]["content"][0]["name"] = "mcp__db__query"
        await service.append_messages(large, "s", WIDE)
        result = await service.compact("s", CALL)
        assert "microcompact_tool_results" not in result.next
        assert "snip_messages" not in result.next
        assert "larger window" in result.next


class Rival:
    """A hook during which somebody else compacts the same session."""

    def __init__(self, other: Service) -> None:
        self.other = other

    async def run(self, details: HookDetails) -> HookOutcome:
        if details.event == "pre_compact":
            assert (await self.other.compact("s", replace(CALL, target_tokens=6_000))).status == "compacted"
        return HookOutcome()


async def test_who_lost_a_race_is_told_that_somebody_else_compacted_and_where_the_context_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as winner, opened(tmp_path, hooks=Rival(winner)) as loser:
        await winner.append_messages(long_work(), "s")
        result = await loser.compact("s", replace(CALL, target_tokens=6_000))
        assert (result.status, [item.reason for item in result.declined][-1]) == ("failed", "base_changed")
        assert "Somebody else compacted" in result.next
        assert "get_messages_after_boundary" in result.next
        assert "target_tokens" not in result.next
