"""Micro-compaction as a use case: the figures of the session, the answer, the reasons."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.compaction.policy import levels
from mcp_compact.config import load_settings
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service

WORDS = "the parser reads a line of the file and gives the offset back "
TOKENS = MicroRequest(mode=MicroMode.TOKENS)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(replace(load_settings({}), db=tmp_path / "a.db")) as opened:
        yield opened


def talk(calls: int, times: int, tool: str = "Read") -> list[dict[str, Any]]:
    """Reads of so many files, each result so many times a dozen words."""
    out: list[dict[str, Any]] = [{"role": "user", "content": "read them"}]
    for at in range(calls):
        block = {"type": "tool_use", "id": f"t{at}", "name": tool, "input": {"file_path": f"/src/{at}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": WORDS * times}
        out += [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}]
    return [*out, {"role": "assistant", "content": [{"type": "text", "text": "read"}]}]


async def test_by_tokens_a_full_context_loses_its_oldest_results_and_keeps_the_newest(service: Service) -> None:
    facts = SessionFacts(model="claude-sonnet-4-5", context_window=128_000)
    await service.append_messages(talk(60, 100), "s", facts)
    before = await service.status("s")
    assert before.tokens >= before.warning_at
    done = await service.microcompact("s", TOKENS)
    assert (done.status, done.reason, done.detail) == ("compacted", "", "")
    after = await service.status("s")
    assert (done.tokens_before, done.tokens_after) == (before.message_tokens, after.message_tokens)
    assert done.tokens_freed == before.message_tokens - after.message_tokens >= 20_000
    assert after.message_tokens > 40_000
    ((tool, number, _),) = done.cleared
    assert tool == "Read"
    assert 0 < number < 55
    first = await service.original("s", "t0")
    assert done.first_changed_uuid == first.uuid
    assert first.text == WORDS * 100
    again = await service.microcompact("s", replace(TOKENS, trigger_tokens=0))
    assert (again.status, again.reason) == ("nothing_to_compact", "saves_too_little")


async def test_below_the_sessions_own_warning_level_nothing_happens_unless_asked(service: Service) -> None:
    await service.append_messages(talk(60, 100), "s", SessionFacts(model="claude-sonnet-4-5", context_window=400_000))
    status = await service.status("s")
    quiet = await service.microcompact("s", TOKENS)
    assert (quiet.status, quiet.reason) == ("nothing_to_compact", "below_trigger")
    assert str(status.tokens) in quiet.detail
    assert str(levels(400_000).warning) in quiet.detail
    assert "force" in quiet.next
    assert (await service.microcompact("s", replace(TOKENS, trigger_tokens=0))).status == "compacted"


async def test_overhead_counts_as_it_does_in_status(service: Service) -> None:
    facts = SessionFacts(model="claude-sonnet-4-5", context_window=400_000, overhead_tokens=350_000)
    await service.append_messages(talk(60, 100), "s", facts)
    assert (await service.microcompact("s", TOKENS)).status == "compacted"


async def test_the_settings_trigger_goes_before_the_windows(tmp_path: Path) -> None:
    settings = load_settings({"MCP_COMPACT_MICRO_TRIGGER_TOKENS": "1000", "MCP_COMPACT_MICRO_PROTECT_TOKENS": "2000",
                              "MCP_COMPACT_MICRO_CLEAR_AT_LEAST": "500"})  # fmt: skip
    async with open_service(replace(settings, db=tmp_path / "a.db")) as service:
        await service.append_messages(talk(12, 30), "s")
        done = await service.microcompact("s", TOKENS)
        assert done.status == "compacted"
        assert done.cleared[0][1] == 7


async def test_a_switch_of_the_settings_clears_inputs_and_the_original_comes_back(tmp_path: Path) -> None:
    settings = load_settings({"MCP_COMPACT_MICRO_CLEAR_INPUTS": "on"})
    async with open_service(replace(settings, db=tmp_path / "a.db")) as service:
        messages = talk(7, 20)
        for message in messages:
            for block in message["content"]:
                if isinstance(block, dict) and block["type"] == "tool_use":
                    block["input"]["content"] = WORDS * 20
        await service.append_messages(messages, "s")
        done = await service.microcompact("s", MicroRequest(mode=MicroMode.ALL))
        assert [(tool, number) for tool, number, _ in done.cleared] == [("Read", 2), ("Read input", 2)]
        page = await service.messages("s")
        assert page.messages[1]["content"][0]["input"] == {"cleared": "[Old tool result content cleared]"}
        assert page.messages[1]["content"][0]["id"] == "t0"
        assert page.tokens == done.tokens_after
        assert (await service.undo("s")).status == "undone"
        page = await service.messages("s")
        assert page.messages[1]["content"][0]["input"]["content"] == WORDS * 20


async def test_every_reason_says_what_to_do(service: Service) -> None:
    await service.append_messages(talk(2, 5), "s")
    for mode in MicroMode:
        answer = await service.microcompact("s", MicroRequest(mode=mode))
        assert answer.status == "nothing_to_compact"
        assert answer.reason
        assert answer.detail
        assert answer.next
