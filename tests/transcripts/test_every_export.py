"""Whatever was imported goes out to every provider: files as they are, damaged, doubled, and made-up conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.errors import CallerError
from mcp_compact.messages.message import Record
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.registry import detect_format
from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused
from tests.conversations import talks
from tests.transcripts.exporting import all_sent, conversations, dialogue, files, sent, tokens_of
from tests.transcripts.foreign import WRITERS, pairs, spoken, turns


def refusals(found: list[Record], target_tokens: int | None = None) -> list[str]:
    """What providers would refuse of a session."""
    return [
        f"{finding.rule} {finding.path}"
        for provider, messages in all_sent(found, target_tokens).items()
        for finding in refused(findings(provider, messages))
        if messages
    ]


def test_every_transcript_goes_out_valid_for_every_provider_whole_and_compacted(shared: Path):
    seen: dict[str, int] = {}
    for file in files(shared):
        for data in conversations(file):
            found = dialogue(data)
            if found:
                name = detect_format(data)
                seen[name] = seen.get(name, 0) + 1
                assert refusals(found) == [], file.name
                assert refusals(found, max(tokens_of(found) // 3, 1)) == [], file.name
    assert len(seen) >= 10


@given(talks(), st.sampled_from([1, 200, None]))
@settings(max_examples=25)
def test_any_conversation_goes_out_valid_for_every_provider(talk: Any, target: int | None):
    assert refusals(list(talk.records), target) == []


@pytest.mark.parametrize("out", OUTS)
@given(said=turns)
@settings(max_examples=8)
def test_any_conversation_is_read_back_from_every_format_with_all_that_was_said(out: str, said: Any):
    found = dialogue(WRITERS["cline"](said), "cline")
    messages = sent(found, out)
    lines = "\n".join(json.dumps(message) for message in messages)
    again = dialogue(lines.encode() if OUTS[out].by_line else json.dumps(messages).encode(), out)
    assert _texts(again) == _texts(found)
    assert [pair[:2] for pair in pairs(again)] == [pair[:2] for pair in pairs(found)]
    assert [pair[2].removeprefix("[error]\n") for pair in pairs(again)] == [pair[2] for pair in pairs(found)]
    assert _said(sent(again, out)) == _said(messages)


def _texts(found: Sequence[Record]) -> list[tuple[str, str]]:
    """What was said, neighbours of one role together: formats part messages differently."""
    out: list[tuple[str, str]] = []
    for role, text in spoken(found):
        out = [*out[:-1], (role, f"{out[-1][1]}\n{text}")] if out and out[-1][0] == role else [*out, (role, text)]
    return out


def _said(messages: Sequence[Any]) -> list[Any]:
    """Lines of a client's session without their own names and times."""
    own = ("uuid", "parentUuid", "timestamp", "sessionId", "session_id", "id")
    return [
        {
            key: _said([value])[0] if isinstance(value, dict) else value
            for key, value in message.items()
            if key not in own
        }
        for message in messages
    ]


# ------------------------------------------------------------------ damage


def cut(data: bytes, at: int) -> bytes:
    return data[: at % (len(data) + 1)]


def entries(change: Callable[[list[Any]], list[Any]]) -> Callable[[bytes], bytes]:
    """A change of the entries of a file: its lines, or the longest list in its one value."""

    def changed(data: bytes) -> bytes:
        try:
            value = json.loads(data)
        except ValueError:
            value = None
        keys = [key for key in value if isinstance(value[key], list)] if isinstance(value, dict) else []
        if not keys and not isinstance(value, list):
            return b"\n".join(change(data.splitlines())) + b"\n"
        if isinstance(value, list):
            return json.dumps(change(value)).encode()
        key = max(keys, key=lambda key: len(value[key]))
        return json.dumps({**value, key: change(value[key])}).encode()

    return changed


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "reordered": entries(lambda items: items[::-1]),
    "rotated": entries(lambda items: [*items[len(items) // 2 :], *items[: len(items) // 2]]),
    "doubled": entries(lambda items: [item for item in items for _ in range(2)]),
    "twice": entries(lambda items: [*items, *items]),
    "every other": entries(lambda items: items[::2]),
    "without its first": entries(lambda items: items[1:]),
    "two at once": lambda data: data + data,
}


@pytest.mark.parametrize("name", WRITERS)
@given(said=turns, at=st.integers(0, 10**6), damage=st.sampled_from(["cut", *DAMAGES]))
@settings(max_examples=12)
def test_damaged_files_are_refused_with_a_reason_or_go_out_valid(name: str, said: Any, at: int, damage: str):
    data = WRITERS[name](said)
    broken = cut(data, at) if damage == "cut" else DAMAGES[damage](data)
    found = read_or_refused(broken, name)
    assert not found or refusals(found) == []


def read_or_refused(data: bytes, name: str) -> list[Record]:
    """The records of a damaged file; none where it is refused, which must say what to do."""
    try:
        return dialogue(data, name)
    except CallerError as error:
        return [] if error.code and error.hint else pytest.fail(f"{error!r} does not say what to do")


def test_damaged_real_files_are_refused_with_a_reason_or_go_out_valid(shared: Path):
    seen = set()
    for file in sorted(files(shared), key=lambda path: path.stat().st_size):
        if file.parent.name in seen or file.stat().st_size < 2_000:
            continue
        seen.add(file.parent.name)
        data = next(conversations(file))
        name = detect_format(data)
        for broken in (cut(data, len(data) * 2 // 3), *(damage(data) for damage in DAMAGES.values())):
            found = read_or_refused(broken, name)
            assert not found or refusals(found) == [], file.name
    assert len(seen) >= 10


def test_a_message_that_means_more_than_it_says_goes_out_as_what_it_means():
    """Trajectories whose commands stand in the text, or whose results name their calls in another field."""
    step = {"role": "assistant", "content": "I look.\n```bash\nls\n```", "agent": "a", "message_type": "action"}
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    history = [
        {"role": "system", "content": "Be brief.", "agent": "a"},
        {"role": "user", "content": "Fix it.", "agent": "a"},
        {"role": "assistant", "content": "I read.", "tool_calls": [call], "agent": "a"},
        {"role": "tool", "content": "x = 1", "tool_call_ids": ["c1"], "agent": "a"},
    ]
    data = json.dumps({"environment": "e", "trajectory": [], "history": history, "info": {}}).encode()
    chat, items = (sent(dialogue(data, "swe-agent"), name) for name in ("openai", "responses"))
    assert chat == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": "I read.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
    ]
    assert [item.get("type", "message") for item in items[2:]] == ["message", "function_call", "function_call_output"]
    written = [{"role": "user", "content": "Fix it."}, step, {"role": "user", "content": "OBSERVATION:\na.py"}]
    found = dialogue(json.dumps(written).encode(), "swe-agent")
    assert [message["role"] for message in sent(found, "openai")] == ["user", "assistant", "tool"]
    assert [item.get("type", "message") for item in sent(found, "responses")][1:] == [
        "message",
        "function_call",
        "function_call_output",
    ]
