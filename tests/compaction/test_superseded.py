from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.in_memory import apply_clearing_plan, clearable_of, conversation
from mcp_compact.compaction.micro import MicroRequest, plan_clearing
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.snapshot import CallFacts, InputFacts, ResultFacts
from mcp_compact.compaction.superseded import MOST_RANGES, superseded
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import ClearKind
from mcp_compact.messages.weights import CLAUDE, NOTHING
from mcp_compact.testing import Talk, tool_result
from tests.conversations import live

AROUND = Surroundings()
LARGE = "a line of output\n" * 200
READS = MicroPolicy(clear_outdated_reads=True)
REPEATS = MicroPolicy(clear_repeated_calls=True)
FAILED = MicroPolicy(clear_failed_inputs=True)
# Nothing is an hour old in these talks, so that only the switches clear.
ASKED = MicroRequest(keep=1)


def work(*calls: tuple[str, Mapping[str, object]], failed: tuple[int, ...] = ()) -> Talk:
    """Calls t0, t1, ... each with its result; a last answer."""
    talk = Talk()
    talk.user("go")
    for at, (tool, said) in enumerate(calls):
        blocks = [{"type": "tool_use", "id": f"t{at}", "name": tool, "input": dict(said)}]
        talk.add("assistant", blocks)
        talk.add("user", [tool_result(f"t{at}", LARGE, is_error=at in failed)])
    talk.call("last", name="Bash")
    talk.results("last", text=LARGE)
    talk.assistant("done")
    return talk


def plan(talk: Talk, policy: MicroPolicy, request: MicroRequest = ASKED) -> ClearingPlan:
    return plan_clearing(clearable_of(conversation(live(talk), CLAUDE, AROUND)), request, policy)


def gone(talk: Talk, policy: MicroPolicy, request: MicroRequest = ASKED) -> list[str]:
    return [str(item.clearing.tool_use_id) for item in plan(talk, policy, request).cleared]


def read(path: str = "/a.py", **given: object) -> tuple[str, dict[str, object]]:
    return "Read", {"file_path": path, **given}


# --- files


def test_every_switch_is_off_by_default() -> None:
    talk = work(read(), read(), ("Bash", {"command": "x" * 900}), ("Bash", {"command": "x" * 900}), failed=(2,))
    assert gone(talk, MicroPolicy()) == []


def test_an_earlier_read_of_a_file_read_again_is_cleared() -> None:
    assert gone(work(read(), read("/b.py"), read()), READS) == ["t0"]


def test_a_partial_read_stands_for_an_earlier_one_only_with_every_line_of_it() -> None:
    assert gone(work(read(offset=10, limit=5), read()), READS) == ["t0"]
    assert gone(work(read(), read(offset=10, limit=5)), READS) == []
    assert gone(work(read(offset=10, limit=5), read(offset=12, limit=5)), READS) == []
    assert gone(work(read(offset=10, limit=5), read(offset=1, limit=100)), READS) == ["t0"]


def test_a_read_without_a_limit_does_not_stand_for_lines_that_it_may_not_have_reached() -> None:
    assert gone(work(read(offset=3000, limit=10), read()), READS) == []
    assert gone(work(read(offset=100), read()), READS) == []
    assert gone(work(read(offset=100), read(offset=100)), READS) == ["t0"]


def test_a_read_of_unknown_lines_stands_only_for_the_very_same_one() -> None:
    assert gone(work(read(pages="1-3"), read(pages="4")), READS) == []
    assert gone(work(read(), read(pages="4")), READS) == []
    assert gone(work(read(pages="1-3"), read(pages="1-3")), READS) == ["t0"]


def test_a_read_of_a_file_written_since_is_outdated() -> None:
    for tool, key in (("Edit", "file_path"), ("Write", "file_path"), ("NotebookEdit", "notebook_path")):
        assert gone(work(read("/n.ipynb"), (tool, {key: "/n.ipynb", "x": 1})), READS) == ["t0"]
    assert gone(work(("Edit", {"file_path": "/a.py"}), read()), READS) == []
    assert gone(work(read(), ("Edit", {"file_path": "/b.py"})), READS) == []


