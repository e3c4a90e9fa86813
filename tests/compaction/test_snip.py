from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.snapshot import Base
from mcp_compact.compaction.snip import Snippable, SnipPlan, SnipRequest, could_snip_tokens, plan_snip
from mcp_compact.compaction.weighing import weigh_records
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import entry_of
from mcp_compact.messages.valid import valid_turns
from mcp_compact.messages.weights import CLAUDE, NOTHING
from mcp_compact.testing import Talk, as_messages, tool_result, turns
from tests.conversations import talks
from tests.problems import problems


def live(talk: Talk) -> Snippable:
    weights = [w.best for w in weigh_records(talk.records, None, ClearedText())]
    entries = tuple(entry_of(r, w) for r, w in zip(talk.records, weights, strict=True))
    return Snippable(Base(99, 0, ""), CLAUDE, sum(weights, NOTHING), entries, tuple(talk.records))


def snipped(talk: Talk, *uuids: str, force: bool = False, rules: tuple[str, ...] = ()) -> list[str]:
    plan = plan_snip(live(talk), SnipRequest(tuple(map(MessageUuid, uuids)), (), rules, force))
    return list(plan.snipped) if isinstance(plan, SnipPlan) else []


def work() -> Talk:
    talk = Talk()
    talk.user("build it")  # r1
    talk.call("t1", "t2", message_id="m1")  # r2
    talk.results("t1", "t2", text="x" * 400)  # r3
    talk.user("always use tabs")  # r4
    talk.assistant("yes")  # r5
    talk.user("thanks")  # r6
    talk.assistant("bye")  # r7
    return talk


def test_a_result_takes_its_call_and_the_whole_answer_with_it() -> None:
    assert snipped(work(), "r3") == ["r2", "r3"]
    assert snipped(work(), "r5") == ["r5"]


def test_a_range_takes_both_ends() -> None:
    plan = plan_snip(live(work()), SnipRequest(ranges=((MessageUuid("r5"), MessageUuid("r6")),)))
    assert isinstance(plan, SnipPlan)
    assert plan.snipped == ("r5", "r6")
    assert plan.tokens_after < plan.tokens_before


@pytest.mark.parametrize(
    ("uuid", "why"), [("r1", "first message"), ("r4", "standing instruction"), ("r7", "last round")]
)
def test_what_is_protected_stays_and_says_why_unless_it_is_forced(uuid: str, why: str) -> None:
    plan = plan_snip(live(work()), SnipRequest((MessageUuid(uuid),)))
    assert isinstance(plan, Declined)
    assert why in plan.detail
    assert snipped(work(), uuid, force=True) == [uuid]


def test_a_pin_is_protected() -> None:
    plan = plan_snip(replace(live(work()), pinned=frozenset({MessageUuid("r5")})), SnipRequest((MessageUuid("r5"),)))
    assert isinstance(plan, Declined)


def test_an_open_call_never_leaves() -> None:
    talk = work()
    talk.call("t9", message_id="m9")
    assert snipped(talk, "r8", force=True) == []


def test_rules_find_errors_stale_reads_and_tools() -> None:
    talk = work()
    talk.call("t1b", message_id="m2")  # r8 reads t1b.py
    talk.results("t1b")  # r9
    talk.add("assistant", [{"type": "tool_use", "id": "e", "name": "Bash", "input": {"command": "x"}}])  # r10
    talk.add("user", [tool_result("e", "boom", is_error=True)])  # r11
    talk.add("assistant", [{"type": "tool_use", "id": "w", "name": "Write", "input": {"file_path": "t1b.py"}}])  # r12
    talk.results("w")
    talk.assistant("done")
    assert snipped(talk, rules=("errors",)) == ["r10", "r11"]
    assert snipped(talk, rules=("stale_reads",)) == ["r8", "r9"]
    assert snipped(talk, rules=("tool:Ba*",)) == ["r10", "r11"]
    assert could_snip_tokens(live(talk)) > 0


def test_unknown_names_and_rules_are_declined_and_nothing_leaves() -> None:
    for request in (SnipRequest((MessageUuid("nope"),)), SnipRequest(rules=("magic",)), SnipRequest()):
        assert isinstance(plan_snip(live(work()), request), Declined)


@given(talks(), st.data(), st.booleans())
def test_what_is_left_is_valid_and_no_pair_is_split(talk: Talk, data: st.DataObject, force: bool) -> None:
    if not talk.records:
        return
    chosen = data.draw(st.lists(st.sampled_from([r.uuid for r in talk.records]), max_size=4))
    plan = plan_snip(live(talk), SnipRequest(tuple(chosen), force=force))
    gone = set(plan.snipped) if isinstance(plan, SnipPlan) else set()
    left = [r for r in talk.records if r.uuid not in gone]
    out, _ = valid_turns(turns(left))
    assert problems(as_messages(out)) == []
    calls = {c.id for r in talk.records if r.uuid in gone for c in r.calls}
    assert not calls & {result.tool_use_id for r in left for result in r.results}
