"""The session memory: read it, write it whole or by section."""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.policy import MemoryPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.snapshot import Memory
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import is_empty, parse, replace_section
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.results import MemoryResult

MAX_MEMORY_CHARS = 400_000


async def get_memory(deps: Deps, key: SessionKey) -> MemoryResult:
    """The memory as it stands, and how much of the live context it does not cover."""
    await deps.row(key)
    return await _result(deps, key, await deps.store.memory(key))


async def update_memory(
    deps: Deps, key: SessionKey, content: str, *, section: str, summarized_through: str
) -> MemoryResult:
    """Write a new version: the whole document, or one section of it.

    A whole update covers everything up to the newest record (or `summarized_through`); a section
    update leaves the mark where it was. Raises CallerError where the text or the record is bad.
    """
    await deps.row(key)
    if len(content) > MAX_MEMORY_CHARS:
        raise CallerError("too_long", f"The memory is longer than {MAX_MEMORY_CHARS} characters.", "Shorten it.")
    text, old = well_formed(content), await deps.store.memory(key)
    if section.strip():
        text = replace_section(parse(old.text if old else ""), section.strip(), text).render()
        mark = old.mark_uuid if old else None
    elif summarized_through:
        mark = MessageUuid(summarized_through)
        if await deps.store.record(key, mark) is None:
            raise CallerError(
                "unknown_message",
                f"No message {summarized_through[:80]!r} in this session.",
                "Pass the uuid of a stored message, or leave summarized_through out.",
            )
    else:
        mark = await deps.store.newest_message(key)
    memory = await deps.store.write_memory(key, text, mark, "agent", deps.clock.now_ms())
    return _checked(await _result(deps, key, memory), deps.settings.policy.memory)


def _checked(result: MemoryResult, policy: MemoryPolicy) -> MemoryResult:
    if result.tokens <= policy.total_tokens:
        return result
    note = f"{result.tokens} tokens; a compaction takes {policy.total_tokens} at most and cuts the rest"
    return replace(result, warnings=(note,))


async def _result(deps: Deps, key: SessionKey, memory: Memory | None) -> MemoryResult:
    row = await deps.row(key)
    around: Surroundings = await deps.surroundings(key.session_id)
    text = memory.text if memory else ""
    covered = memory.mark_seq if memory and memory.mark_seq else 0
    return MemoryResult(
        session_id=key.session_id,
        content=text,
        version=memory.version if memory else 0,
        tokens=family(row).tokens(Weight(units=around.count([text])[0])) if text else 0,
        last_summarized_uuid=(memory.mark_uuid or "") if memory else "",
        uncovered_messages=max(0, min(row.live_count, row.last_seq - covered)),
        is_empty=is_empty(text),
    )
