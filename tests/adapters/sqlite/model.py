"""What the archive must always equal: the live context of the pure model over everything that was stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.adapters.sqlite.operations.chain import last_boundary_from
from mcp_compact.compaction.plan import CompactionPlan, ServiceText
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.messages.codec import body_hash
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import effective_chain, live_context, live_hash, state_hash
from mcp_compact.messages.markers import Clearing, ClearKind, Marker, MarkerKind, chain, last_boundary
from mcp_compact.messages.message import Entry, Record
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.store import Committed, NativeBoundary, Prepared, SessionKey
from tests.adapters.sqlite.builders import KEY


@dataclass
class Model:
    """Records and markers as they were given to the store, and what each weighs."""

    archive: list[Record] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    weights: dict[MessageUuid, Weight] = field(default_factory=dict)
    results: dict[tuple[MessageUuid, int], Weight] = field(default_factory=dict)
    """What clearing the result at a place frees."""
    freed: dict[Clearing, Weight] = field(default_factory=dict)

    @property
    def uuids(self) -> list[MessageUuid]:
        return [record.uuid for record in self.archive]

    @property
    def active(self) -> set[int]:
        ours = {marker.uuid for marker in self.markers if not marker.native}
        ours |= {uuid for marker in self.markers if not marker.native for uuid in marker.service}
        dialogue = [record for record in self.archive if record.uuid not in ours]
        return {dialogue[at].seq for at in active_positions([link_of(record) for record in dialogue])}

    def head(self, before_seq: int | None = None) -> Marker | None:
        markers = [marker for marker in self.markers if before_seq is None or marker.seq < before_seq]
        chain = effective_chain(markers, self.active)
        return chain[0] if chain else None

    def add(self, item: Prepared) -> None:
        record = replace(item.record, seq=len(self.archive) + 1)
        self.archive.append(record)
        weight = item.weight
        if item.exact_units is not None:
            weight = Weight(item.exact_units, weight.results, weight.media, weight.messages)
        self.weights[record.uuid] = weight
        places = [at for at, block in enumerate(record.blocks) if block in record.results]
        for at, own, cleared in zip(places, item.result_weights, item.cleared_weights, strict=True):
            self.results[record.uuid, at] = own - cleared

    def add_native(self, boundary: NativeBoundary) -> None:
        seq = self.uuids.index(boundary.uuid) + 1
        head = self.head(seq)
        cleared: tuple[Clearing, ...] = ()
        if boundary.micro:
            cleared = self._cleared_by_client(boundary, seq)
        kind = MarkerKind.MICRO if boundary.micro else MarkerKind.COMPACT
        metadata = {**boundary.metadata, "strategy": "native"}
        marker = Marker(
            boundary.uuid, seq, kind, head.seq if head else None, seq, boundary.service, boundary.preserved, cleared,
            metadata=metadata, at_ms=self.archive[seq - 1].at_ms,
        )  # fmt: skip
        self.markers = sorted([*self.markers, marker], key=lambda item: item.seq)

    def _cleared_by_client(self, boundary: NativeBoundary, seq: int) -> tuple[Clearing, ...]:
        """The newest uncleared result of each call that stands before the marker."""
        done = {item for marker in effective_chain(self.markers, self.active) for item in marker.cleared}
        whole = {(item.uuid, item.block) for item in done if item.part is None}
        found: dict[str, Clearing] = {}
        for record in self.archive[: seq - 1]:
            for at, block in enumerate(record.blocks):
                if (
                    block in record.results
                    and block.tool_use_id in boundary.cleared_tool_use_ids
                    and (record.uuid, at) not in whole
                ):
                    found[block.tool_use_id] = Clearing(ClearKind.RESULT, record.uuid, at, None, block.tool_use_id)
        for clearing in found.values():
            parts = [
                self.freed[item]
                for item in done
                if item.part is not None and (item.uuid, item.block) == (clearing.uuid, clearing.block)
            ]
            self.freed[clearing] = self.results[clearing.uuid, clearing.block] - sum(parts, NOTHING)
        order = sorted(found.values(), key=lambda item: (self.uuids.index(item.uuid), item.block))
        return tuple(order)

    def add_committed(self, conn: sqlite3.Connection, committed: Committed) -> None:
        """A marker of ours, with the records that the store wrote for it."""
        marker = committed.marker
        assert marker is not None
        head = self.head()
        assert marker.parent_seq == (head.seq if head else None)
        assert marker.seq == len(self.archive) + 1
        for uuid in (marker.uuid, *marker.service):
            record = operations.record(conn, KEY, uuid)
            assert record is not None
            assert record.seq == len(self.archive) + 1
            self.archive.append(record)
            self.weights.setdefault(uuid, NOTHING)
        self.markers.append(marker)

    # ---- what must hold

    def live(self) -> tuple[list[Record], list[Record], dict[MessageUuid, tuple[Clearing, ...]]]:
        """Service records, the other live records, and the clearings on them."""
        found = live_context(self.archive, self.markers)
        # A preserved record that came after its boundary stands in both parts of the model's list.
        records = sorted({record.seq: record for record in found.records}.values(), key=lambda record: record.seq)
        clearings = {
            record.uuid: found.clearings[record.uuid]
            for record in (*found.service, *records)
            if record.uuid in found.clearings
        }
        return list(found.service), records, clearings

    def weight(self) -> Weight:
        service, records, clearings = self.live()
        freed = sum((self.freed[item] for items in clearings.values() for item in items), NOTHING)
        return sum((self.weights[record.uuid] for record in (*service, *records)), NOTHING) - freed

    def check_fork(self, conn: sqlite3.Connection, key: SessionKey, up_to: MessageUuid | None) -> None:
        """A fork is the live context up to a message under numbers of its own, without any marker."""
        service, rest, clearings = self.live()
        records = [*service, *rest]
        if up_to is not None:
            records = records[: 1 + [record.uuid for record in records].index(up_to)]
        uuids = [record.uuid for record in records]
        page = operations.live(conn, key, after=0, limit=10_000, max_bytes=1 << 40)
        row = operations.session(conn, key)
        assert page is not None
        assert row is not None
        assert [(record.uuid, record.body) for record in page.records] == [(item.uuid, item.body) for item in records]
        assert {uuid: set(items) for uuid, items in page.clearings.items()} == {
            uuid: set(items) for uuid, items in clearings.items() if uuid in uuids
        }
        freed = sum((self.freed[item] for uuid in uuids for item in clearings.get(uuid, ())), NOTHING)
        assert row.live_weight == sum((self.weights[uuid] for uuid in uuids), NOTHING) - freed
        assert row.live_hash == live_hash(
            [
                state_hash(at, body_hash(record.body), clearings.get(record.uuid, ()))
                for at, record in enumerate(records, start=1)
            ]
        )
        assert (row.live_count, row.marker_seq) == (len(records), 0)
        stored = operations.records(conn, key, after_seq=0, up_to_seq=1 << 40, live_only=False)
        assert [record.uuid for record in stored] == uuids
        pure = live_context(stored, ())
        assert [record.uuid for record in pure.records] == [record.uuid for record in records if record.is_message]

    def shares(self) -> dict[int, int]:
        service, records, clearings = self.live()
        return {
            record.seq: state_hash(record.seq, body_hash(record.body), clearings.get(record.uuid, ()))
            for record in (*service, *records)
        }

    def check(self, conn: sqlite3.Connection) -> None:
        """The store gives what the model gives, whole and in pages, and its counters are the recount."""
        service, records, clearings = self.live()
        uuids = [record.uuid for record in (*service, *records)]
        row = operations.session(conn, KEY)
        if row is None:
            assert not self.archive
            return
        page = operations.live(conn, KEY, after=0, limit=10_000, max_bytes=1 << 40)
        assert page is not None
        assert [record.uuid for record in page.records] == uuids
        assert {uuid: set(items) for uuid, items in page.clearings.items()} == {
            uuid: set(items) for uuid, items in clearings.items()
        }
        assert page.service == tuple(record.uuid for record in service)
        assert read_in_pages(conn, 3) == uuids
        assert row.live_count == len(records)
        assert row.live_hash == live_hash(list(self.shares().values()))
        assert row.live_weight == self.weight()
        head = self.head()
        assert row.marker_seq == (head.seq if head else 0)
        stored = conn.execute(
            "SELECT r.seq FROM record r JOIN session s ON s.id = r.session WHERE s.session_id = ? AND r.active > 0",
            (KEY.session_id,),
        )
        assert {seq for (seq,) in stored} == self.active
        assert operations.markers(conn, KEY) == self.markers
        check_boundaries(conn, KEY)

    def check_archive(self, conn: sqlite3.Connection) -> None:
        """Every record comes back as it was given."""
        assert operations.records(conn, KEY, after_seq=0, up_to_seq=1 << 40, live_only=False) == self.archive


def check_boundaries(conn: sqlite3.Connection, key: SessionKey) -> None:
    """Every marker tells the newest boundary of the chain that it ends."""
    markers = operations.markers(conn, key)
    by_seq = {marker.seq: marker for marker in markers}
    session = state.load(conn, key)
    assert session is not None
    for marker in markers:
        told = last_boundary_from(conn, session.id, marker.seq)
        boundary = last_boundary(chain(marker, by_seq))
        assert (told and told.seq) == (boundary and boundary.seq)


def read_in_pages(conn: sqlite3.Connection, limit: int) -> list[MessageUuid]:
    out: list[MessageUuid] = []
    after: int | None = 0
    while after is not None:
        page = operations.live(conn, KEY, after=after, limit=limit, max_bytes=1 << 40)
        assert page is not None
        out += [record.uuid for record in page.records]
        after = page.next_after
    return out


def plan_of(snapshot: Snapshot, preserved: Sequence[Entry], summary: Weight, **fields: object) -> CompactionPlan:
    """A compaction that keeps these entries and writes one summary."""
    given: dict[str, object] = {
        "strategy": "session_memory",
        "trigger": "agent",
        "base": snapshot.base,
        "service": (ServiceText("summary", "", f"the story so far, {summary.units} units", summary),),
        "preserved": tuple(preserved),
        "cleared": (),
        "memory": None,
        "weight_before": snapshot.live_weight,
        "weight_after": NOTHING,
        "tokens_before": snapshot.live_tokens,
        "tokens_after": 0,
        "target_tokens": 0,
    }
    return CompactionPlan(**{**given, **fields})  # type: ignore[arg-type]
