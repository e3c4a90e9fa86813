from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.attachments import read_back
from mcp_compact.compaction.attempt import Attempt, NeedsRecords
from mcp_compact.compaction.in_memory import apply_plan, compact_in_memory, conversation, fingerprint, snapshot_of
from mcp_compact.compaction.pipeline import Finished, start
from mcp_compact.compaction.plan import CompactionPlan
from mcp_compact.compaction.policy import Policy, RestorePolicy, SessionMemoryCompactConfig
from mcp_compact.compaction.request import CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.restore import LOOK_BACK, says
from mcp_compact.compaction.snapshot import Memory, Registered
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.testing import Talk, tool_result
from tests.conversations import live, talks

POLICY = Policy(tail=SessionMemoryCompactConfig(1, 1, 40_000))
RULE = "RULE-77: answer in rhyme"
SUMMARY = "## Requests\nThe parser in src/parser.py is being mended; line 12 still fails.\n" * 4
PINS = (
    Registered("instruction", "tabs", "ALWAYS use tabs"),
    Registered("plan", "plan", "1. do A 2. do B"),
    Registered("todos", "todos", "[in_progress] B"),
    Registered("skill", "pdf", "how to pdf"),
    Registered("file", "src/kept.py", "value = 1\n"),
    Registered("tools", "tools", "mcp__gh__list mcp__aa__get"),
)


def did(talk: Talk, name: str, given: dict[str, Any], result: str = "ok") -> None:
    call = f"t{len(talk.records)}"
    talk.add("assistant", [{"type": "tool_use", "id": call, "name": name, "input": given}])
    talk.add("user", [tool_result(call, result)])


def work(talk: Talk, rounds: int = 40, words: int = 60) -> Talk:
    """Rounds in which nothing happens that could be put back."""
    for number in range(rounds):
        talk.user(f"question {number} " + "word " * words)
        talk.assistant(f"answer {number} " + "word " * words)
    return talk


def planned(
    context: LiveContext,
    request: CompactRequest | None = None,
    policy: Policy = POLICY,
    *,
    pins: tuple[Registered, ...] = (),
    memory: Memory | None = None,
    session_id: str = "",
) -> CompactionPlan:
    around = Surroundings(session_id=session_id)
    talk = conversation(context, CLAUDE, around, memory=memory, registered=pins)
    outcome = compact_in_memory(talk, request or CompactRequest("manual"), policy, around)
    assert isinstance(outcome, Finished), outcome
    return outcome.plan


def summarised(context: LiveContext, *, pins: tuple[Registered, ...] = ()) -> tuple[SummaryRequest, CompactionPlan]:
    """The request for a written summary, and the plan with one."""
    snapshot = snapshot_of(conversation(context, CLAUDE, Surroundings(), registered=pins))
    request = CompactRequest("manual", custom_instructions="be short")
    attempt = Attempt(snapshot, request, replace(POLICY, summaries=True), Surroundings(), Loaded(0, context.records))
    asked, outcome = start(attempt), start(replace(attempt, answer=SummaryAnswer(SUMMARY)))
    assert isinstance(asked, SummaryRequest), asked
    assert isinstance(outcome, Finished), outcome
    return asked, outcome.plan


def after(context: LiveContext, plan: CompactionPlan, name: str = "s") -> LiveContext:
    """The context that a plan makes; what is service has a seq of its own."""
    made = apply_plan(context, plan, [f"{name}{at}" for at in range(len(plan.service))])
    first = max(record.seq for record in context.all) + 1
    service = tuple(replace(record, seq=first + at) for at, record in enumerate(made.service))
    return replace(made, service=service)


def appended(context: LiveContext, talk: Talk) -> LiveContext:
    """The context with more messages; they are numbered on."""
    first = max(record.seq for record in context.all)
    more = [replace(r, seq=first + r.seq, uuid=MessageUuid(f"n{first}-{r.uuid}")) for r in talk.records]
    return replace(context, records=(*context.records, *more))


def put(plan: CompactionPlan) -> dict[str, str]:
    """What was put back, by its name."""
    return {item.name: item.text for item in plan.service if item.kind == "attachment"}


