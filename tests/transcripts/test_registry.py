from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_compact.errors import CallerError
from mcp_compact.transcripts.anthropic import AnthropicReader
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.outs import out_of
from mcp_compact.transcripts.registry import FORMATS, detect_format, reader_for, sniff
from mcp_compact.transcripts.sniffing import MOST_LEVELS, outlines
from tests.transcripts.samples import jsonl, user

FORMAT_OF = {
    "claude-code": "claude-code",
    "codex-rollout": "codex",
    "openai-chat": "openai",
    "openai-chat-log": "openai",
    "copilot-cli": "copilot-cli",
    "gemini-cli": "gemini-cli",
    "cline": "cline",
    "atif": "atif",
    "swe-agent-traj": "swe-agent",
    "mini-swe-traj": "swe-agent",
    "openhands": "openhands",
    "anthropic-messages": "api-log",
}


def files(shared: Path, folder: str) -> list[Path]:
    return sorted((shared / "transcripts" / folder).iterdir())


@pytest.mark.parametrize(("folder", "name"), FORMAT_OF.items())
def test_real_files_are_told_by_their_content(shared: Path, folder: str, name: str):
    found = {file.name: sniff(file.read_bytes()) for file in files(shared, folder)}
    assert found == dict.fromkeys(found, name)
    assert found


def test_beginning_of_a_session_is_enough_wherever_it_is_cut(claude_code_files: tuple[Path, ...]):
    for file in claude_code_files:
        head = file.read_bytes()[:5_000]
        assert {sniff(head[:size]) for size in range(400, len(head), 97)} == {"claude-code"}


