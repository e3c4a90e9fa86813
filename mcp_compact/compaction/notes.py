"""Bringing a memory up to date: what it says already, and what the extractor finds in newer messages."""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.extract import Material, extract
from mcp_compact.compaction.extract_passages import Told
from mcp_compact.compaction.fitting import fit, merged
from mcp_compact.compaction.snapshot import Memory
from mcp_compact.messages.memory_document import MemoryDocument, is_empty, parse
from mcp_compact.messages.weights import CountUnits

NOTES_SHARE = 3
"""The agent's own notes are carried on whole where they take at most a third of the room."""


def updated_memory(
    memory: Memory | None,
    material: Material,
    units: int,
    section_units: int | None,
    count: CountUnits,
    told: Told | None = None,
) -> MemoryDocument:
    """The memory of an old one (of which `material` need not know) and newer messages, in so many units.

    What an agent wrote is carried on as it is, and what it lacks is put below; what the extractor
    wrote competes with the new lines for the room.
    """
    previous = parse(memory.text) if memory is not None and not is_empty(memory.text) else None
    if memory is None or previous is None:
        return extract(material, units, section_units, count, told)
    own = count([previous.render()])[0]
    if memory.writer != "agent" or own * NOTES_SHARE > units:
        return extract(replace(material, previous=previous), units, section_units, count, told)
    found = extract(material, units - own, section_units, count, told)
    return fit(merged(previous, found), units, None, count, None)