def test_a_failed_read_or_write_stands_for_nothing() -> None:
    assert gone(work(read(), read(), failed=(1,)), READS) == []
    assert gone(work(read(), ("Edit", {"file_path": "/a.py"}), failed=(1,)), READS) == []
    assert gone(work(read(), read(), failed=(0,)), READS) == ["t0"]


def test_what_leaves_itself_stands_for_no_earlier_read() -> None:
    policy = dataclasses.replace(READS, max_result_tokens=1)
    assert gone(work(read(offset=10, limit=5), read()), policy) == ["t0", "t1", "last"]
    facts = [_fact(0, (10, 15)), _fact(1, (1, 2001))]
    assert superseded(facts, {(1, 0)}, READS) == set()
    assert superseded(facts, set(), READS) == {(0, 0)}


def test_other_tools_with_a_path_are_no_reads() -> None:
    search = ("Grep", {"path": "/a.py", "pattern": "x"})
    assert gone(work(search, ("Edit", {"file_path": "/a.py"})), READS) == []
    assert gone(work(read(), ("Grep", {"path": "/a.py"})), READS) == []


def test_excluded_tools_and_the_newest_results_stay_even_if_a_later_one_stands_for_them() -> None:
    talk = work(read(), read())
    assert gone(talk, dataclasses.replace(READS, exclude_tools=("Read",))) == []
    assert gone(talk, READS, MicroRequest(keep=3)) == []
    assert gone(talk, READS, MicroRequest(keep=2)) == ["t0"]


def test_of_a_file_read_in_many_pieces_the_newest_pieces_are_compared() -> None:
    pieces = [_fact(at, (at * 10 + 1, at * 10 + 11)) for at in range(MOST_RANGES + 5)]
    facts = [_fact(0, (1, 5)), *(dataclasses.replace(fact, seq=fact.seq + 1) for fact in pieces)]
    # The piece that covers it is the oldest of all, beyond those that are compared.
    assert superseded(facts, set(), READS) == set()
    assert superseded([*facts, _fact(999, (1, 5))], set(), READS) == {(0, 0)}


def _fact(seq: int, lines: tuple[int, int]) -> ResultFacts:
    call = CallFacts(MessageUuid("c"), seq, 0, InputFacts(str(lines).encode(), 0, "/a.py", lines))
    return ResultFacts(ToolUseId(f"t{seq}"), "Read", MessageUuid(f"r{seq}"), seq, 0, NOTHING, NOTHING, call=call)


# --- repeated calls


def test_of_equal_calls_of_one_tool_only_the_newest_result_stays() -> None:
    run = ("Bash", {"command": "pytest"})
    assert gone(work(run, ("Bash", {"command": "ls"}), run, run), REPEATS) == ["t0", "t2"]
    assert gone(work(("Grep", {"pattern": "x"}), ("Glob", {"pattern": "x"})), REPEATS) == []


def test_a_success_stands_for_failures_and_a_failure_only_for_failures() -> None:
    run = ("Bash", {"command": "pytest"})
    assert gone(work(run, run, failed=(0,)), REPEATS) == ["t0"]
    assert gone(work(run, run, failed=(1,)), REPEATS) == []
    assert gone(work(run, run, failed=(0, 1)), REPEATS) == ["t0"]
    assert gone(work(run, run, run, failed=(1,)), REPEATS) == ["t0", "t1"]


def test_calls_that_came_with_cleared_inputs_are_not_the_same_call() -> None:
    cleared = ("Bash", {"cleared": "[Old tool result content cleared]"})
    assert gone(work(cleared, cleared), REPEATS) == []


def test_an_input_that_we_cleared_still_tells_one_call_from_another() -> None:
    policy = MicroPolicy(clear_failed_inputs=True)
    talk = work(("Bash", {"command": "a" * 900}), ("Bash", {"command": "b" * 900}), failed=(0, 1))
    first = plan(talk, policy)
    assert [item.clearing.kind for item in first.cleared] == [ClearKind.INPUT, ClearKind.INPUT]
    after = clearable_of(conversation(apply_clearing_plan(live(talk), first), CLAUDE, AROUND))
    assert plan_clearing(after, ASKED, REPEATS).cleared == ()
    assert [fact.call and fact.call.input.hash for fact in after.results] == [
        fact.call and fact.call.input.hash for fact in clearable_of(conversation(live(talk), CLAUDE, AROUND)).results
    ]


