"""Lists and files that are given to be compacted: read or refused, and whatever is left out is named."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact import Counting, compact, compact_transcript
from mcp_compact.errors import CallerError
from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused

QUICK = Counting(lambda texts: [-(-len(text) // 4) for text in texts])
PROVIDERS = {"anthropic": "anthropic", "openai": "openai-chat", "responses": "openai-responses", "gemini": "gemini"}
BIG = "value = compute(part)\n" * 60


def langchain(form: str, rounds: int) -> list[dict[str, Any]]:
    """Messages as `messages_to_dict`, `model_dump` or `dumpd` write them."""
    plain: list[dict[str, Any]] = []
    for at in range(rounds):
        asked = {"name": "Read", "args": {"path": f"f{at}.py"}, "id": f"c{at}", "type": "tool_call"}
        plain += [
            {"type": "human", "content": f"Read file {at}. Never touch vendor/."},
            {"type": "ai", "content": "reading", "tool_calls": [asked]},
            {"type": "tool", "content": BIG, "tool_call_id": f"c{at}", "name": "Read"},
            {"type": "ai", "content": f"done {at}", "tool_calls": []},
        ]
    if form == "model_dump":
        return plain
    if form == "messages_to_dict":
        return [{"type": m["type"], "data": m} for m in plain]
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    return [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", names[m["type"]]], "kwargs": m}
        for m in plain
    ]


@pytest.mark.parametrize("form", ["messages_to_dict", "model_dump", "dumpd"])
@pytest.mark.parametrize("format", ["anthropic", "openai", "responses", "gemini"])
def test_messages_of_langchain_are_read_and_said_to_be_given_in_another_form(form: str, format: str) -> None:
    small, report = compact(langchain(form, 1), format=format, counting=QUICK)
    assert report.status == "nothing_to_compact"
    assert all(text in json.dumps(small) for text in ("Read file 0", "reading", "value = compute", "done 0"))
    assert any("langchain" in warning and format in warning for warning in report.warnings)
    out, report = compact(langchain(form, 40), 2_000, format=format, counting=QUICK)
    assert report.status == "compacted"
    assert "Never touch vendor/." in json.dumps(out)
    assert refused(findings(PROVIDERS[format], out)) == []


def test_a_list_of_a_clients_own_entries_is_read_or_refused() -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/x"}},
        *(
            {"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}}
            for role, kind, text in (("user", "input_text", "hi there"), ("assistant", "output_text", "hello"))
        ),
    ]  # fmt: skip
    out, _ = compact(lines, counting=QUICK)
    assert [message["role"] for message in out] == ["user", "assistant"]


MIXED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"role": "user", "content": "first words"}, {"role": "assistant", "content": "second words"}],
    "gemini": [{"role": "user", "parts": [{"text": "third words"}]}],
    "responses": [
        {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "fourth words"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "fifth"}]},
    ],
    "openai": [{"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool", "tool_call_id": "c", "content": "x"}],
    "langchain": [{"type": "human", "data": {"content": "sixth words"}}],
}  # fmt: skip
PAIRS = [
    (first, second)
    for first in MIXED
    for second in MIXED
    # A role and a text are at home in the items of Responses, and the chat API's are read as Anthropic's are.
    if first != second and {first, second} not in ({"anthropic", "responses"}, {"anthropic", "openai"})
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_list_or_file_of_two_apis_is_refused_with_both_places(first: str, second: str) -> None:
    messages = [*MIXED[first], *MIXED[second]]
    for asked in (
        lambda: compact(messages, counting=QUICK),
        lambda: compact_transcript([json.dumps(messages).encode()]),
        lambda: compact_transcript(["\n".join(map(json.dumps, messages)).encode()]),
    ):
        with pytest.raises(CallerError, match=r"[Mm]essage \d+ is .* but message \d+ is ") as refused_:
            asked()
        assert refused_.value.code == "mixed_messages"
        assert "Append" not in refused_.value.hint


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"role": "critic", "content": "it is lost"}, "critic"),
        ({"role": "user", "contents": "it is lost"}, "says nothing"),
        ({"role": "user", "content": []}, "says nothing"),
        ({"role": "user", "content": "  "}, "says nothing"),
        ({"role": "user", "content": None}, "says nothing"),
        ({"type": "user", "content": "it is lost"}, "says nothing"),
        ({"type": "whatever", "content": "it is lost"}, "whatever"),
    ],
)
def test_what_is_left_out_is_named_with_its_place_and_why(odd: dict[str, Any], said: str) -> None:
    messages = [{"role": "user", "content": "one"}, odd, {"role": "assistant", "content": "two"}]
    _, report = compact(messages, counting=QUICK)
    assert [w for w in report.warnings if "message 2" in w and said in w], report.warnings
    for data in (json.dumps(messages), "\n".join(map(json.dumps, messages))):
        result = compact_transcript([data.encode()])
        assert [w for w in result.report.warnings if "entry 2" in w and said in w], result.report.warnings
    with pytest.raises(CallerError, match=r"message 1.*" + re.escape(said)):
        compact([odd], counting=QUICK)


@pytest.mark.parametrize("format", ["anthropic", "openai", "responses", "gemini", "claude-code", "codex"])
def test_what_the_system_says_goes_along_or_is_named(format: str) -> None:
    said = {"role": "system", "content": "be very brief"}
    messages = [said, {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    out, report = compact(messages, format=format, counting=QUICK)
    assert ("be very brief" in json.dumps(out)) != any("message 1" in w and "system" in w for w in report.warnings)
    items = [{"type": "message", **said}, *({"type": "message", **m} for m in messages[1:])]
    out, report = compact(items, format=format, counting=QUICK)
    assert ("be very brief" in json.dumps(out)) != any("message 1" in w and "system" in w for w in report.warnings)
    asked = {"system": "be very brief", "messages": messages[1:]}
    result = compact_transcript([json.dumps(asked).encode()], output=format)
    told = any("system" in warning for warning in result.report.warnings)
    assert ("be very brief" in json.dumps(result.messages)) != told


def test_records_that_a_branch_or_a_clients_compaction_left_behind_are_named() -> None:
    def record(uuid: str, parent: str | None, text: str) -> dict[str, Any]:
        return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": text}}

    out, report = compact(
        [record("a", None, "one"), record("b", "a", "two"), record("c", "a", "three")], counting=QUICK
    )
    assert "two" not in json.dumps(out)
    assert any("message 2" in warning for warning in report.warnings)
    sidechain = {**record("d", None, "of a helper"), "isSidechain": True, "agentId": "x"}
    out, report = compact([record("a", None, "one"), sidechain], counting=QUICK)
    assert "of a helper" not in json.dumps(out)
    assert any("message 2" in warning and "sub-agent" in warning for warning in report.warnings)


WORDS = st.integers(0, 10**6).map(lambda number: f"word{number:07}")
ROLES = st.sampled_from(["user", "assistant", "system", "tool", "critic", "model", "developer", "function", ""])
TYPES = st.sampled_from(["human", "ai", "user", "message", "system", "tool", "remove", "foo", "summary", "reasoning"])


def _parts(word: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([
        word, [{"type": "text", "text": word}], [{"type": "output_text", "text": word}], [{"text": word}], word + " ",
        [{"type": "thinking", "thinking": word, "signature": "s"}], [{"type": "odd", "odd": word}],
    ])  # fmt: skip


@st.composite
def anything(draw: st.DrawFn) -> dict[str, Any]:
    """An object that may be a message of any API, or of none, with one word of its own."""
    word = draw(WORDS)
    item: dict[str, Any] = {}
    if draw(st.booleans()):
        item["role"] = draw(ROLES)
    if draw(st.integers(0, 2)) == 0:
        item["type"] = draw(TYPES)
    key = draw(
        st.sampled_from(["content"] * 6 + ["parts", "contents", "text", "data", "message", "kwargs", "tool_calls"])
    )
    value = draw(_parts(word))
    if key == "parts":
        value = value if isinstance(value, list) else [{"text": value}]
    item[key] = {"role": "user", "content": value} if key in ("data", "message", "kwargs") else value
    if key == "kwargs":
        item["lc"] = 1
    return item


@settings(max_examples=300)
@given(st.lists(anything(), min_size=1, max_size=4), st.sampled_from([*PROVIDERS, "claude-code", "codex"]))
def test_of_any_list_nothing_is_missing_without_a_warning_that_names_it(items: list[Any], format: str) -> None:
    try:
        out, report = compact(items, format=format, counting=QUICK)
    except CallerError:
        return
    assert out != []
    shown, warned = json.dumps(out), [w for w in report.warnings if re.match(r"messages? \d", w)]
    named = set()
    for warning in warned:
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", warning.split(":", 1)[0]):
            named |= set(range(int(first), int(last or first) + 1))
    # What a provider's rules left out is named by its place in the list that came out.
    by_rule = [w for w in report.warnings if re.match(r"[a-z]+\[\d+\]", w) and "left out" in w]
    for place, item in enumerate(items, 1):
        word = re.search(r"word\d{7}", json.dumps(item))
        assert word is not None
        assert word[0] in shown or place in named or by_rule, (item, report.warnings)
