"""Snips: messages leave the live context together, and come back by undo."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.compaction.snapshot import Base, Reach, Snapshot
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import MarkerKind
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.store import Committed, SessionRow, Stamp
from tests.adapters.sqlite.builders import KEY, batch, dialogue, record
from tests.adapters.sqlite.model import plan_of

ALL = Reach(0, 0, 1 << 60, 0)


@pytest.fixture
def talk(conn: sqlite3.Connection) -> sqlite3.Connection:
    operations.append(conn, KEY, batch(*dialogue(30), model="gpt-5"), 1)
    return conn


def snapshot_of(conn: sqlite3.Connection) -> Snapshot:
    found = operations.snapshot(conn, KEY, ALL)
    assert found is not None
    return found


def row_of(conn: sqlite3.Connection) -> SessionRow:
    row = operations.session(conn, KEY)
    assert row is not None
    return row


def snip(conn: sqlite3.Connection, *uuids: str, name: str = "x", base: Base | None = None) -> Committed:
    plan = SnipPlan(base or snapshot_of(conn).base, tuple(map(MessageUuid, uuids)), NOTHING, 0, 0)
    return operations.commit(conn, KEY, plan, Stamp(9, (name,)))


def live_uuids(conn: sqlite3.Connection) -> list[str]:
    page = operations.live(conn, KEY, after=0, limit=10_000, max_bytes=1 << 40)
    assert page is not None
    return [item.uuid for item in page.records]


def compact(conn: sqlite3.Connection, name: str) -> Committed:
    found = operations.snapshot(conn, KEY, Reach(100, 2, 300))
    assert found is not None
    return operations.commit(conn, KEY, plan_of(found, found.tail, Weight(9, 0, 0, 1)), Stamp(9, (name, f"{name}-s")))


def test_snipped_messages_leave_and_the_marker_says_so(talk):
    before = snapshot_of(talk)
    gone = sum((entry.weight for entry in before.tail if entry.uuid in ("r3", "r4")), NOTHING)
    committed = snip(talk, "r4", "r3")
    marker = committed.marker
    assert marker is not None
    assert (marker.kind, marker.snipped, marker.base_seq, marker.at_ms) == (MarkerKind.SNIP, ("r3", "r4"), 30, 9)
    assert live_uuids(talk) == [f"r{at}" for at in range(30) if at not in (3, 4)]
    assert committed.live_weight == before.live_weight - gone
    assert row_of(talk).live_count == 28
    tokens = before.family.tokens
    assert dict(marker.metadata) == {
        "snippedUuids": ["r3", "r4"],
        "tokensBefore": tokens(before.live_weight),
        "tokensAfter": tokens(committed.live_weight),
        "liveHash": committed.live_hash,
    }
    stored = operations.record(talk, KEY, MessageUuid("x"))
    assert stored is not None
    assert (stored.subtype, stored.raw["snipMetadata"]) == ("snip_boundary", dict(marker.metadata))
    assert operations.record(talk, KEY, MessageUuid("r3")) is not None
    assert operations.check(talk).wrong_totals == ()


def test_what_is_snipped_can_no_longer_be_cleared_or_kept(talk):
    base = snapshot_of(talk).base
    snip(talk, "r3", "r4")
    live = operations.clearable(talk, KEY)
    assert live is not None
    assert "r4" not in [item.uuid for item in live.results]
    assert "r4" not in [entry.uuid for entry in snapshot_of(talk).tail]
    plan = ClearingPlan(base, (), 0, 0)
    assert operations.commit(talk, KEY, plan, Stamp(9, ("m",))).reason == "base_changed"


def test_undo_brings_it_back_with_the_former_hash(talk):
    before = row_of(talk)
    snip(talk, "r3", "r4")
    undone = operations.undo(talk, KEY, Stamp(9, ("u",)))
    assert undone.live_hash == before.live_hash
    assert undone.live_weight == before.live_weight
    assert live_uuids(talk) == [f"r{at}" for at in range(30)]


def test_undo_of_a_boundary_takes_back_the_snips_after_it_and_keeps_those_before(talk):
    snip(talk, "r3", "r4", name="x1")
    former = row_of(talk).live_hash
    compact(talk, "b")
    kept = live_uuids(talk)[1:]
    snip(talk, *kept[:2], name="x2")
    operations.append(talk, KEY, batch(record("later", "user", "go on")), 3)
    snip(talk, "later", name="x3")
    assert live_uuids(talk) == ["b-s", *kept[2:]]
    undone = operations.undo(talk, KEY, Stamp(9, ("u",)))
    assert undone.marker is not None
    assert live_uuids(talk) == [*(f"r{at}" for at in range(30) if at not in (3, 4)), "later"]
    assert undone.live_hash != former
    assert operations.check(talk).wrong_totals == ()


@pytest.mark.parametrize("what", ["snip", "boundary", "undone snip"])
def test_a_plan_is_void_once_a_marker_has_come(talk, what):
    base = snapshot_of(talk).base
    if what == "boundary":
        compact(talk, "b")
    else:
        snip(talk, "r3", "r4", name="x1")
    if what == "undone snip":
        operations.undo(talk, KEY, Stamp(9, ("u",)))
    before = row_of(talk)
    assert snip(talk, "r27", "r28", base=base).reason == "base_changed"
    assert row_of(talk) == before


def test_appends_do_not_void_it_and_what_has_left_is_skipped(talk):
    base = snapshot_of(talk).base
    operations.append(talk, KEY, batch(record("other", "user", "another way", parent="r9")), 3)
    committed = snip(talk, "r3", "r4", "r21", "nowhere", base=base)
    assert committed.marker is not None
    assert committed.marker.snipped == ("r3", "r4")
    assert live_uuids(talk) == ["r0", "r1", "r2", *(f"r{at}" for at in range(5, 10)), "other"]


def test_service_records_stay_and_nothing_left_is_nothing_done(talk):
    compact(talk, "b")
    before = row_of(talk)
    assert snip(talk, "b-s", "r0").reason == "nothing_to_snip"
    assert row_of(talk) == before


def test_a_compaction_after_a_snip_carries_on_from_what_is_left(talk):
    snip(talk, "r27", "r28")
    found = operations.snapshot(talk, KEY, Reach(100, 2, 300))
    assert found is not None
    assert "r27" not in [entry.uuid for entry in found.tail]
    stale = replace(plan_of(found, found.tail, NOTHING), base=replace(found.base, marker_seq=0))
    assert operations.commit(talk, KEY, stale, Stamp(9, ("b0", "s0"))).reason == "base_changed"
    assert compact(talk, "b").marker is not None
    assert "r27" not in live_uuids(talk)
    assert operations.check(talk).wrong_totals == ()


def test_a_snip_costs_what_it_takes_out_and_no_more():
    """Steps of SQLite's machine, which do not depend on the computer."""

    def steps(number: int) -> int:
        conn = operations.connect(":memory:")
        operations.append(conn, KEY, batch(*dialogue(number)), 1)
        base = snapshot_of(conn).base
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        conn.set_progress_handler(count, 20)
        assert snip(conn, "r3", "r4", base=base).marker is not None
        conn.close()
        return taken

    assert steps(3000) < 1.2 * steps(300)
