"""The live list and the live context: what the model is sent, derived from the archive."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, Marker, MarkerKind, chain, current_marker, last_boundary
from mcp_compact.messages.message import Record

HASH_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class LiveContext:
    """The live records in order, and the clearings that apply to them.

    `service` (the last boundary's summary, attachments and hook results) comes first, then the
    records that the boundary preserved, then what the active branch appended since.
    """

    service: tuple[Record, ...]
    records: tuple[Record, ...]
    """Preserved and appended records; the first one is the floor of the next compaction."""
    clearings: Mapping[MessageUuid, tuple[Clearing, ...]]
    boundary: Marker | None = None

    @property
    def all(self) -> tuple[Record, ...]:
        return self.service + self.records


def live_context(archive: Sequence[Record], markers: Sequence[Marker]) -> LiveContext:
    """The live context of an archive (records in the order of seq) and its markers.

    Records of a sub-agent never belong to their parent's context and are not expected here.
    """
    ours = {marker.uuid for marker in markers if not marker.native}
    ours |= {uuid for marker in markers if not marker.native for uuid in marker.service}
    dialogue = [record for record in archive if record.uuid not in ours]
    active = {dialogue[i].seq for i in active_positions([link_of(record) for record in dialogue])}
    on_chain = effective_chain(markers, active)
    boundary = last_boundary(on_chain)
    base_seq = boundary.base_seq if boundary else 0
    placed = {uuid for marker in markers for uuid in marker.service} | set(boundary.preserved if boundary else ())
    since = [r for r in dialogue if r.seq > base_seq and r.seq in active and r.is_message and r.uuid not in placed]
    kept = _chosen(archive, boundary.preserved if boundary else ())
    service = tuple(_chosen(archive, boundary.service if boundary else ()))
    snipped = {uuid for marker in on_chain for uuid in marker.snipped}
    records = tuple(r for r in (*kept, *since) if r.uuid not in snipped)
    return LiveContext(service, records, clearings_of(on_chain), boundary)


def effective_chain(markers: Sequence[Marker], active: Container[int]) -> list[Marker]:
    """The chain of the current marker, newest first.

    A client's own boundary counts only while its record is on the active branch (the user may
    have rewound to before it), and so does what was built upon it.
    """
    by_seq = {marker.seq: marker for marker in markers}
    kept: list[Marker] = []
    for marker in chain(current_marker(markers), by_seq):
        if marker.native and marker.seq not in active:
            kept = []
        else:
            kept.append(marker)
    return kept


def clearings_of(on_chain: Sequence[Marker]) -> dict[MessageUuid, tuple[Clearing, ...]]:
    """The clearings of a chain (newest first) by the record that they apply to, oldest first."""
    out: dict[MessageUuid, tuple[Clearing, ...]] = {}
    for marker in reversed(on_chain):
        if marker.kind in (MarkerKind.MICRO, MarkerKind.COMPACT):
            for clearing in marker.cleared:
                out[clearing.uuid] = (*out.get(clearing.uuid, ()), clearing)
    return out


def _chosen(archive: Sequence[Record], uuids: Sequence[MessageUuid]) -> list[Record]:
    wanted = set(uuids)
    return [record for record in archive if record.uuid in wanted]


def state_hash(seq: int, body_hash: bytes, clearings: Sequence[Clearing] = ()) -> int:
    """One record's share of the live hash: what it is, where it stands, and what of it is cleared."""
    state = b"[]"
    if clearings:
        state = repr(sorted((c.kind.value, c.block, -1 if c.part is None else c.part) for c in clearings)).encode()
    digest = blake2b(b"%d|%s|%s" % (seq, body_hash, state), digest_size=16)
    return int.from_bytes(digest.digest(), "big")


def live_hash(shares: Sequence[int]) -> str:
    """Hash of a live context: the sum of its records' shares, so that it can be kept while records come and go."""
    return f"{sum(shares) % HASH_MODULUS:032x}"
