from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcp_compact
from mcp_compact import Counting, compact, compact_transcript
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.wording import OPENING
from mcp_compact.errors import CallerError
from mcp_compact.messages.weights import estimate_all
from mcp_compact.testing import Talk, image, tool_result
from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused
from tests.conversations import talks
from tests.problems import problems

RULE = "Never push to the main branch."


def letters(texts: Sequence[str]) -> list[int]:
    """A quick counter: four letters a token."""
    return [-(-len(text) // 4) for text in texts]


QUICK = Counting(letters)


def chat(rounds: int, first: int = 0) -> list[dict[str, Any]]:
    """Rounds of a question, a call with its result and an answer; about 500 tokens each."""
    out: list[dict[str, Any]] = []
    for i in range(first, first + rounds):
        call = {"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"src/part{i}.py"}}
        out += [
            {"role": "user", "content": f"look at part {i}"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [tool_result(f"t{i}", f"def part{i}(): return {i}\n" * 60)]},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": f"part {i} returns {i}. " + "It is fine. " * 20}],
            },
        ]
    return out


def texts_of(messages: Sequence[dict[str, Any]]) -> str:
    return json.dumps(messages, ensure_ascii=False)


def merged(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in messages if message["role"] != "system"]


# --- what it gives


def test_a_conversation_shrinks_below_its_target_and_is_valid() -> None:
    messages = chat(40)
    out, report = compact(messages, 4000, counting=QUICK)
    assert (report.status, report.strategy, report.target_tokens) == ("compacted", "session_memory", 4000)
    assert report.tokens_after <= 4000 < report.tokens_before
    assert problems(out) == []
    assert out[0]["content"].startswith(OPENING)
    assert out[0]["content"] == report.memory
    assert out[-1] == messages[-1]


def test_what_is_given_is_never_changed() -> None:
    messages = [{"role": "user", "content": RULE}, *chat(30), {"role": "user", "content": [image(), "half \ud83d"]}]
    before = deepcopy(messages)
    compact(messages, 3000, counting=QUICK)
    assert messages == before


def test_without_a_target_it_stays_below_the_windows_threshold() -> None:
    out, report = compact(chat(40), context_window=20_000, counting=QUICK)
    assert report.status == "compacted"
    assert report.target_tokens == 9_999
    assert problems(out) == []


def test_where_nothing_is_to_gain_the_messages_come_back_repaired() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [tool_result("gone", "x")]},
    ]
    out, report = compact(messages, counting=QUICK)
    assert report.status == "nothing_to_compact"
    assert report.tokens_after == report.tokens_before
    assert len(report.warnings) == 1
    assert problems(out) == []


def test_a_list_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(CallerError, match="message 1: it says nothing"):
        compact([{"role": "user", "content": []}], counting=QUICK)


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "one"}]])
def test_an_empty_and_a_one_message_conversation_have_nothing_to_compact(messages: list[dict[str, Any]]) -> None:
    out, report = compact(messages, counting=QUICK)
    assert report.status == "nothing_to_compact"
    assert problems(out) == []


def test_system_messages_stay_in_front() -> None:
    out, _ = compact([{"role": "system", "content": "be brief"}, *chat(40)], 4000, counting=QUICK)
    assert out[0] == {"role": "system", "content": "be brief"}
    assert problems(merged(out)) == []


def test_nothing_promises_an_archive_where_there_is_none() -> None:
    rules = [{"role": "user", "content": f"Never touch the folder number_{n}_of_the_work/ again."} for n in range(60)]
    many = [message for pair in zip(rules, chat(40)[3::4] * 2, strict=False) for message in pair]
    out, report = compact([*many, *chat(40)], 700, counting=QUICK)
    assert report.loss.instructions_missing
    assert any(report.loss.instructions_missing[0] in warning for warning in report.warnings)
    file = compact_transcript([jsonl([*many, *chat(40)])], target_tokens=700)
    for told in (*report.warnings, *file.report.warnings, texts_of(out), json.dumps(file.messages), report.memory):
        assert "archive" not in told
        assert "nothing was lost" not in told
        assert "search_messages" not in told


def test_an_open_call_stays_open_at_the_end() -> None:
    call = {"type": "tool_use", "id": "open", "name": "mcp__compact__compact_session", "input": {}}
    out, report = compact([*chat(40), {"role": "assistant", "content": [call]}], 4000, counting=QUICK)
    assert report.status == "compacted"
    assert out[-1]["content"] == [call]
    assert problems([*out, {"role": "user", "content": [tool_result("open", "done")]}]) == []