def body(plan: CompactionPlan, name: str) -> str:
    item = read_back(put(plan)[name])
    assert item is not None
    return item.text


# --- what is pinned


@pytest.mark.parametrize("path", ["session_memory", "summary", "reactive"])
def test_every_pin_is_put_back_word_for_word_on_every_path(path: str) -> None:
    context = live(work(Talk()))
    if path == "summary":
        plan = summarised(context, pins=PINS)[1]
    else:
        plan = planned(context, CompactRequest("manual" if path == "session_memory" else "reactive"), pins=PINS)
    assert plan.strategy == path
    assert list(put(plan)) == ["pins", "plan", "todos", "tools", "skill:pdf", "file:src/kept.py"]
    assert "- ALWAYS use tabs" in put(plan)["pins"]
    assert body(plan, "plan") == "1. do A 2. do B"
    assert body(plan, "todos") == "[in_progress] B"
    assert body(plan, "tools") == "mcp__aa__get, mcp__gh__list"
    assert body(plan, "skill:pdf") == "how to pdf"
    assert body(plan, "file:src/kept.py") == "value = 1\n"
    assert plan.discovered_tools == ("mcp__aa__get", "mcp__gh__list")
    assert (plan.loss.instructions, plan.loss.instructions_missing) == (1, ())


def test_the_summary_stands_first_and_what_hooks_add_last() -> None:
    plan = planned(live(work(Talk())), CompactRequest("manual", hook_context="branch: main"), pins=PINS[:2])
    assert [item.name for item in plan.service] == ["summary", "pins", "plan", "session_start"]


def test_what_memory_or_tail_say_already_is_not_put_back() -> None:
    talk = work(Talk())
    talk.user("please: always  use\ntabs")
    assert put(planned(live(talk), pins=PINS[:1])) == {}
    plan = planned(live(work(Talk())), CompactRequest("manual", must_keep="1. do A\n2. do B"), pins=PINS[1:2])
    assert put(plan) == {}


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("always use tabs", True),
        ("- always use tabs.", True),
        ("rules: always use tabs, please", True),
        ("you need not always use tabs", False),
        ("always use tabstops", False),
        ("i always use tabs. always use tabs!", True),
        ("", False),
    ],
)
def test_words_that_mean_something_else_do_not_stand_for_a_pin(text: str, is_said: bool) -> None:
    assert says(text, "always use tabs") is is_said


def test_a_pin_of_a_word_is_put_back_though_the_word_stands_everywhere() -> None:
    plan = planned(live(work(Talk())), pins=(Registered("plan", "plan", "word"),))
    assert body(plan, "plan") == "word"


def test_an_instruction_of_several_lines_stays_as_it_is() -> None:
    rule = "Use this form:\n    one\n\ttwo"
    plan = planned(live(work(Talk())), pins=(Registered("instruction", "form", rule),))
    assert rule in put(plan)["pins"]


def test_pinned_and_said_instructions_stand_in_one_message_each_once() -> None:
    talk = Talk()
    talk.user("Never touch vendor/.")
    context = live(work(talk))
    memory = Memory("# Notes\n\n## Task\nport it\n", 1, MessageUuid("r78"), 78)
    pins = (*PINS[:1], Registered("instruction", "vendor", "never touch  vendor/."))
    plan = planned(context, pins=pins, memory=memory)
    assert put(plan)["pins"].splitlines()[1:] == [
        "Standing instructions of the user, word for word:",
        "- ALWAYS use tabs",
        "- never touch  vendor/.",
    ]
    assert plan.loss.instructions == 2


def test_pins_hold_also_where_instructions_are_not_required() -> None:
    talk = Talk()
    talk.user("Never touch vendor/.")
    memory = Memory("# Notes\n\n## Task\nport it\n", 1, MessageUuid("r78"), 78)
    plan = planned(live(work(talk)), policy=replace(POLICY, require_instructions=False), pins=PINS[:1], memory=memory)
    assert "ALWAYS use tabs" in put(plan)["pins"]
    assert "vendor" not in put(plan)["pins"]
    assert plan.loss.instructions_missing == ("Never touch vendor/.",)


