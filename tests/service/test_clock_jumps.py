"""A clock that jumps, forwards and back: the order of messages is that in which they came, and nothing is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mcp_compact.adapters.sqlite.operations import connect
from mcp_compact.adapters.sqlite.operations.deep_checks import deep_check
from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.config import load_settings
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.reading import live_messages
from mcp_compact.testing import FixedClock
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.service.test_clearing import talk

KEY = SessionKey("local", "s")
YEAR_MS = 365 * 24 * 3600 * 1000
NOW_MS = 56 * YEAR_MS


async def test_messages_keep_their_order_and_a_compaction_can_be_undone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_service(replace(load_settings({}), db=path)) as opened:
        clock = FixedClock(NOW_MS)
        service = replace(opened, deps=replace(opened.deps, clock=clock))
        await service.append_messages(talk(30, 60), "s")
        for at, jump in enumerate((-20 * YEAR_MS, 14 * YEAR_MS, -YEAR_MS, 0)):
            clock.at_ms = NOW_MS + jump
            await service.append_messages([{"role": "user", "content": f"word {at}"}], "s")
            await service.append_messages([{"role": "assistant", "content": f"answer {at}"}], "s")
            await service.microcompact("s", MicroRequest(mode=MicroMode.AGE, now_ms=clock.at_ms))
            before = await service.status("s")
            done = await service.compact("s", CompactCall(trigger="manual", force=True, target_tokens=1500))
            clock.at_ms = NOW_MS - jump
            assert done.boundary_uuid
            assert problems(await live_messages(service.deps, KEY)) == []
            assert (await service.undo("s")).live_hash == before.live_hash
        said = [str(item) for item in await live_messages(service.deps, KEY)]
        places = [next(n for n, text in enumerate(said) if f"word {at}" in text) for at in range(4)]
        assert places == sorted(places)
        assert [line.session_id for line in await service.sessions()] == ["s"]
    conn = connect(path)
    assert deep_check(conn).is_sound
    conn.close()