def test_the_users_instruction_is_there_word_for_word() -> None:
    out, report = compact([{"role": "user", "content": RULE}, *chat(40)], 4000, counting=QUICK)
    assert RULE in texts_of(out)
    assert report.loss.instructions == report.loss.instructions_kept == 1


def test_records_of_a_transcript_can_be_given_too() -> None:
    records = [
        {
            "type": message["role"],
            "uuid": f"u{i}",
            "message": message,
            "cwd": "/x",
            "toolUseResult": {"copy": "x" * 90_000},
        }
        for i, message in enumerate(chat(40))
    ]
    out, report = compact(records, 4000, counting=QUICK)
    assert report.status == "compacted"
    assert report.tokens_before < 40 * 700
    assert problems(out) == []


def test_a_transcripts_own_entries_come_out_on_request() -> None:
    out, report = compact(chat(40), 4000, "claude-code", counting=QUICK)
    assert report.status == "compacted"
    assert {"type", "uuid", "message"} <= set(out[-1])


def test_the_report_tells_what_fills_the_context_unless_one_counts_oneself() -> None:
    _, own = compact(chat(12), 2000, counting=QUICK)
    assert own.before == own.after == ()
    _, counted = compact(chat(12), 2000, model="gpt-5")
    assert {item.kind for item in counted.before} >= {"your words", "Read results", "assistant"}
    assert sum(item.tokens for item in counted.after) < sum(item.tokens for item in counted.before)


def test_your_own_counting_and_policy_are_obeyed() -> None:
    _, plain = compact(chat(10), 3000, counting=Counting(letters))
    _, dear = compact(chat(10), 3000, counting=Counting(letters, per_message=10, per_result=100))
    assert dear.tokens_before == plain.tokens_before + 40 * 10 + 10 * 100
    _, off = compact(chat(40), 4000, counting=QUICK, policy=Policy(sm_compact=False))
    assert (off.status, off.declined[0].reason) == ("failed", "switched_off")


# --- what it refuses


def test_a_bad_target_and_an_unknown_format_are_refused() -> None:
    for target in (0, -1):
        with pytest.raises(CallerError, match="positive"):
            compact(chat(1), target)
    with pytest.raises(CallerError, match="anthropic"):
        compact(chat(1), format="morse")


@pytest.mark.parametrize("target", ["x", 2000.5, True, [3000]])
def test_a_target_that_is_no_whole_number_is_refused_with_what_to_do(target: Any) -> None:
    transcript = [json.dumps(chat(1)[0]).encode()]
    for asked in (
        lambda: compact([], target_tokens=target),
        lambda: compact_transcript(transcript, target_tokens=target),
    ):
        with pytest.raises(CallerError, match="whole number of tokens") as refused:
            asked()
        assert refused.value.hint == "Leave it out for the window's threshold."


@pytest.mark.parametrize("bad", [None, 7, "text", b"text", {"role": "user", "content": "hi"}])
def test_what_is_no_list_of_messages_is_refused_with_what_to_do(bad: Any) -> None:
    with pytest.raises(CallerError, match=f"must be a list, not {type(bad).__name__}") as refused:
        compact(bad)
    assert "role, content" in refused.value.hint


def test_messages_that_can_be_read_only_once_keep_what_the_system_says() -> None:
    messages = [{"role": "system", "content": "Be brief."}, *chat(1)]
    once: Any = iter(messages)
    assert compact(once, counting=QUICK)[0] == compact(messages, counting=QUICK)[0]


@pytest.mark.parametrize("bad", ["text", 7, None, {}, {"content": "x"}, {"role": 5}])
def test_what_is_no_message_is_refused_with_its_place(bad: Any) -> None:
    with pytest.raises(CallerError, match="Message 2"):
        compact([{"role": "user", "content": "hi"}, bad])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), b"bytes", {1, 2}])
def test_what_is_no_json_is_refused_with_its_place(bad: object) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"value": bad}}
    with pytest.raises(CallerError, match="Message 2"):
        compact([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}])


# --- going on with the list that came back