# --- inputs


def test_the_input_of_a_failed_call_is_cleared_and_its_result_stays() -> None:
    talk = work(("Bash", {"command": "x" * 900}), ("Bash", {"command": "y" * 900}), failed=(0,))
    (item,) = plan(talk, FAILED).cleared
    assert (item.clearing.kind, item.clearing.uuid, item.clearing.tool_use_id) == (ClearKind.INPUT, "r2", "t0")
    assert item.tool == "Bash input"


def test_small_inputs_and_those_of_the_newest_results_stay() -> None:
    assert gone(work(("Bash", {"command": "ls"}), failed=(0,)), FAILED) == []
    talk = work(("Bash", {"command": "x" * 900}), failed=(0,))
    assert gone(talk, FAILED, MicroRequest(keep=2)) == []


def test_no_input_is_touched_in_a_message_id_that_holds_thinking() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "S"}
    for before in (True, False):
        talk = Talk()
        talk.user("go")
        if before:
            talk.add("assistant", [thought], message_id="m1")
        talk.add("assistant", [_long("a")], message_id="m1")
        if not before:
            talk.add("assistant", [thought], message_id="m1")
        talk.add("user", [tool_result("a", LARGE, is_error=True)])
        talk.add("assistant", [_long("b")], message_id="m2")
        talk.add("user", [tool_result("b", LARGE, is_error=True)])
        talk.call("c")
        talk.results("c", text=LARGE)
        talk.assistant("done")
        assert gone(talk, FAILED) == ["b"]
        both = dataclasses.replace(FAILED, clear_tool_inputs=True, clear_failed_inputs=False, max_result_tokens=1)
        kinds = [(item.clearing.kind, item.clearing.tool_use_id) for item in plan(talk, both, ASKED).cleared]
        assert (ClearKind.INPUT, "b") in kinds
        assert (ClearKind.INPUT, "a") not in kinds
        assert (ClearKind.RESULT, "a") in kinds


def _long(call: str) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "x" * 900}}


def test_an_orphaned_result_has_no_input_to_clear() -> None:
    talk = Talk()
    talk.user("go")
    talk.add("user", [tool_result("nobody", LARGE, is_error=True)])
    talk.assistant("done")
    assert gone(talk, FAILED, MicroRequest(keep=0)) == []


steps = st.lists(
    st.tuples(
        st.sampled_from(["Read", "Edit", "Bash"]),
        st.fixed_dictionaries(
            {"file_path": st.sampled_from(["/a", "/b"])},
            optional={"offset": st.integers(1, 9), "limit": st.integers(1, 9), "command": st.just("x" * 900)},
        ),
        st.booleans(),
    ),
    max_size=8,
)


@given(steps, st.booleans(), st.booleans(), st.booleans())
def test_twice_is_once_and_the_newest_read_of_each_file_stays(
    calls: list[tuple[str, dict[str, object], bool]], reads: bool, repeats: bool, failed: bool
) -> None:
    talk = work(*((tool, given) for tool, given, _ in calls), failed=tuple(at for at, c in enumerate(calls) if c[2]))
    policy = MicroPolicy(clear_outdated_reads=reads, clear_repeated_calls=repeats, clear_failed_inputs=failed)
    once = plan(talk, policy)
    after = apply_clearing_plan(live(talk), once)
    again = plan_clearing(clearable_of(conversation(after, CLAUDE, AROUND)), ASKED, policy)
    assert again.cleared == ()
    assert again.tokens_before == once.tokens_after
    results = {str(item.clearing.tool_use_id) for item in once.cleared if item.clearing.kind is ClearKind.RESULT}
    for path in ("/a", "/b"):
        mine = [(at, tool, bad) for at, (tool, given, bad) in enumerate(calls) if given["file_path"] == path]
        if mine and mine[-1][1] == "Read" and not mine[-1][2]:
            assert f"t{mine[-1][0]}" not in results
