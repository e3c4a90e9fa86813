from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.valid import NO_RESULT, OPENING, valid_turns
from mcp_compact.testing import Talk, as_messages, tool_result, turns
from tests.problems import problems


def view(talk: Talk, **options: bool) -> tuple[list[dict[str, Any]], list[str]]:
    out, warnings = valid_turns(turns(talk.records), **options)
    return as_messages(out), warnings


def test_a_valid_conversation_is_left_as_it_is() -> None:
    talk = Talk()
    talk.user("look")
    talk.call("t1", "t2")
    talk.results("t1", "t2")
    talk.assistant("done")
    out, warnings = valid_turns(turns(talk.records))
    assert [turn.uuid for turn in out] == ["r1", "r2", "r3", "r4"]
    assert all(turn.whole for turn in out)
    assert warnings == []


def test_records_of_one_message_id_come_together_and_their_results_follow() -> None:
    talk = Talk()
    talk.user("look")
    talk.call("t1", message_id="m1")
    talk.results("t1")
    talk.call("t2", message_id="m1")
    talk.results("t2")
    talk.assistant("done", message_id="m2")
    out, _ = valid_turns(turns(talk.records))
    assert [turn.uuid for turn in out] == ["r1", "r2", "r4", "r3", "r5", "r6"]
    assert problems(as_messages(out)) == []


def test_an_unanswered_call_gets_a_short_error_and_no_turn_parts_a_message_id() -> None:
    talk = Talk()
    talk.user("q")
    talk.add("assistant", [{"type": "thinking", "thinking": "t", "signature": "S"}], message_id="m1")
    talk.call("t1", message_id="m1")
    talk.user("interrupt")
    talk.assistant("ok", message_id="m2")
    messages, warnings = view(talk)
    assert [m["role"] for m in messages] == ["user", "assistant", "assistant", "user", "user", "assistant"]
    assert messages[1]["content"][0] == {"type": "thinking", "thinking": "t", "signature": "S"}
    assert messages[3]["content"][0]["content"] == NO_RESULT
    assert messages[3]["content"][0]["is_error"] is True
    assert len(warnings) == 1
    assert problems(messages) == []


def test_an_open_last_call_stays_open_unless_it_is_to_be_closed() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1", "t2", message_id="m1")
    talk.results("t1")
    messages, warnings = view(talk)
    assert [b["tool_use_id"] for b in messages[-1]["content"]] == ["t1"]
    assert warnings == []
    closed, warnings = view(talk, close_open_calls=True)
    assert sorted(b["tool_use_id"] for m in closed[2:] for b in m["content"]) == ["t1", "t2"]
    assert len(warnings) == 1


def test_a_late_result_replaces_the_synthetic_one() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1")
    talk.user("never mind")
    talk.assistant("fine")
    talk.results("t1", text="late")
    messages, _ = view(talk)
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "t1", "content": "late"}]
    assert problems(messages) == []


def test_an_orphan_result_becomes_quoted_text() -> None:
    talk = Talk()
    talk.user("q")
    talk.results("gone", text="what it said")
    talk.assistant("ok")
    messages, warnings = view(talk)
    assert "what it said" in messages[1]["content"][0]["text"]
    assert len(warnings) == 1
    assert problems(messages) == []


def test_text_before_a_result_moves_behind_it() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1")
    talk.add("user", [{"type": "text", "text": "note"}, {"type": "tool_result", "tool_use_id": "t1", "content": "x"}])
    messages, _ = view(talk)
    assert problems(messages) == []
    assert messages[-1]["content"] == [{"type": "text", "text": "note"}]


def test_a_call_id_that_stands_twice_stands_once_in_the_view() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1")
    talk.user("again")
    talk.call("t1")
    talk.results("t1", text="the completed one")
    talk.assistant("ok")
    messages, warnings = view(talk)
    assert problems(messages) == []
    assert any("times" in warning for warning in warnings)
    results = [b for m in messages for b in m["content"] if b["type"] == "tool_result"]
    assert [r["content"] for r in results] == ["the completed one"]


def test_of_several_results_the_one_that_the_call_brought_stays_and_the_others_are_told_of() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1")
    talk.add("user", [tool_result("t1", "ran"), tool_result("t1", "aborted", is_error=True)])
    talk.assistant("ok")
    talk.add("user", [tool_result("t1", "aborted once more", is_error=True)])
    messages, warnings = view(talk)
    assert problems(messages) == []
    results = [b for m in messages for b in m["content"] if b["type"] == "tool_result"]
    assert [r["content"] for r in results] == ["ran"]
    assert warnings == ["call t1 has 3 results: the last one that is no error counts"]


