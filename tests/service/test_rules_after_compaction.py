"""The rules of a stored session outlive our own markers: compactions, clearings and undos."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.config import load_settings
from mcp_compact.service.deps import session_key
from mcp_compact.service.handoff import handoff
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.rules import listed
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service

RULE = "Never edit the files below vendor/."
FORCED = CompactCall(trigger="manual", force=True, target_tokens=8_000)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(replace(load_settings({}), db=tmp_path / "a.db", hook_entry_points=False)) as made:
        await made.append_messages([{"role": "user", "content": f"Mend the parser. {RULE}"}, *rounds(0, 30)], "s")
        yield made


def rounds(first: int, last: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for number in range(first, last):
        out.append({"role": "assistant", "content": f"gauge_{number} is in src/gauges/part_{number}.py. " * 40})
        out.append({"role": "user", "content": f"go on with number {number}"})
    return out


async def rules(service: Service) -> list[str]:
    key = session_key(service.namespace, "s")
    row = await service.deps.row(key)
    records = await service.deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=False)
    return [rule.text for rule, _ in listed(records, (), ())]


async def handed_off(service: Service) -> list[str]:
    return [rule.text for rule in (await handoff(service.deps, session_key(service.namespace, "s"))).rules]


async def test_a_compaction_of_ours_hides_no_rule_that_was_said_before_it(service: Service) -> None:
    assert await rules(service) == await handed_off(service) == [RULE]
    assert (await service.compact("s", FORCED)).status == "compacted"
    assert await rules(service) == await handed_off(service) == [RULE]
    await service.append_messages(rounds(30, 33), "s")
    assert await rules(service) == await handed_off(service) == [RULE]


async def test_an_undo_hides_no_rule_either(service: Service) -> None:
    await service.compact("s", FORCED)
    assert (await service.undo("s")).status == "undone"
    assert await rules(service) == await handed_off(service) == [RULE]
    await service.append_messages(rounds(30, 33), "s")
    assert await rules(service) == await handed_off(service) == [RULE]