def test_pins_come_before_the_memorys_size_and_the_target_holds() -> None:
    context, rule = live(work(Talk())), "Always name the ticket. " * 40
    pins = (Registered("instruction", "long", rule.strip()),)
    plan = planned(context, CompactRequest("manual", target_tokens=800), pins=pins)
    assert rule.strip() in put(plan)["pins"]
    assert plan.tokens_after <= 800


def test_a_pin_for_which_there_is_no_room_is_told_of() -> None:
    pins = (Registered("plan", "plan", "step " * 3000), Registered("skill", "s", "do " * 3000))
    plan = planned(live(work(Talk())), CompactRequest("manual", target_tokens=500), pins=pins)
    assert put(plan) == {}
    assert [w for w in plan.warnings if "no room" in w] == [
        "no room for what was pinned: plan",
        "no room for what was pinned: skill:s",
    ]


def test_a_new_pin_is_a_new_attempt() -> None:
    snapshot = snapshot_of(conversation(live(work(Talk())), CLAUDE, Surroundings()))
    pinned = replace(snapshot, registered=PINS[:1])
    assert fingerprint(snapshot, CompactRequest(), POLICY) != fingerprint(pinned, CompactRequest(), POLICY)


# --- what is found


TODOS = [{"content": f"step {n}: mend part {n} of frobnicate " + "x" * 200, "status": "pending"} for n in range(12)]
"""Too many for the memory's share of open tasks."""


def busy() -> Talk:
    """A conversation that holds something of each kind, long ago."""
    talk = Talk()
    talk.user("Mend the parser.")
    did(talk, "ExitPlanMode", {"plan": "# The plan\n1. read\n2. mend the thing in frobnicate()"})
    did(talk, "TodoWrite", {"todos": TODOS})
    did(talk, "ToolSearch", {"query": "gh"}, "mcp__gh__list")
    did(talk, "Skill", {"skill": "pdf"}, "Launching skill: pdf")
    talk.user("how to pdf " * 30, is_meta=True, raw={"sourceToolUseID": f"t{len(talk.records) - 2}"})
    for number in range(7):
        did(talk, "Read", {"file_path": f"src/m{number}.py"}, f"m{number} = {number}\n" * 20)
    return work(talk)


def test_what_was_found_is_put_back_in_its_order_and_of_files_the_five_newest() -> None:
    _, plan = summarised(live(busy()))
    files = [f"file:src/m{number}.py" for number in (6, 5, 4, 3, 2)]
    assert list(put(plan)) == ["plan", "todos", "tools", "skill:pdf", *files]
    assert body(plan, "plan") == "# The plan\n1. read\n2. mend the thing in frobnicate()"
    assert body(plan, "todos").splitlines() == [f"- [pending] {todo['content']}" for todo in TODOS]
    assert body(plan, "file:src/m6.py") == ("m6 = 6\n" * 20).rstrip()
    assert plan.discovered_tools == ("mcp__gh__list",)


def test_what_the_memory_says_of_them_is_not_said_again() -> None:
    talk = busy()
    did(talk, "TodoWrite", {"todos": [{"content": "mend frobnicate", "status": "in_progress"}]})
    plan = planned(live(work(talk)))
    assert "[in_progress] mend frobnicate" in plan.service[0].text
    assert "todos" not in put(plan)


def test_what_stands_in_the_tail_is_not_put_back() -> None:
    talk = busy()
    did(talk, "TodoWrite", {"todos": [{"content": "the last step", "status": "pending"}]})
    did(talk, "Read", {"file_path": "src/m6.py"}, "m6 = 66")
    talk.user("and now?")
    _, plan = summarised(live(talk))
    assert "todos" not in put(plan)
    assert "file:src/m6.py" not in put(plan)
    assert "file:src/m5.py" in put(plan)


def test_a_pin_stands_for_what_would_be_found_of_its_kind() -> None:
    _, plan = summarised(live(busy()), pins=PINS[1:4])
    assert body(plan, "plan") == "1. do A 2. do B"
    assert body(plan, "todos") == "[in_progress] B"
    assert body(plan, "skill:pdf") == "how to pdf"