def test_of_repeated_calls_the_one_that_the_counting_result_answers_is_kept() -> None:
    talk = Talk()
    talk.user("q")
    talk.add("assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "first"}}])
    talk.add("user", [tool_result("t1", "aborted", is_error=True)])
    talk.add("assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "second"}}])
    talk.add("user", [tool_result("t1", "content of the second")])
    talk.assistant("ok")
    messages, _ = view(talk)
    assert problems(messages) == []
    calls = [b for m in messages for b in m["content"] if b["type"] == "tool_use"]
    assert [call["input"]["file_path"] for call in calls] == ["second"]


def test_a_result_before_its_call_is_quoted_though_the_call_has_one_after_it() -> None:
    talk = Talk()
    talk.user("q")
    talk.add("user", [tool_result("t1", "too early")])
    talk.call("t1")
    talk.results("t1", text="in time")
    talk.assistant("ok")
    messages, warnings = view(talk)
    assert problems(messages) == []
    assert "too early" in messages[1]["content"][0]["text"]
    assert len(warnings) == 1


def test_nothing_empty_goes_out_and_the_user_speaks_first() -> None:
    talk = Talk()
    talk.assistant("hello")
    talk.user("   ")
    talk.add("user", [])
    talk.add("assistant", [{"type": "text", "text": ""}, {"type": "text", "text": "more"}])
    messages, _ = view(talk)
    assert problems(messages) == []
    assert messages[0]["content"][0]["text"] == OPENING


def test_half_a_server_pair_is_quoted() -> None:
    talk = Talk()
    talk.user("q")
    talk.add("assistant", [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}])
    talk.add("assistant", [{"type": "web_search_tool_result", "tool_use_id": "s2", "content": []}])
    messages, warnings = view(talk)
    assert problems(messages) == []
    assert len(warnings) == 2


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "text"},
        {"type": "text", "text": None},
        {"type": "tool_use", "name": "Read", "input": {}},
        {"type": "tool_result", "content": "x"},
        {"type": "", "note": 1},
        {"note": 1},
        7,
        None,
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_block_that_no_provider_accepts_is_quoted_and_told_of(role: str, broken: object) -> None:
    talk = Talk()
    talk.user("q")
    talk.add(role, [{"type": "text", "text": "before"}, broken])
    talk.add("user", "next")
    messages, warnings = view(talk)
    assert problems(messages) == []
    assert {block["type"] for message in messages for block in message["content"]} == {"text"}
    assert len(warnings) == 1


def test_of_an_answer_in_several_records_only_the_one_with_half_a_pair_is_changed() -> None:
    talk = Talk()
    talk.user("q")
    talk.assistant("I search", message_id="m1")
    talk.add("assistant", [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}], message_id="m1")
    out, _ = valid_turns(turns(talk.records))
    assert [turn.whole for turn in out] == [True, True, False]
    assert problems(as_messages(out)) == []


def test_a_block_of_a_kind_that_we_do_not_know_goes_out_as_it_is() -> None:
    talk = Talk()
    talk.add("user", [{"type": "novelty", "value": 1}])
    messages, warnings = view(talk)
    assert messages[0]["content"] == [{"type": "novelty", "value": 1}]
    assert warnings == []


def test_a_server_result_outside_of_its_answer_is_quoted() -> None:
    talk = Talk()
    talk.user("q")
    talk.add(
        "user", [{"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": "hit"}]}]
    )
    messages, warnings = view(talk)
    assert "hit" in messages[1]["content"][0]["text"]
    assert len(warnings) == 1
    assert problems(messages) == []


def test_parallel_results_in_one_turn_with_an_unrelated_text_stay_next_to_their_calls() -> None:
    talk = Talk()
    talk.user("q")
    talk.call("t1", "t2", message_id="m1")
    talk.results("t2")
    talk.user("by the way")
    talk.results("t1")
    talk.assistant("ok")
    messages, _ = view(talk)
    assert problems(messages) == []
    assert "by the way" in json.dumps(messages)


IDS = st.sampled_from(["t1", "t2", "t3"])
BROKEN = st.sampled_from([{"type": "text"}, {"type": "tool_use"}, {"type": "tool_result", "content": "x"}, {}, 7])
BLOCKS = {
    "assistant": st.one_of(
        BROKEN,
        st.builds(lambda t: {"type": "text", "text": t}, st.sampled_from(["a", "b", " ", ""])),
        st.builds(lambda i: {"type": "tool_use", "id": i, "name": "Read", "input": {}}, IDS),
        st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
        st.builds(lambda i: {"type": "server_tool_use", "id": i, "name": "web_search", "input": {}}, IDS),
        st.builds(lambda i: {"type": "web_search_tool_result", "tool_use_id": i, "content": []}, IDS),
    ),
    "user": st.one_of(
        BROKEN,
        st.builds(lambda t: {"type": "text", "text": t}, st.sampled_from(["a", "b", " ", ""])),
        st.builds(
            lambda i, e: {"type": "tool_result", "tool_use_id": i, "content": "r", "is_error": e}, IDS, st.booleans()
        ),
    ),
}


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    talk = Talk()
    for _ in range(draw(st.integers(0, 9))):
        role = draw(st.sampled_from(["user", "assistant"]))
        message_id = draw(st.sampled_from(["", "m1", "m2"])) if role == "assistant" else ""
        talk.add(role, draw(st.lists(BLOCKS[role], max_size=4)), message_id=message_id)
    return talk


@given(talks(), st.booleans())
def test_whatever_stands_in_the_archive_the_view_is_valid(talk: Talk, close: bool) -> None:
    out, _ = valid_turns(turns(talk.records), close_open_calls=close)
    assert problems(as_messages(out)) == []


@given(talks())
def test_repairing_twice_changes_nothing_more(talk: Talk) -> None:
    once, _ = valid_turns(turns(talk.records))
    twice, warnings = valid_turns(once)
    assert as_messages(twice) == as_messages(once)
    assert not [warning for warning in warnings if "open" not in warning]


@given(talks())
def test_thinking_is_never_changed(talk: Talk) -> None:
    out, _ = valid_turns(turns(talk.records))
    before = [b for r in talk.records for b in r.blocks if type(b).__name__ == "ThinkingBlock"]
    after = [b for t in out for b in t.blocks if type(b).__name__ == "ThinkingBlock"]
    assert len(before) == len(after)
    assert {id(b) for b in before} == {id(b) for b in after}