def test_the_list_that_came_back_goes_on_over_five_rounds() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": RULE}]
    sizes = []
    for turn in range(5):
        messages = [*messages, *chat(30, first=100 * turn)]
        messages, report = compact(messages, 4000, counting=QUICK)
        assert report.status == "compacted", (turn, report.declined)
        assert report.tokens_after <= 4000
        assert problems(messages) == []
        assert RULE in texts_of(messages), turn
        assert texts_of(messages).count(OPENING) == 1
        sizes.append(report.tokens_after)
    assert max(sizes) <= 4000


def test_an_instruction_of_a_later_round_is_carried_on_too() -> None:
    messages, _ = compact(chat(30), 4000, counting=QUICK)
    messages, _ = compact([*messages, {"role": "user", "content": RULE}, *chat(30, 100)], 4000, counting=QUICK)
    for turn in range(2, 5):
        messages, _ = compact([*messages, *chat(30, 100 * turn)], 4000, counting=QUICK)
        assert RULE in texts_of(messages), turn


def test_an_attached_instruction_is_carried_on() -> None:
    short = Policy(require_instructions=True)
    messages: list[dict[str, Any]] = [{"role": "user", "content": RULE}]
    for turn in range(5):
        messages, _ = compact([*messages, *chat(12, 100 * turn)], 1200, counting=QUICK, policy=short)
        assert RULE in texts_of(messages), turn


def test_compacting_what_was_just_compacted_gains_nothing() -> None:
    once, _ = compact(chat(40), 4000, counting=QUICK)
    twice, report = compact(once, 4000, counting=QUICK)
    assert report.status in ("nothing_to_compact", "no_progress")
    assert twice == once


LISTS = talks(least=3, most=9).map(
    lambda talk: [dict(record.raw) if "role" in record.raw else {} for record in talk.records]
)


