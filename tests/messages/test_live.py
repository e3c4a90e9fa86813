from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.messages.codec import body_hash
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext, live_context, live_hash, state_hash
from mcp_compact.messages.markers import (
    Clearing,
    ClearKind,
    Marker,
    MarkerKind,
    chain,
    current_marker,
    marker_to_undo,
)
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.testing import Talk, as_messages, turns
from tests.problems import problems


def uuids(live: LiveContext) -> list[str]:
    return [record.uuid for record in live.all]


def marker(seq: int, kind: MarkerKind, **fields: object) -> Marker:
    return replace(Marker(MessageUuid(f"k{seq}"), seq, kind, None, seq - 1), **fields)  # type: ignore[arg-type]


def test_without_a_boundary_the_live_list_is_the_active_branch() -> None:
    talk = Talk()
    talk.user("one")
    talk.assistant("two")
    talk.add("system", "note", type="system", message=None)
    talk.user("three")
    assert uuids(live_context(talk.records, [])) == ["r1", "r2", "r4"]


def test_a_rewound_prompt_leaves_the_live_list_and_stays_in_the_archive() -> None:
    talk = Talk()
    talk.user("one")
    talk.assistant("two")
    talk.user("wrong way")
    talk.assistant("wrong answer")
    talk.user("right way", parent_uuid=MessageUuid("r2"))
    assert uuids(live_context(talk.records, [])) == ["r1", "r2", "r5"]


def test_parallel_calls_that_look_like_forks_stay_together() -> None:
    talk = Talk()
    talk.user("look")
    talk.call("t1", message_id="m1", parent_uuid=MessageUuid("r1"))
    talk.call("t2", message_id="m1", parent_uuid=MessageUuid("r2"))
    talk.results("t2", parent_uuid=MessageUuid("r3"))
    talk.results("t1", parent_uuid=MessageUuid("r2"))
    talk.assistant("both", message_id="m2", parent_uuid=MessageUuid("r4"))
    assert uuids(live_context(talk.records, [])) == ["r1", "r2", "r3", "r4", "r5", "r6"]


def test_a_missing_parent_goes_on_from_the_record_before() -> None:
    talk = Talk()
    talk.user("one")
    talk.assistant("two")
    talk.user("three", parent_uuid=MessageUuid("PHANTOM"))
    assert active_positions([link_of(record) for record in talk.records]) == {0, 1, 2}


def test_a_parent_that_stands_later_or_is_the_record_itself_ends_no_walk_in_a_circle() -> None:
    talk = Talk()
    talk.user("one", parent_uuid=MessageUuid("r3"))
    talk.assistant("two", parent_uuid=MessageUuid("r2"))
    talk.user("three", parent_uuid=MessageUuid("r1"))
    assert uuids(live_context(talk.records, [])) == ["r1", "r3"]


def test_a_native_boundary_counts_only_while_it_is_on_the_active_branch() -> None:
    talk = Talk()
    talk.user("one")
    talk.assistant("two")
    talk.add("system", "", type="system", message=None, uuid=MessageUuid("b"))
    talk.user("summary", uuid=MessageUuid("s"), is_summary=True, parent_uuid=MessageUuid("b"))
    talk.assistant("after", parent_uuid=MessageUuid("s"))
    native = replace(marker(3, MarkerKind.COMPACT), uuid=MessageUuid("b"), service=(MessageUuid("s"),), base_seq=3,
                     metadata={"strategy": "native"})  # fmt: skip
    assert uuids(live_context(talk.records, [native])) == ["s", "r5"]
    talk.user("back to the start", parent_uuid=MessageUuid("r2"))
    assert uuids(live_context(talk.records, [native])) == ["r1", "r2", "r6"]


def test_the_hash_tells_order_content_and_clearings_apart() -> None:
    one, two = state_hash(1, b"a"), state_hash(2, b"b")
    assert live_hash([one, two]) == live_hash([two, one])
    assert live_hash([one, two]) != live_hash([state_hash(2, b"a"), state_hash(1, b"b")])
    cleared = Clearing(ClearKind.RESULT, MessageUuid("r1"), 0)
    assert state_hash(1, b"a", (cleared,)) != one


@dataclass
class Archive:
    """An archive as the laws see it: records and markers in one order."""

    talk: Talk = field(default_factory=Talk)
    markers: list[Marker] = field(default_factory=list)

    def live(self) -> LiveContext:
        return live_context(self.talk.records, self.markers)

    def current(self) -> Marker | None:
        return current_marker(self.markers)

    def by_seq(self) -> dict[int, Marker]:
        return {m.seq: m for m in self.markers}

    def mark(self, kind: MarkerKind, **fields: object) -> Marker:
        now = self.current()
        record = self.talk.add("system", "", type="system", message=None)
        made = Marker(record.uuid, record.seq, kind, now.seq if now else None, record.seq - 1, **fields)  # type: ignore[arg-type]
        self.markers.append(made)
        return made

    def hash(self) -> str:
        live = self.live()
        return live_hash([state_hash(r.seq, body_hash(r.body), live.clearings.get(r.uuid, ())) for r in live.all])


