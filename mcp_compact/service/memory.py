"""The session memory: read it, write it whole or by section."""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.policy import MemoryPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.snapshot import Memory
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.masking import masked
from mcp_compact.messages.memory_document import is_empty, parse, replace_section
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.results import MemoryResult

MAX_MEMORY_CHARS = 400_000
TRIES = 5
"""Of a section's update beside other writers."""


async def get_memory(deps: Deps, key: SessionKey) -> MemoryResult:
    """The memory as it stands, and how much of the live context it does not cover."""
    await deps.row(key)
    return await _result(deps, key, await deps.store.memory(key))


async def update_memory(
    deps: Deps, key: SessionKey, content: str, *, section: str, summarized_through: str
) -> MemoryResult:
    """Write a new version: the whole document, or one section of it.

    A whole update covers everything up to the newest record (or `summarized_through`); a section
    update leaves the mark where it was. Keys and tokens are masked. Raises CallerError where the text or the
    record is bad.
    """
    await deps.row(key)
    if len(content) > MAX_MEMORY_CHARS:
        raise CallerError("too_long", f"The memory is longer than {MAX_MEMORY_CHARS} characters.", "Shorten it.")
    text = masked(well_formed(content))
    if section.strip():
        memory = await _section_written(deps, key, section.strip(), text)
        return _checked(await _result(deps, key, memory), deps.settings.policy.memory)
    if summarized_through:
        mark: MessageUuid | None = MessageUuid(summarized_through)
        if await deps.store.record(key, MessageUuid(summarized_through)) is None:
            raise CallerError(
                "unknown_message",
                f"No message {summarized_through[:80]!r} in this session.",
                "Pass the uuid of a stored message, or leave summarized_through out.",
            )
    else:
        mark = await deps.store.newest_message(key)
    memory = await deps.store.write_memory(key, text, mark, "agent", deps.clock.now_ms())
    return _checked(await _result(deps, key, memory), deps.settings.policy.memory)


async def _section_written(deps: Deps, key: SessionKey, section: str, text: str) -> Memory:
    """The newest version with one section replaced. Where another was written meanwhile, that one is the base."""
    for left in reversed(range(TRIES)):
        old = await deps.store.memory(key)
        whole = replace_section(parse(old.text if old else ""), section, text).render()
        mark, version, now = old.mark_uuid if old else None, old.version if old else 0, deps.clock.now_ms()
        try:
            return await deps.store.write_memory(key, whole, mark, "agent", now, if_version=version)
        except CallerError as error:
            if error.code != "memory_changed" or not left:
                raise
    raise AssertionError("the last try returns or raises")


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