@settings(max_examples=20)
@given(LISTS, st.lists(LISTS, min_size=1, max_size=3), st.sampled_from([700, 3000, 12_000]))
def test_any_list_goes_on_round_after_round(
    first: list[dict[str, Any]], more: list[list[dict[str, Any]]], target: int
) -> None:
    messages = first
    for number, added in enumerate([[], *more]):
        messages = [*messages, *renamed(added, number)]
        given_ = deepcopy(messages)
        out, report = compact(
            messages, target, counting=Counting(lambda texts: [u // 1000 for u in estimate_all(texts)])
        )
        assert messages == given_
        assert problems(out) == []
        assert report.tokens_after <= report.tokens_before
        if report.status == "compacted":
            assert report.tokens_after <= target
        messages = out


def renamed(messages: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The same messages with ids of their own."""
    text = json.dumps(messages)
    for kind in ('"id": "', '"tool_use_id": "'):
        text = text.replace(kind, f"{kind}{number}-")
    return list(json.loads(text))


# --- transcripts


def jsonl(messages: Sequence[dict[str, Any]]) -> bytes:
    lines = [
        {"type": m["role"], "uuid": f"u{i}", "sessionId": "s-1", "timestamp": "2026-01-01T00:00:00Z", "message": m}
        for i, m in enumerate(messages)
    ]
    return b"\n".join(json.dumps(line).encode() for line in lines)


def test_a_transcript_in_pieces_is_compacted_in_its_own_format() -> None:
    data = jsonl(chat(60))
    result = compact_transcript((data[at : at + 999] for at in range(0, len(data), 999)), target_tokens=4000)
    assert (result.format, result.session_id, result.report.status) == ("claude-code", "s-1", "compacted")
    assert list(result.read.problems) == []
    assert {"type", "uuid", "message"} <= set(result.messages[-1])


def test_a_transcript_is_given_out_in_the_format_that_is_asked_for() -> None:
    result = compact_transcript([jsonl(chat(60))], output="anthropic", target_tokens=4000, model="claude-opus-4-7")
    assert result.format == "anthropic"
    assert problems(result.messages) == []


def test_a_transcript_without_messages_is_refused() -> None:
    line = b'{"type":"system","uuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","content":"x"}\n'
    with pytest.raises(CallerError, match="no messages"):
        compact_transcript([line], format="claude-code")
    with pytest.raises(CallerError, match="empty"):
        compact_transcript([b" "])


# --- the package


def test_the_librarys_names_are_there_and_others_are_not() -> None:
    assert all(getattr(mcp_compact, name) is not None for name in mcp_compact.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        mcp_compact.nothing_like_it  # noqa: B018 - the access is what raises


def test_the_library_imports_neither_mcp_nor_a_database() -> None:
    code = "import sys, mcp_compact; mcp_compact.compact([]); print([m for m in ('mcp','aiosqlite','sqlite3','pydantic') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.strip() == "[]"


def test_a_talk_of_many_kinds_is_compacted_too() -> None:
    talk = Talk()
    talk.user(RULE)
    for i in range(12):
        talk.call(f"a{i}", f"b{i}", message_id=f"m{i}")
        talk.results(f"b{i}", f"a{i}", text="输出行\n" * 200)
        talk.add("user", [image(), "see the picture"])
        talk.assistant("done")
    out, report = compact([dict(record.raw) for record in talk.records], 3000, counting=QUICK)
    assert report.tokens_after <= 3000
    assert problems(out) == []


def test_what_a_clients_own_compaction_replaced_is_not_live() -> None:
    old, new = chat(30), chat(3, first=100)
    records: list[dict[str, Any]] = [{"type": m["role"], "uuid": f"o{i}", "message": m} for i, m in enumerate(old)]
    records.append(
        {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "compactMetadata": {"trigger": "auto"}}
    )
    summary = {"role": "user", "content": "What was done before, in a few words."}
    records.append({"type": "user", "uuid": "s1", "isCompactSummary": True, "message": summary})
    records += [{"type": m["role"], "uuid": f"n{i}", "message": m} for i, m in enumerate(new)]
    out, report = compact(records, counting=QUICK)
    assert report.tokens_before < 3000
    assert out[0] == summary
    assert "part0.py" not in texts_of(out)
    assert problems(out) == []


def test_what_a_client_cleared_itself_is_cleared() -> None:
    records: list[dict[str, Any]] = [{"type": m["role"], "uuid": f"o{i}", "message": m} for i, m in enumerate(chat(3))]
    metadata = {"trigger": "auto", "compactedToolIds": ["t0"]}
    records.append(
        {"type": "system", "subtype": "microcompact_boundary", "uuid": "b1", "microcompactMetadata": metadata}
    )
    out, _ = compact(records, counting=QUICK)
    assert "def part0" not in texts_of(out)
    assert "def part1" in texts_of(out)
    assert problems(out) == []


def items_of_responses() -> list[dict[str, object]]:
    items: list[dict[str, object]] = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "Read them all. Never touch vendor/."}]},
    ]
    for at in range(20):
        given = json.dumps({"path": f"src/part_{at}.py"})
        items += [
            {"type": "reasoning", "id": f"rs_{at}", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "id": f"fc_{at}", "call_id": f"c{at}", "name": "read", "arguments": given},
            {"type": "function_call_output", "call_id": f"c{at}", "output": f"def part_{at}(): pass\n" * 60},
        ]
    return items


def contents_of_gemini() -> list[dict[str, object]]:
    contents: list[dict[str, object]] = [{"role": "user", "parts": [{"text": "Read them all. Never touch vendor/."}]}]
    for at in range(20):
        call = {"name": "read", "args": {"path": f"src/part_{at}.py"}}
        answer = {"name": "read", "response": {"output": f"def part_{at}(): pass\n" * 60}}
        contents.append({"role": "model", "parts": [{"functionCall": call, "thoughtSignature": "c2ln"}]})
        contents.append({"role": "user", "parts": [{"functionResponse": answer}]})
    return contents


@pytest.mark.parametrize(
    ("format", "provider", "messages"),
    [
        ("responses", "openai-responses", items_of_responses()),
        ("gemini", "gemini", contents_of_gemini()),
        ("anthropic", "anthropic", contents_of_gemini()),
        ("openai", "openai-chat", items_of_responses()),
    ],
)
def test_items_and_contents_of_other_apis_are_compacted_in_any_form(format, provider, messages):
    out, report = compact(messages, 2_000, format=format)
    assert (report.status, report.tokens_after <= 2_000) == ("compacted", True)
    assert refused(findings(provider, out)) == []
    assert "Never touch vendor/." in json.dumps(out)
    if provider == "openai-responses":
        # The last step stands whole: its reasoning, its call with the id that belongs to it, its output.
        assert out[-3:] == messages[-3:]
    if (format, provider) == ("gemini", "gemini"):
        assert out[-2:] == messages[-2:]