def test_a_client_that_restores_these_itself_is_left_to_it_but_pins_and_tools_are_not() -> None:
    context, policy = live(busy()), replace(POLICY, client_restores=True)
    plan = planned(context, policy=policy, pins=PINS[:2])
    assert set(put(plan)) <= {"pins", "plan", "tools"}
    assert body(plan, "plan") == "1. do A 2. do B"
    assert plan.discovered_tools == ("mcp__gh__list",)


def test_it_never_leaves_more_than_half_of_the_context_and_never_shortens_the_memory() -> None:
    talk = Talk()
    talk.user("Mend the parser.")
    for number in range(5):
        did(talk, "Read", {"file_path": f"src/m{number}.py"}, f"line of m{number}\n" * 400)
    context = live(work(talk, rounds=10))
    nothing = replace(POLICY, restore=RestorePolicy(total_tokens=0))
    plan, bare = planned(context), planned(context, policy=nothing)
    assert put(bare) == {}
    assert put(plan)
    assert plan.tokens_after <= plan.tokens_before // 2
    assert plan.service[0] == bare.service[0]
    assert plan.memory == bare.memory


def test_the_limits_of_each_kind_hold_and_what_is_cut_says_so_and_how_to_get_it() -> None:
    talk = Talk()
    for number in range(4):
        did(talk, "Skill", {"skill": f"s{number}"})
        call = f"t{len(talk.records) - 2}"
        talk.user(f"skill {number} " + "do this and that\n" * 800, is_meta=True, raw={"sourceToolUseID": call})
        did(talk, "Read", {"file_path": f"f{number}.py"}, f"line of f{number}\n" * 1000)
    context = live(work(talk, rounds=60, words=400))
    limits = RestorePolicy(50_000, skill_tokens=1_000, skills_tokens=2_600, file_tokens=800, files=2)
    plan = planned(context, policy=replace(POLICY, restore=limits), session_id="s")
    names = list(put(plan))
    assert names == ["skill:s3", "skill:s2", "skill:s1", "file:f3.py", "file:f2.py"]
    costs = {item.name: CLAUDE.tokens(item.weight) for item in plan.service[1:]}
    assert all(cost <= (1_000 if name.startswith("skill") else 800) for name, cost in costs.items())
    assert all(cost >= 700 for name, cost in costs.items() if name != "skill:s1")
    assert sum(cost for name, cost in costs.items() if name.startswith("skill")) <= 2_600
    assert "[Cut here: these are the first " in put(plan)["file:f3.py"]
    reads = [c.id for r in context.records for c in r.calls if c.input == {"file_path": "f3.py"}]
    assert f'get_original("{reads[0]}") gives all of it.' in put(plan)["file:f3.py"]
    assert body(plan, "file:f3.py").splitlines()[-1] == "line of f3"


def test_without_an_archive_a_cut_names_no_tool() -> None:
    talk = Talk()
    did(talk, "Read", {"file_path": "f.py"}, "long line of text\n" * 3000)
    plan = planned(live(work(talk, rounds=60, words=400)))
    assert "[Cut here" in put(plan)["file:f.py"]
    assert "get_original" not in put(plan)["file:f.py"]


# --- what an earlier compaction put back


def test_a_rule_is_there_once_after_two_compactions_and_no_writer_is_given_it() -> None:
    pins = (Registered("instruction", "rule", RULE),)
    context = live(work(Talk()))
    for number in range(3):
        asked, plan = summarised(context, pins=pins)
        assert RULE not in asked.text
        context = after(context, plan, f"s{number}-")
        assert sum(RULE in record.text for record in context.all) == 1
        context = appended(context, work(Talk()))


