"""The rules of a stored session: listed, dropped and pinned by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcp_compact.compaction.rules import DROPPED, Rule, rules_of, with_choices
from mcp_compact.compaction.snapshot import Registered
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import body_hash
from mcp_compact.messages.memory_document import REQUESTS, MemoryDocument, parse
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.compactions import branch
from mcp_compact.service.deps import Deps
from mcp_compact.service.pins import pin, unpin

INSTRUCTION = "instruction"
"""The kind of pins that are rules."""
TRIES = 5
"""Of a memory's update beside other writers."""


def listed(records: Sequence[Record], pinned: Sequence[str], dropped: Sequence[str]) -> tuple[tuple[Rule, bool], ...]:
    """The rules as they are numbered, and whether each was dropped: those in force first, dropped ones last."""
    held = with_choices(rules_of(branch(records)), pinned, dropped)
    return (*((rule, False) for rule in held), *((Rule(" ".join(text.split())), True) for text in dropped))


async def drop(deps: Deps, key: SessionKey, number: int) -> Rule:
    """Take the rule of this number out of memory and of what is given back; the archive keeps what was said.

    Raises CallerError `unknown_rule`, `unknown_session`.
    """
    rule, is_dropped = await _numbered(deps, key, number)
    if is_dropped:
        raise CallerError("dropped_already", f"Rule {number} was dropped already.", "`--pin` takes it up again.")
    if rule.pinned:
        await unpin(deps, key, await _pin_of(deps, key, rule.text))
    name = body_hash(_folded(rule.text).encode()).hex()[:16]
    await deps.store.register(key, Registered(DROPPED, name, rule.text), deps.clock.now_ms())
    await _out_of_memory(deps, key, rule.text)
    return rule


async def keep(deps: Deps, key: SessionKey, number: int) -> Rule:
    """Pin the rule of this number, so that no later sentence ends it; one that was dropped is taken up again.

    Raises CallerError `unknown_rule`, `unknown_session`, `too_many`.
    """
    rule, is_dropped = await _numbered(deps, key, number)
    if is_dropped:
        for item in await deps.store.registered(key):
            if item.kind == DROPPED and _folded(item.text) == _folded(rule.text):
                await deps.store.unregister(key, DROPPED, item.name)
    await pin(deps, key, rule.text, kind=INSTRUCTION)
    return replace(rule, pinned=True)


async def _numbered(deps: Deps, key: SessionKey, number: int) -> tuple[Rule, bool]:
    row = await deps.row(key)
    records = await deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=False)
    items = await deps.store.registered(key)
    pinned = [item.text for item in items if item.kind == INSTRUCTION]
    dropped = [item.text for item in items if item.kind == DROPPED]
    rules = listed(records, pinned, dropped)
    if not 1 <= number <= len(rules):
        raise CallerError(
            "unknown_rule", f"There is no rule {number}.", f"There are {len(rules)}: `mcp-compact rules`."
        )
    return rules[number - 1]


async def _pin_of(deps: Deps, key: SessionKey, text: str) -> str:
    items = await deps.store.registered(key)
    return next(i.name for i in items if i.kind == INSTRUCTION and _folded(i.text) == _folded(text))


async def _out_of_memory(deps: Deps, key: SessionKey, text: str) -> None:
    """Write the memory without the rule, where it holds it; its mark stays.

    Where another version was written meanwhile, that one is the base: what it noted must not be lost.
    """
    for left in reversed(range(TRIES)):
        memory = await deps.store.memory(key)
        made = without_rule(parse(memory.text), text) if memory is not None else None
        if memory is None or made is None or made == parse(memory.text):
            return
        mark, now_ms = memory.mark_uuid, deps.clock.now_ms()
        try:
            await deps.store.write_memory(key, made.render(), mark, memory.writer, now_ms, if_version=memory.version)
        except CallerError as error:
            if error.code != "memory_changed" or not left:
                raise
        else:
            return


def without_rule(document: MemoryDocument, text: str) -> MemoryDocument:
    """The document without these words among the user's; what else stood in their line stays."""
    sections = []
    for section in document.sections:
        lines = section.body.splitlines()
        if section.heading == REQUESTS:
            lines = [kept for line in lines if (kept := line.replace(text, "").rstrip()).strip(" -")]
        sections.append(replace(section, body="\n".join(lines)))
    return replace(document, sections=tuple(section for section in sections if section.body.strip()))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
