"""The session memory as others write it: masked, and never over what was written meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_compact.messages.masking import MASK
from mcp_compact.service import rules
from mcp_compact.service.deps import session_key
from tests.service.test_summaries import opened

KEY = "ghp_" + "a1B2" * 9
"""What a token looks like; it opens nothing."""
RULE = "Never touch the folder vendor/."


async def test_keys_that_an_agent_notes_are_masked_whole_and_by_section(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages([{"role": "user", "content": "hello"}], "s")
        for section in ("", "Task"):
            written = await service.update_memory("s", f"push with {KEY}", section=section)
            assert KEY not in written.content
            assert f"push with {MASK}" in written.content


async def test_a_rule_leaves_the_memory_that_was_written_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages([{"role": "user", "content": RULE}], "s")
        await service.update_memory("s", f"# Notes\n\n## User requests and instructions\n- {RULE}\n")
        read = service.deps.store.memory
        others = [f"# Notes\n\n## User requests and instructions\n- {RULE}\n\n## Task\nport the lexer\n"]

        async def memory(key: Any) -> Any:
            found = await read(key)
            if others:
                await service.update_memory("s", others.pop())
            return found

        store = _Reading(service.deps.store, memory)
        await rules.drop(replace(service.deps, store=store), session_key(service.namespace, "s"), 1)
        left = (await service.get_memory("s")).content
        assert "port the lexer" in left
        assert RULE not in left


class _Reading:
    """The store, but for how it reads a memory."""

    def __init__(self, store: Any, memory: Any) -> None:
        self._store, self.memory = store, memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
