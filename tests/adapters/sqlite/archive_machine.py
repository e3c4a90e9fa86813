"""An archive that is changed step by step by what happens inside of a session; after every step it equals the model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.plan import Cleared, ClearingPlan, CompactionPlan
from mcp_compact.compaction.snapshot import Reach, ResultFacts
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.live import HASH_MODULUS
from mcp_compact.messages.markers import Clearing, ClearKind, MarkerKind, marker_to_undo
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.store import Batch, LiveMedia, NativeBoundary, Prepared, SessionKey, Stamp
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, prepared, record, text, use
from tests.adapters.sqlite.model import Model, plan_of

PARENTS = ("previous", "previous", "previous", "newest", "older", "root", "missing", "ours", "later")
SHAPES = ("prompt", "answer", "calls", "calls", "results", "results", "progress", "image", "same id")
Spec = tuple[str, str, int, bool]
specs = st.tuples(st.sampled_from(SHAPES), st.sampled_from(PARENTS), st.integers(0, 40), st.booleans())


class Archive(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.conn = operations.connect(self.folder / "a.db")
        self.model = Model()
        self.made = 0
        self.now = 1000
        self.before_boundary: str | None = None
        """The live hash before the last boundary, while nothing was appended since."""
        self.late: list[Record] = []
        """Records that a client's boundary named, and that have not come yet."""
        self.old_plans: list[tuple[CompactionPlan, dict[int, int], int]] = []
        self.forks: list[SessionKey] = []

    def teardown(self) -> None:
        self.model.check_archive(self.conn)
        self._delete_everything()
        self.conn.close()
        shutil.rmtree(self.folder)

    def _delete_everything(self) -> None:
        """The session first, its forks after it: each keeps its bodies until it goes itself."""
        for key in (KEY, *self.forks):
            operations.delete_session(self.conn, key)
            health = operations.check(self.conn, bodies=True)
            assert (health.wrong_totals, health.wrong_bodies) == ((), ())
        assert self.conn.execute("SELECT count(*) FROM body").fetchone() == (0,)
        assert self.conn.execute("SELECT count(*) FROM record").fetchone() == (0,)

    # ---- making records

    def _uuid(self, what: str) -> str:
        self.made += 1
        return f"{what}{self.made}"

    def _parent(self, how: str, pick: int, batch: list[Record]) -> tuple[str | None, bool]:
        dialogue = [item.uuid for item in (*self.model.archive, *batch)]
        ours = [uuid for marker in self.model.markers for uuid in (marker.uuid, *marker.service)]
        match how:
            case "newest" if dialogue:
                return dialogue[-1], False
            case "older" if dialogue:
                return dialogue[-1 - pick % len(dialogue)], False
            case "ours" if ours:
                return ours[pick % len(ours)], False
            case "root":
                return None, True
            case "missing":
                return "nowhere", pick % 2 == 0
            case "later":
                return f"r{self.made + 2}", False
            case _:
                return None, False

    def _record(self, spec: Spec, batch: list[Record]) -> Prepared:
        shape, how, pick, exact = spec
        parent, root = self._parent(how, pick, batch)
        calls = [call for item in (*self.model.archive, *batch) for call in (c.id for c in item.calls)]
        ids = [item.message.id for item in (*self.model.archive, *batch) if item.message and item.message.id]
        role, kind, message_id = "user", None, None
        content: Any = None
        match shape:
            case "prompt":
                content = f"please do {pick}"
            case "answer":
                role, content, message_id = "assistant", [text(f"did {pick}")], f"m{self.made}"
            case "calls":
                used = calls[pick % len(calls)] if calls and pick > 35 else f"t{self.made}"
                role, content, message_id = (
                    "assistant",
                    [use(used), use(f"u{self.made}")][: 1 + pick % 2],
                    f"m{self.made}",
                )
            case "results":
                asked = calls[-1 - pick % len(calls)] if calls and pick < 36 else f"t{self.made + pick % 3}"
                content = [answer(asked, "word " * pick)]
                if pick % 4 == 0:
                    content[0]["content"] = [text("a shot"), IMAGE]
            case "image":
                content = [text("look"), IMAGE]
            case "same id":
                role, content = "assistant", [text(f"more {pick}"), use(f"v{self.made}")]
                message_id = ids[-1 - pick % len(ids)] if ids else None
            case _:
                kind = "progress"
        made = record(
            self._uuid("r"),
            role,
            content,
            parent=parent,
            root=root,
            message_id=message_id,
            type=kind,
            at_ms=self.made * 1000,
        )
        return prepared(made, exact=pick if exact and content is not None else None)

    def _append(self, items: list[Prepared], boundaries: tuple[NativeBoundary, ...] = ()) -> None:
        self.now += 1
        done = operations.append(self.conn, KEY, Batch(tuple(items), boundaries=boundaries), self.now)
        assert done.new == len(items)
        assert done.uuids == tuple(item.record.uuid for item in items)
        for item in items:
            self.model.add(item)
        for boundary in boundaries:
            self.model.add_native(boundary)
        self.before_boundary = None

    # ---- rules

    @rule(drawn=st.lists(specs, min_size=1, max_size=6))
    def append(self, drawn: list[Spec]) -> None:
        batch: list[Prepared] = []
        for spec in drawn:
            batch.append(self._record(spec, [item.record for item in batch]))
        self._append(batch)

    @rule(pick=st.integers(1, 4))
    def append_parallel_calls(self, pick: int) -> None:
        """As a client stores them: a record a call, each the next one's parent, each result under its own call."""
        parent: str | None = self.model.uuids[-1] if self.model.archive else None
        group, calls = f"m{self.made}", []
        for _ in range(pick):
            uuid = self._uuid("r")
            calls.append(record(uuid, "assistant", [use(f"t{uuid}")], parent=parent, message_id=group))
            parent = uuid
        results = [record(self._uuid("r"), "user", [answer(f"t{call.uuid}")], parent=call.uuid) for call in calls]
        for item in (*calls, *results):
            self._append([prepared(item)])

    @precondition(lambda self: self.model.archive)
    @rule(pick=st.integers(0, 99))
    def rewind(self, pick: int) -> None:
        parent = self.model.uuids[pick % len(self.model.archive)]
        self._append([prepared(record(self._uuid("r"), "user", "another way", parent=parent))])

    @precondition(lambda self: self.model.archive)
    @rule(pick=st.integers(0, 99))
    def send_a_known_record_again(self, pick: int) -> None:
        known = self.model.archive[pick % len(self.model.archive)]
        done = operations.append(self.conn, KEY, Batch((prepared(known),)), self.now)
        assert (done.new, done.known, done.conflicts) == (0, 1, ())

    @precondition(lambda self: self.model.archive)
    @rule(pick=st.integers(0, 99), root=st.booleans(), late=st.booleans(), kept=st.integers(0, 4))
    def meet_a_clients_boundary(self, pick: int, root: bool, late: bool, kept: int) -> None:
        boundary = self._system_record(root=root)
        summary = record(self._uuid("r"), "user", "summary", parent=boundary.uuid)
        came_late = record(self._uuid("r"), "user", "kept, but late")
        preserved = tuple(self.model.uuids[pick % len(self.model.archive) :][:kept])
        if late and kept > 2:
            preserved = (*preserved, came_late.uuid)
        native = NativeBoundary(boundary.uuid, (summary.uuid,), preserved, {"trigger": "auto"})
        if late:
            self._append([prepared(boundary)], (native,))
            self.late += [came_late, summary]
        else:
            self._append([prepared(boundary), prepared(summary)], (native,))

    @precondition(lambda self: self.model.archive)
    @rule(pick=st.integers(0, 99), root=st.booleans())
    def meet_a_clients_clearing(self, pick: int, root: bool) -> None:
        older = self.model.archive[pick % len(self.model.archive) :]
        calls = tuple(ToolUseId(call.id) for item in older for call in item.calls)
        boundary = self._system_record(root=root)
        native = NativeBoundary(boundary.uuid, (), (), {"trigger": "auto"}, calls, micro=True)
        self._append([prepared(boundary)], (native,))

    def _system_record(self, *, root: bool) -> Record:
        parent = None if root else self.model.uuids[-1]
        return record(self._uuid("r"), "system", None, type="system", root=root, parent=parent)

    @precondition(lambda self: self.late)
    @rule()
    def let_a_late_record_come(self) -> None:
        """A boundary named it; whatever happened meanwhile, it takes its place."""
        self._append([prepared(self.late.pop())])

    @precondition(lambda self: any(item.results for item in self.model.archive))
    @rule(pick=st.integers(0, 99), rewind=st.booleans())
    def make_the_call_of_an_older_result(self, pick: int, rewind: bool) -> None:
        """The result may stand on a branch that was left: the call brings it back."""
        asked = [result.tool_use_id for item in self.model.archive for result in item.results]
        parent = self.model.uuids[pick % len(self.model.archive)] if rewind else None
        made = record(
            self._uuid("r"), "assistant", [use(asked[pick % len(asked)])], parent=parent, message_id=f"m{self.made}"
        )
        self._append([prepared(made)])

    @precondition(lambda self: self.model.archive)
    @rule(
        tokens=st.integers(0, 300),
        texts=st.integers(0, 3),
        units=st.integers(0, 9000),
        clear=st.booleans(),
        hold=st.booleans(),
    )
    def compact(self, tokens: int, texts: int, units: int, clear: bool, hold: bool) -> None:
        snapshot = operations.snapshot(self.conn, KEY, Reach(tokens, texts, tokens * 2))
        assert snapshot is not None
        self._check_tail(snapshot.tail, snapshot.tail_is_all)
        cleared = [_cleared(facts) for facts in snapshot.results] if clear else []
        plan = plan_of(snapshot, snapshot.tail, Weight(units, 0, 0, 1), cleared=tuple(cleared))
        if hold:
            self.old_plans.append((plan, self.model.shares(), len(self.model.archive)))
        else:
            self._commit(plan)

    def _check_tail(self, tail: tuple[Any, ...], is_all: bool) -> None:
        """The tail is the end of the live list, and no call or message id is cut in two by it."""
        _, records, _ = self.model.live()
        assert [entry.uuid for entry in tail] == [item.uuid for item in records[len(records) - len(tail) :]]
        assert is_all == (len(tail) == len(records))
        left_out = records[: len(records) - len(tail)]
        kept_ids = {entry.message_id for entry in tail} - {None}
        assert not any(item.message and item.message.id in kept_ids for item in left_out)
        left_out_seqs = {item.seq for item in left_out}
        assert not any(self._call_before(call, entry.seq) in left_out_seqs for entry in tail for call in entry.results)

    def _call_before(self, call: str, seq: int) -> int:
        """Where the call that a result answers was made: of repeated ids the newest before it; 0 for none."""
        made = [item.seq for item in self.model.archive[: seq - 1] if call in [c.id for c in item.calls]]
        return max(made, default=0)

    def _commit(self, plan: CompactionPlan) -> bool:
        before = operations.session(self.conn, KEY)
        assert before is not None
        stamp = Stamp(self.now, (self._uuid("b"), self._uuid("s")))
        committed = operations.commit(self.conn, KEY, plan, stamp)
        if committed.marker is None:
            assert committed.reason == "base_changed"
            return False
        assert committed.marker.base_seq == plan.base.last_seq
        self.model.weights[committed.marker.service[0]] = plan.service[0].weight
        for item in plan.cleared:
            if item.clearing in committed.marker.cleared:
                self.model.freed[item.clearing] = item.freed
        self.model.add_committed(self.conn, committed)
        after = operations.session(self.conn, KEY)
        assert after is not None
        assert (committed.live_hash, committed.live_weight) == (after.live_hash, after.live_weight)
        self.before_boundary = before.live_hash
        return True

    @precondition(lambda self: self.old_plans)
    @rule()
    def commit_an_old_plan(self) -> None:
        """It is written exactly if nothing but appends came in between."""
        plan, shares, records = self.old_plans.pop()
        now, active = self.model.shares(), self.model.active
        _, live, _ = self.model.live()
        appended = {item.seq for item in live if item.seq > records and item.seq in active and item.is_message}
        older = sum(part for seq, part in now.items() if seq not in appended)
        markers_since = any(marker.seq > records for marker in self.model.markers)
        stands = not markers_since and (older - sum(shares.values())) % HASH_MODULUS == 0
        assert self._commit(plan) == stands

    @precondition(lambda self: self.model.archive)
    @rule(every=st.integers(1, 3), what=st.sampled_from(["results", "media", "both"]))
    def clear(self, every: int, what: str) -> None:
        live = operations.clearable(self.conn, KEY)
        assert live is not None
        self._check_clearable(live.results)
        held = LiveMedia(len(live.media), sum(item.bytes for item in live.media))
        row = operations.session(self.conn, KEY)
        assert row is not None
        assert row.media == held
        results = live.results[::every] if what != "media" else []
        items = [_cleared(facts) for facts in results]
        gone = {(facts.uuid, facts.block) for facts in results}
        for facts in live.media[::every] if what != "results" else []:
            place = Clearing(ClearKind.MEDIA, facts.uuid, facts.block, facts.part, facts.tool_use_id)
            if (facts.uuid, facts.block) not in gone:
                items.append(Cleared(place, Weight(media=facts.tokens)))
        plan = ClearingPlan(live.base, tuple(items), 0, 0)
        committed = operations.commit(self.conn, KEY, plan, Stamp(self.now, (self._uuid("b"),)))
        if not items:
            assert committed.reason == "nothing_to_clear"
            return
        assert committed.marker is not None
        assert set(committed.marker.cleared) == {item.clearing for item in items}
        for item in items:
            self.model.freed[item.clearing] = item.freed
        self.model.add_committed(self.conn, committed)
        again = operations.commit(self.conn, KEY, plan, Stamp(self.now, (self._uuid("b"),)))
        assert again.reason == "nothing_to_clear"

    @precondition(lambda self: self.model.archive)
    @rule(start=st.integers(0, 99), number=st.integers(1, 4), stray=st.booleans())
    def snip(self, start: int, number: int, stray: bool) -> None:
        """What is live and no service record leaves; everything else that is named is skipped."""
        snapshot = operations.snapshot(self.conn, KEY, Reach(0, 0, 0))
        assert snapshot is not None
        service, records, _ = self.model.live()
        live = [item.uuid for item in records]
        asked = live[start % max(1, len(live)) :][:number]
        others = [*(item.uuid for item in service), self.model.uuids[start % len(self.model.uuids)]] if stray else []
        plan = SnipPlan(snapshot.base, (*asked, *others), NOTHING, 0, 0)
        committed = operations.commit(self.conn, KEY, plan, Stamp(self.now, (self._uuid("b"),)))
        own = {item.uuid for item in service}
        expected = [uuid for uuid in live if uuid in {*asked, *others} and uuid not in own]
        if not expected:
            assert committed.reason == "nothing_to_snip"
            return
        assert committed.marker is not None
        assert list(committed.marker.snipped) == expected
        self.model.add_committed(self.conn, committed)
        again = operations.commit(self.conn, KEY, plan, Stamp(self.now, (self._uuid("b"),)))
        assert again.reason == "base_changed"

    @precondition(lambda self: self.model.archive and len(self.forks) < 3)
    @rule(pick=st.integers(0, 99), whole=st.booleans(), go_on=st.booleans())
    def fork(self, pick: int, whole: bool, go_on: bool) -> None:
        """The invariant after each step says that the session itself is as it was."""
        service, records, _ = self.model.live()
        live = [item.uuid for item in (*service, *records)]
        up_to = None if whole or not live else live[pick % len(live)]
        key = SessionKey("local", self._uuid("fork"))
        number = operations.fork_session(self.conn, KEY, key, up_to, self.now)
        assert number == (live.index(up_to) + 1 if up_to is not None else len(live))
        self.model.check_fork(self.conn, key, up_to)
        if go_on:
            uuid = self._uuid("f")
            operations.append(self.conn, key, Batch((prepared(record(uuid, "user", "here")),)), self.now)
            page = operations.live(self.conn, key, after=0, limit=10_000, max_bytes=1 << 40)
            assert page is not None
            assert [item.uuid for item in page.records] == [*live[:number], uuid]
        self.forks.append(key)

    @precondition(lambda self: self.forks)
    @rule()
    def delete_a_fork(self) -> None:
        assert operations.session(self.conn, self.forks[-1]) is not None
        operations.delete_session(self.conn, self.forks.pop())
        assert operations.check(self.conn, bodies=True).wrong_bodies == ()

    @precondition(lambda self: self.model.archive)
    @rule(tokens=st.integers(0, 300), texts=st.integers(0, 3), number=st.integers(1, 4))
    def read_as_it_was(self, tokens: int, texts: int, number: int) -> None:
        """What is merely appended makes no difference to a reading up to what was there."""
        reach = Reach(tokens, texts, tokens * 2)
        before = operations.snapshot(self.conn, KEY, reach)
        assert before is not None
        for at in range(number):
            role = ("user", "assistant")[at % 2]
            content = "go on" if role == "user" else [text("yes"), use(self._uuid("p"))]
            self._append([prepared(record(self._uuid("p"), role, content))])
        assert operations.snapshot(self.conn, KEY, reach, up_to_seq=before.base.last_seq) == before

    def _check_clearable(self, facts: Any) -> None:
        """Exactly the uncleared live results, of each call the one that counts."""
        _, records, clearings = self.model.live()
        done = {(item.uuid, item.block) for items in clearings.values() for item in items if item.part is None}
        found: dict[tuple[str, bool], tuple[bool, tuple[str, int]]] = {}
        for item in records:
            for at, block in enumerate(item.blocks):
                if block in item.results:
                    call = (block.tool_use_id, self._call_before(block.tool_use_id, item.seq) > 0)
                    if not block.is_error or found.get(call, (True, None))[0]:
                        found[call] = (block.is_error, (item.uuid, at))
        assert {(item.uuid, item.block) for item in facts} == {place for _, place in found.values()} - done

    @rule()
    def undo(self) -> None:
        if operations.session(self.conn, KEY) is None:
            return
        by_seq = {marker.seq: marker for marker in self.model.markers}
        target = marker_to_undo(self.model.head(), by_seq)
        committed = operations.undo(self.conn, KEY, Stamp(self.now, (self._uuid("b"),)))
        if target is None:
            assert committed.reason == "nothing_to_undo"
            return
        assert committed.marker is not None
        assert (committed.marker.kind, committed.marker.restores_seq) == (MarkerKind.UNDO, target.parent_seq)
        self.model.add_committed(self.conn, committed)
        if self.before_boundary is not None:
            assert committed.live_hash == self.before_boundary
        self.before_boundary = None

    @rule()
    def reopen(self) -> None:
        self.conn.close()
        self.conn = operations.connect(self.folder / "a.db")

    @invariant()
    def equals_the_model(self) -> None:
        self.model.check(self.conn)


def _cleared(facts: ResultFacts) -> Cleared:
    place = Clearing(ClearKind.RESULT, facts.uuid, facts.block, None, facts.tool_use_id)
    return Cleared(place, facts.weight - facts.cleared_weight, facts.tool)
