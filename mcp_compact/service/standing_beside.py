"""What stands beside a live context in the archive, found without reading all of the archive.

Reasoning of the Responses API is no message, so it is not live; what it led to goes out as it came only with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey, SessionRow
from mcp_compact.service.deps import Deps
from mcp_compact.transcripts.beside import Beside, beside_of, is_silent
from mcp_compact.transcripts.registry import CODEX, RESPONSES

AT_ONCE = 2_000
"""So many records are read in one transaction."""
NEAR = 64
"""Live records that are no further apart are read with what stands between; so much is looked back at first."""


async def beside_live(deps: Deps, row: SessionRow, live: LiveContext, format_name: str) -> Beside | None:
    """What the Responses API wants back beside the live messages, system prompts left out; None for other formats."""
    if format_name not in (RESPONSES, CODEX):
        return None
    ours = await own_records(deps, row.key)
    near = [record for record in await _near(deps, row, live) if record.uuid not in ours]
    beside = beside_of([r for r in near if r.is_message or is_silent(r.raw)], [record.uuid for record in live.all])
    return beside if row.forked_at is None else without_unled(beside, live.records)


async def own_records(deps: Deps, key: SessionKey) -> frozenset[MessageUuid]:
    """Our own markers and what they brought: they are no part of the dialogue."""
    ours = [marker for marker in await deps.store.markers(key) if not marker.native]
    return frozenset(uuid for marker in ours for uuid in (marker.uuid, *marker.service))


def without_unled(beside: Beside, records: Sequence[Record]) -> Beside:
    """A fork begins without the reasoning of its parent: answers that stand without any are not asked about it."""
    unled = {record.uuid for record in records if record.type == "assistant" and record.uuid not in beside.before}
    return replace(beside, parted=beside.parted | unled)


async def _near(deps: Deps, row: SessionRow, live: LiveContext) -> list[Record]:
    """The records of the archive about the live ones, each stretch from the message before it on."""
    found: list[Record] = []
    runs = list(_runs(sorted(record.seq for record in live.records)))
    for at, (first, last) in enumerate(runs):
        floor = runs[at - 1][1] if at else 0
        found += await _before(deps, row.key, floor, first - 1)
        end = last if at + 1 < len(runs) else row.last_seq
        for start in range(first - 1, end, AT_ONCE):
            found += await _records(deps, row.key, start, min(start + AT_ONCE, end))
    return found


def _runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last number of each run of numbers that are near each other."""
    first = last = 0
    for seq in seqs:
        if last and seq - last > NEAR:
            yield first, last
            first = seq
        first, last = first or seq, seq
    if last:
        yield first, last


async def _before(deps: Deps, key: SessionKey, floor: int, up_to: int) -> list[Record]:
    """What stands right before a stretch, from a message on."""
    number = NEAR
    while True:
        start = max(floor, up_to - number)
        found = await _records(deps, key, start, up_to)
        if start == floor or any(record.is_message for record in found):
            return found
        number *= 4


async def _records(deps: Deps, key: SessionKey, after: int, up_to: int) -> list[Record]:
    return await deps.store.records(key, after_seq=after, up_to_seq=up_to, live_only=False) if after < up_to else []