@pytest.mark.parametrize("path", ["session_memory", "summary"])
def test_what_was_put_back_is_carried_on_by_name_and_never_summarised(path: str) -> None:
    context = live(busy())
    first = summarised(context)[1] if path == "summary" else planned(context)
    again = appended(after(context, first), work(Talk()))
    if path == "summary":
        asked, second = summarised(again)
        assert "frobnicate()" not in asked.text
        assert "how to pdf" not in asked.text
    else:
        second = planned(again)
        assert "how to pdf" not in second.service[0].text
        assert "Kept through compaction" not in second.service[0].text
    carried = put(first)
    assert {name: put(second)[name] for name in carried if name.startswith(("plan", "skill"))} == {
        name: text for name, text in carried.items() if name.startswith(("plan", "skill"))
    }
    assert len(put(second)) == len({item.name for item in second.service[1:]})
    assert second.discovered_tools == ("mcp__gh__list",)


def test_what_is_newer_replaces_what_was_put_back() -> None:
    context = live(busy())
    again = after(context, summarised(context)[1])
    talk = Talk()
    did(talk, "TodoWrite", {"todos": [{"content": "something new", "status": "pending"}, *TODOS]})
    did(talk, "Edit", {"file_path": "src/m6.py", "old_string": "a", "new_string": "b"})
    _, plan = summarised(appended(again, work(talk)))
    assert body(plan, "todos").startswith("- [pending] something new\n")
    assert "file:src/m6.py" not in put(plan)
    assert "file:src/m5.py" in put(plan)


def test_to_dos_that_are_done_are_not_put_back_again() -> None:
    context = live(busy())
    again = after(context, summarised(context)[1])
    talk = Talk()
    did(talk, "TodoWrite", {"todos": [todo | {"status": "completed"} for todo in TODOS]})
    assert "todos" not in put(summarised(appended(again, work(talk)))[1])


# --- which bodies it needs


def fresh(talk: Talk) -> Memory:
    return Memory("# Notes\n\n## Task\nport it\n", 1, MessageUuid(f"r{len(talk.records) - 2}"), len(talk.records) - 2)


def test_with_a_memory_that_is_up_to_date_only_the_newest_bodies_are_looked_through() -> None:
    talk = work(Talk(), rounds=400)
    snapshot = snapshot_of(conversation(live(talk), CLAUDE, Surroundings(), memory=fresh(talk)))
    needed = start(Attempt(snapshot, CompactRequest("manual"), POLICY, Surroundings()))
    assert needed == NeedsRecords(800 - LOOK_BACK)
    own = start(Attempt(snapshot, CompactRequest("manual"), replace(POLICY, client_restores=True), Surroundings()))
    assert isinstance(own, Finished)


def test_what_was_put_back_may_be_outdated_so_every_body_is_needed() -> None:
    context = live(busy())
    again = appended(after(context, summarised(context)[1]), work(Talk(), rounds=300))
    last = again.records[-3]
    memory = Memory("# Notes\n\n## Task\nport it\n", 1, last.uuid, last.seq)
    snapshot = snapshot_of(conversation(again, CLAUDE, Surroundings(), memory=memory))
    assert start(Attempt(snapshot, CompactRequest("manual"), POLICY, Surroundings())) == NeedsRecords(0)


# --- laws


@settings(max_examples=40)
@given(
    talks(least=6),
    st.lists(st.sampled_from(PINS), unique=True, max_size=6),
    st.integers(300, 6000),
    st.booleans(),
)
def test_the_plan_keeps_its_target_and_says_what_it_weighs(
    talk: Talk, pins: list[Registered], target: int, restores: bool
) -> None:
    around, policy = Surroundings(), replace(POLICY, client_restores=restores)
    context = live(talk)
    before = conversation(context, CLAUDE, around, registered=tuple(pins))
    outcome = compact_in_memory(before, CompactRequest("manual", target_tokens=target), policy, around)
    if not isinstance(outcome, Finished):
        return
    plan = outcome.plan
    assert plan.tokens_after <= target
    names = [item.name for item in plan.service]
    assert len(names) == len(set(names))
    made = apply_plan(context, plan, [f"s{at}" for at in range(len(names))])
    assert snapshot_of(conversation(made, CLAUDE, around)).live_tokens == plan.tokens_after
    for item in plan.service:
        assert (item.kind == "attachment") == (read_back(item.text) is not None)