def test_known_format_that_cannot_be_read_is_named():
    with pytest.raises(CallerError) as caught:
        detect_format(b'{"v":1,"agent":"a","cli_version":"1","type":"user","content":[]}')
    assert caught.value.code == "unreadable_format"
    assert caught.value.message == "This looks like an Entire transcript."
    assert "claude-code" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (jsonl([user("u1", "x")]), "claude-code"),
        (b'\xef\xbb\xbf\r\n{"type":"user","uuid":"u1","message":{"role":"user","content":"x"}}', "claude-code"),
        (b'{"type":"mode","mode":"normal","sessionId":"s"}', "claude-code"),
        (b'{"type":"made-up-later","sessionId":"s","uuid":"u"}', "claude-code"),
        (b'{"note":1}\n{"type":"summary","summary":"s","leafUuid":"l"}', "claude-code"),
        (b'{"type":"user","uuid":"u2","message":{"role":"us', "claude-code"),
        (b'{"type":"user","message":{"role":"user","content":"x"}}', "anthropic"),
        (b'{"role":"user","content":"x"}\n{"role":"assistant","content":"y"}', "anthropic"),
        (b'[\n  {"content": "x", "role": "user"}\n]', "anthropic"),
        (b'[{"type":"user","uuid":"u","message":{"role":"user","content":"x"}}]', "anthropic"),
        (
            b'{"model":"m","system":"' + b"long " * 40_000 + b'","messages":[{"role":"user","content":"x"}]}',
            "anthropic",
        ),
        (b'[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[]}]', "openai"),
        (b'{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"y"}]}', "openai"),
        (b'{"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"},"parts":[]}]}', "opencode"),
        (b'{"type":"session","id":"p","cwd":"/x"}', "pi"),
        (b'{"v":1,"agent":"a","cli_version":"1","type":"user","content":[]}', "entire"),
        (b'{"sessionId":"s","projectHash":"p","startTime":"t"}\n{"id":"1","type":"user","content":"x"}', "gemini-cli"),
        (b'{"kind":"MessageEvent","id":"e","source":"user","llm_message":{"role":"user","content":[]}}', "openhands"),
        (b'{"instance_id":"i","history":[{"source":"user","action":"message","args":{}}]}', "openhands"),
        (b'[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]', "responses"),
        (b'{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}', "responses"),
        (b'{"model":"m","input":"hello","instructions":"i"}', "responses"),
        (b'{"object":"response","model":"m","output":[{"type":"message","role":"assistant"}]}', "responses"),
        (b'{"request":{"model":"m","input":[{"role":"user"}]},"response":{"output":[]}}', "responses"),
        (b'[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[]}]', "gemini"),
        (b'{"contents":[{"parts":[{"text":"x"}]}],"systemInstruction":{"parts":[]}}', "gemini"),
        (b'[{"type":"system","data":{"content":"s"}},{"type":"human","data":{"content":"x"}}]', "langchain"),
        (b'{"messages":[{"type":"human","content":"x","id":null}]}', "langchain"),
        (b'[{"lc":1,"type":"constructor","id":["langchain","HumanMessage"],"kwargs":{"content":"x"}}]', "langchain"),
        (
            b'{"trajectory_format":"mini-swe-agent-1.1","info":{},"messages":[{"role":"user","content":"x"}]}',
            "swe-agent",
        ),
        (b'{"request":{"messages":[{"role":"user","content":"x"}]},"response":{"role":"assistant"}}', "api-log"),
        (b'{"name":"x","version":"1.0.0"}', None),
        (b"[1, 2, 3]", None),
        (b'["role", "content"]', None),
        (b'{"a":{"role":"user","content":"x"}}', None),
        (b'{"n":1}\n' * 100 + b'{"role":"user","content":"x"}', None),
        (b'{"a":"' + b"x" * (1 << 22) + b'","role":"user","content":"x"}', None),
        (b"", None),
    ],
    ids=range(38),
)
def test_format_is_told_by_content(data: bytes, name: str | None):
    assert sniff(data) == name


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_transcript"),
        (b" \r\n\t", "empty_transcript"),
        (b"\xef\xbb\xbf", "empty_transcript"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary_transcript"),
        ('{"type":"user"}'.encode("utf-16"), "binary_transcript"),
        (b"# Notes\nsecret words\n", "not_json"),
        (b'{"name":"secret words"}', "not_a_transcript"),
        (b"[]", "not_a_transcript"),
        (b"null", "not_a_transcript"),
        (b" 5\n", "not_a_transcript"),
        (b'"secret words"', "not_a_transcript"),
    ],
)
def test_what_is_no_transcript_is_refused_without_its_content(data: bytes, code: str):
    with pytest.raises(CallerError) as caught:
        detect_format(data)
    assert caught.value.code == code
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_a_json_value_that_holds_no_messages_is_not_said_to_be_no_json():
    for data in (b"null", b"5", b'"abc"', b"true"):
        with pytest.raises(CallerError, match="This is JSON"):
            detect_format(data)


def test_damaged_first_line_does_not_hide_the_format():
    assert detect_format(b"garbage\n" + jsonl([user("u1", "x")])) == "claude-code"


def test_each_format_has_its_reader():
    assert isinstance(reader_for("claude-code", "s"), ClaudeCodeReader)
    assert isinstance(reader_for("anthropic", "s"), AnthropicReader)
    assert all(name == format_.name and format_.title for name, format_ in FORMATS.items())


def test_unknown_format_is_refused_with_what_there_is():
    for ask in (lambda: reader_for("yaml", "s"), lambda: out_of("yaml")):
        with pytest.raises(CallerError) as caught:
            ask()
        assert caught.value.code == "unknown_format"
        assert "claude-code" in caught.value.hint
        assert "anthropic" in caught.value.hint
    json.dumps(str(caught.value))


def test_what_is_nested_deeper_than_any_transcript_is_not_looked_at() -> None:
    within, beyond = ("{" * depth + '"type": "user"}' for depth in (MOST_LEVELS, MOST_LEVELS + 1))
    assert list(outlines(beyond)) == []
    assert len(list(outlines('{"a":' * 3 + within[3:]))) == 1