class LiveMachine(RuleBasedStateMachine):
    """Append, rewind, call, compact, clear, snip and undo in any order: the laws of the live context hold."""

    def __init__(self) -> None:
        super().__init__()
        self.archive = Archive()
        self.archive.talk.user("the first words")
        self.calls = 0
        self.before_marker: list[tuple[int, list[str], str]] = []

    @rule(words=st.sampled_from(["a", "b", " "]))
    def say(self, words: str) -> None:
        self.archive.talk.user(words)

    @rule(answered=st.booleans(), number=st.integers(1, 3))
    def work(self, answered: bool, number: int) -> None:
        ids = [f"t{self.calls + i}" for i in range(number)]
        self.calls += number
        for call in ids:
            self.archive.talk.call(call, message_id=f"m{ids[0]}")
        if answered:
            for call in reversed(ids):
                self.archive.talk.results(call, text="x" * 40)

    @precondition(lambda self: len(self.archive.live().records) > 1)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        at = data.draw(st.sampled_from([r.uuid for r in self.archive.live().records]))
        self.archive.talk.user("another way", parent_uuid=at)

    @precondition(lambda self: len(self.archive.live().records) > 2)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        live = self.archive.live()
        keep = data.draw(st.integers(0, len(live.records) - 1))
        boundary = self._marked(MarkerKind.COMPACT, preserved=tuple(r.uuid for r in live.records[keep:]))
        summary = self.archive.talk.user("summary", is_summary=True)
        self.archive.markers[-1] = replace(boundary, service=(summary.uuid,))

    @precondition(lambda self: any(r.results for r in self.archive.live().records))
    @rule(data=st.data())
    def clear(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from([r for r in self.archive.live().records if r.results]))
        self._marked(MarkerKind.MICRO, cleared=(Clearing(ClearKind.RESULT, chosen.uuid, 0),))

    @precondition(lambda self: len(self.archive.live().records) > 2)
    @rule(data=st.data())
    def snip(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.archive.live().records))
        self._marked(MarkerKind.SNIP, snipped=(chosen.uuid,))

    @precondition(lambda self: self.archive.current() is not None)
    @rule()
    def undo(self) -> None:
        taken_back = marker_to_undo(self.archive.current(), self.archive.by_seq())
        assert taken_back is not None
        newest = self.archive.talk.records[-1].seq
        nothing_since = newest == max([taken_back.seq, *(self._seq(u) for u in taken_back.service)])
        self._marked(MarkerKind.UNDO, restores_seq=taken_back.parent_seq)
        known = [entry for entry in self.before_marker if entry[0] == taken_back.seq]
        if known and nothing_since:
            assert uuids(self.archive.live()) == known[-1][1]
            assert self.archive.hash() == known[-1][2]

    def _marked(self, kind: MarkerKind, **fields: object) -> Marker:
        former, digest = uuids(self.archive.live()), self.archive.hash()
        made = self.archive.mark(kind, **fields)
        self.before_marker.append((made.seq, former, digest))
        return made

    def _seq(self, uuid: MessageUuid) -> int:
        return next(r.seq for r in self.archive.talk.records if r.uuid == uuid)

    @invariant()
    def the_view_is_valid(self) -> None:
        live = self.archive.live()
        out, _ = valid_turns(turns(live.all))
        assert problems(as_messages(out)) == []

    @invariant()
    def nothing_stands_twice_and_only_the_last_boundary_shows(self) -> None:
        live = self.archive.live()
        assert len(set(uuids(live))) == len(live.all)
        on_chain = list(chain(self.archive.current(), self.archive.by_seq()))
        old = {u for m in self.archive.markers for u in m.service} - set(live.boundary.service if live.boundary else ())
        assert old.isdisjoint(uuids(live))
        assert all(m.kind is not MarkerKind.UNDO for m in on_chain)

    @invariant()
    def what_was_appended_last_is_live(self) -> None:
        newest: Record | None = None
        service = {u for m in self.archive.markers for u in m.service}
        for record in self.archive.talk.records:
            if record.is_message and record.uuid not in service:
                newest = record
        snipped = {u for m in self.archive.markers for u in m.snipped}
        if newest is not None and newest.uuid not in snipped:
            live = uuids(self.archive.live())
            base = live and (newest.uuid in live)
            cut = self.archive.live().boundary
            assert base or (cut is not None and newest.seq <= cut.base_seq)


TestLiveMachine = LiveMachine.TestCase
TestLiveMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
