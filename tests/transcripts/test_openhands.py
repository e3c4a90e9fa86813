from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.library import compact_transcript
from mcp_compact.messages.words import users_words
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.openhands_kept import KeptEvents
from mcp_compact.transcripts.registry import reader_for
from tests.transcripts.foreign import document, jsonl, pairs, read, records, spoken

AT = "2025-01-27T22:44:56.900854"


def events(*items):
    return document([{"id": number, "timestamp": AT, **item} for number, item in enumerate(items)])


def asked(words):
    return {"source": "user", "action": "message", "args": {"content": words}}


def act(action, call_id="", answer="r1", said="", **given):
    event = {"source": "agent", "action": action, "args": given}
    if call_id:
        message = {"role": "assistant", "content": said, "tool_calls": [
            {"id": call_id, "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'}}]}  # fmt: skip
        event["tool_call_metadata"] = {
            "function_name": "execute_bash", "tool_call_id": call_id,
            "model_response": {"id": answer, "model": "m", "choices": [{"message": message}], "usage": {"prompt_tokens": 9}},
        }  # fmt: skip
    return event


def seen(kind, cause, content, call_id=""):
    event = {"source": "agent", "observation": kind, "cause": cause, "content": content, "extras": {}}
    return {**event, "tool_call_metadata": {"tool_call_id": call_id}} if call_id else event


def test_actions_of_one_answer_say_its_text_and_usage_once():
    data = events(
        asked("Look."), act("run", "c1", said="I look."), act("run", "c2", said="I look."), seen("run", 1, "a", "c1")
    )
    found = records("openhands", data)
    assert spoken(found) == [("user", "Look."), ("assistant", "I look.")]
    assert [(call.id, call.name, call.input) for r in found for call in r.calls] == [
        ("c1", "execute_bash", {"command": "ls"}), ("c2", "execute_bash", {"command": "ls"}),
    ]  # fmt: skip
    assert [r.message.usage.context_tokens for r in found if r.message and r.message.usage] == [9]


def test_an_action_without_a_call_is_paired_by_its_event():
    found = records("openhands", events(asked("x"), act("run", command="ls", thought="I look."), seen("run", 1, "a")))
    assert pairs(found) == [("run", {"command": "ls"}, "a", False)]
    assert found[1].text == "I look."


def test_an_observation_without_a_cause_is_never_the_result_of_the_first_event():
    found = records(
        "openhands", events(act("run", command="ls"), {"source": "agent", "observation": "run", "content": "a"})
    )
    assert pairs(found) == []


def test_the_end_is_what_the_agent_said_last():
    found = records("openhands", events(asked("x"), act("finish", "c1", final_thought="Done.")))
    assert spoken(found)[-1] == ("assistant", "Done.")
    assert not found[-1].calls


def test_what_the_workplace_tells_is_nobody_s_words():
    found = records("openhands", events(asked("x"), seen("recall", None, "Runs on Linux. Never use sudo.")))
    assert found[-1].is_meta
    assert users_words(found[-1]) == ""


def test_changes_of_state_are_kept_and_unknown_kinds_counted():
    state = {"source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}}
    reader, parsed = read(
        "openhands", events(asked("x"), state, {"source": "agent", "observation": "novel", "content": ""})
    )
    assert len(parsed) == 3
    assert reader.report.unknown_types == {"novel": 1}


def test_a_condensation_keeps_what_it_did_not_forget():
    gone = {"source": "agent", "action": "condensation",
            "args": {"forgotten_events_start_id": 1, "forgotten_events_end_id": 2, "summary": "They looked."}}  # fmt: skip
    data = events(
        asked("Look."), act("run", command="ls"), seen("run", 1, "a"), asked("And now?"), gone, asked("Go on.")
    )
    shown = [m["content"] for m in compact_transcript([data], output="anthropic").messages]
    assert shown == ["They looked.", "Look.", "And now?", "Go on."]


@pytest.mark.parametrize("named", [7, True, "1", {"1": 1}, None, [None, "1", [1]], 1.5])
def test_a_condensation_that_names_no_events_is_read_as_one_that_took_out_nothing(named: object):
    gone = {"source": "agent", "action": "condensation", "args": {"forgotten_event_ids": named, "summary": "S"}}
    found = records("openhands", events(asked("Look."), asked("More."), gone))
    assert [record.raw["compactMetadata"] for record in found if record.subtype] == [
        {"trigger": "auto", "preservedMessages": {"uuids": ["event-0", "event-1"]}}
    ]


numbers = st.lists(st.one_of(st.integers(0, 9), st.just(None)), max_size=30)
"""Events that come, one after the other but for a few (None: the number after the last)."""


@given(numbers, st.sets(st.integers(0, 40)), numbers)
def test_kept_events_are_those_that_came_in_their_order_and_did_not_leave(
    came: list[int | None], gone: set[int], later: list[int | None]
):
    plain: dict[int, None] = {}
    kept = KeptEvents()
    for at, number in enumerate([*came, *later]):
        if at == len(came):
            kept.leave_out(gone.__contains__)
            plain = dict.fromkeys(number for number in plain if number not in gone)
            kept = KeptEvents(json.loads(json.dumps(kept.stated())))
        following = max(plain, default=-1) + 1 if number is None else number
        kept.add(following)
        plain[following] = None
        assert list(kept) == list(plain)
    assert list(KeptEvents(list(plain))) == list(plain)  # as older versions stated them


def test_what_a_reader_keeps_in_mind_does_not_grow_with_the_events():
    def state_after(count: int) -> str:
        lines = list(read_lines([jsonl({"id": at, **asked("Go on.")} for at in range(count))]))
        reader = reader_for("openhands", "source")
        assert reader.goes_on(lines[0])
        assert len(list(reader.read(lines))) == count
        return json.dumps(reader.state()["own"])

    assert len(state_after(5000)) <= len(state_after(50)) + 10


def test_events_of_the_agent_sdk_are_read_too():
    data = document([
        {"kind": "SystemPromptEvent", "id": "e0", "source": "agent", "system_prompt": {"type": "text", "text": "Be brief."}},
        {"kind": "MessageEvent", "id": "e1", "source": "user", "llm_message": {"role": "user", "content": [{"text": "Look."}]}},
        {"kind": "ActionEvent", "id": "e2", "source": "agent", "thought": [{"text": "I look."}], "tool_name": "terminal",
         "tool_call_id": "c1", "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'},
         "llm_response_id": "r1"},
        {"kind": "ObservationEvent", "id": "e3", "source": "environment", "tool_name": "terminal", "tool_call_id": "c1",
         "observation": {"kind": "TerminalObservation", "content": [{"type": "text", "text": "a"}], "is_error": True}},
        {"kind": "Condensation", "id": "e4", "source": "environment", "forgotten_event_ids": ["e2", "e3"], "summary": "S"},
        {"kind": "MessageEvent", "id": "e5", "source": "user", "llm_message": {"role": "user", "content": [{"text": "More."}]}},
        {"kind": "NovelEvent", "id": "e6", "source": "agent"},
    ])  # fmt: skip
    reader, parsed = read("openhands", data)
    found = [item.record for item in parsed]
    assert pairs(found) == [("terminal", {"command": "ls"}, "a", True)]
    assert reader.report.unknown_types == {"NovelEvent": 1}
    shown = [m["content"] for m in compact_transcript([data], output="anthropic").messages]
    assert [part if isinstance(part, str) else part[0]["text"] for part in shown] == ["S", "Look.", "More."]


def test_the_rows_of_a_benchmark_hold_a_history():
    data = document({"instance_id": "django-1", "history": [{"id": 0, **asked("Fix it.")}], "metrics": {}})
    reader, parsed = read("openhands", data)
    assert spoken([item.record for item in parsed]) == [("user", "Fix it.")]
    assert reader.facts().session_id == "django-1"


def test_what_another_agent_did_is_a_session_of_its_own_and_its_answer_a_result():
    data = events(
        asked("Look it up."),
        act("delegate", "c1", agent="BrowsingAgent"),
        act("browse", url="https://example.org"),
        seen("browse", 2, "a page"),
        act("message", content="The page says so."),
        seen("delegate", 1, "It says so.", "c1"),
        asked("Thanks."),
    )
    reader, parsed = read("openhands", data)
    own = [item.record for item in parsed if item.agent_id is None]
    assert reader.agents == ("delegate-1",)
    assert reader.facts("delegate-1").agent_id == "delegate-1"
    assert [(record.type, record.text) for record in own if record.text] == [
        ("user", "Look it up."),
        ("user", "Thanks."),
    ]
    assert pairs(own) == [("execute_bash", {"command": "ls"}, "It says so.", False)]
    assert [item.record.text for item in parsed if item.agent_id and item.record.text] == ["The page says so."]
    assert not reader.report.warning_counts
