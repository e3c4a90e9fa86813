"""The session memory of everything up to now, by the extractor: what it is made of, and up to where it reaches."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.extract_passages import Told
from mcp_compact.compaction.notes import updated_memory
from mcp_compact.compaction.policy import MemoryPolicy
from mcp_compact.compaction.session_memory import summaries_of
from mcp_compact.compaction.snapshot import Reach, Snapshot
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import is_empty
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CountUnits

WRITER = "extractor"
NEWEST = Reach(1, 0, 1)
"""What a snapshot must reach for this: the newest record."""


def covered_seq(snapshot: Snapshot) -> int:
    """The newest record that the memory covers; 0 for none."""
    memory = snapshot.memory
    return (memory.mark_seq or 0) if memory is not None and not is_empty(memory.text) else 0


def newest_uuid(snapshot: Snapshot) -> MessageUuid | None:
    """The newest live record, service records included: what the last boundary said is covered as well."""
    places = [(item.seq, item.uuid) for item in snapshot.service] + [(item.seq, item.uuid) for item in snapshot.tail]
    return max(places)[1] if places else None


def memory_text(
    snapshot: Snapshot,
    records: Sequence[Record],
    limits: MemoryPolicy,
    count: CountUnits,
    told: Told | None = None,
) -> str | None:
    """The memory with what is new; None where nothing is. `records`: the live ones behind `covered_seq`.

    `told` is called with the place of each record that is read for lines.
    """
    summaries = summaries_of(snapshot)
    if not records and not summaries:
        return None
    material = Material(tuple(records), summaries=summaries)
    units, section = snapshot.family.units(limits.total_tokens), snapshot.family.units(limits.section_tokens)
    return updated_memory(snapshot.memory, material, units, section, count, told).render()
