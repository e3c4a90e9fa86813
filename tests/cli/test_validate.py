from __future__ import annotations

import json
import stat
from typing import Any

import pytest

from mcp_compact.cli.parser import PROVIDERS, WRITTEN
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.validity import providers

BROKEN: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"at": 1}}},
    ]},
    {"role": "user", "content": "what?"},
]  # fmt: skip


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(BROKEN))
    return path


def test_the_parser_names_the_formats_and_providers_that_there_are():
    assert tuple(OUTS) == WRITTEN
    assert tuple(providers.PROVIDERS) == PROVIDERS


def test_what_would_be_refused_is_listed_with_its_place_and_rule(command, broken):
    done = command("validate", str(broken))
    assert done.code == 2
    assert "refused by the rules of openai-chat, 3 messages" in done.out
    assert "messages[1].tool_calls[0]" in done.out
    assert "(openai-chat/unanswered)" in done.out
    assert "(openai-chat/call)" in done.out
    assert "--repair -o OUT" in done.out


def test_a_repaired_list_is_written_for_its_owner_alone_and_valid(command, broken, tmp_path):
    out = tmp_path / "out.json"
    done = command("validate", str(broken), "--repair", "-o", str(out))
    assert done.code == 0
    assert "2 changes:" in done.out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    repaired = json.loads(out.read_text())
    assert [repaired[0], repaired[3]] == [BROKEN[0], BROKEN[2]]
    assert repaired[1]["tool_calls"][0]["function"]["arguments"] == '{"at":1}'
    assert (repaired[2]["role"], repaired[2]["tool_call_id"]) == ("tool", "c1")
    assert json.loads(broken.read_text()) == BROKEN
    assert command("validate", str(out)).code == 0
    again = command("validate", str(out), "--repair", "--json")
    assert (again.json["status"], again.json["changes"]) == ("valid", [])


def test_a_request_and_a_message_a_line_come_back_in_their_own_form(program, tmp_path):
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"model": "m", "messages": BROKEN, "max_tokens": 7}))
    done = program("validate", str(request), "--repair")
    assert {**json.loads(done.out), "messages": 0} == {"model": "m", "messages": 0, "max_tokens": 7}
    assert "2 changes:" in done.err
    lines = "".join(json.dumps(message) + "\n" for message in BROKEN)
    piped = program("validate", "-", "--repair", stdin=lines.encode())
    assert [json.loads(line) for line in piped.out.splitlines()] == json.loads(done.out)["messages"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_rules_of_another_provider_can_be_asked_for(command, broken, provider):
    done = command("validate", str(broken), "--provider", provider, "--json")
    assert done.json["provider"] == provider
    assert (done.code, done.json["status"]) == (2, "refused")
    assert all(found["rule"].startswith(f"{provider}/") for found in done.json["findings"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"title": "nothing"}', "This holds no list of messages."),
        ("[1, 2", "JSON"),
        ("plain words", "The file does not hold JSON."),
        ('{"role": "user", "content": "a"}\n{"role": ', "Line 2 is no JSON."),
        ('{"request": {"messages": []}, "response": {}}', "This is a log of requests."),
        ('{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"a"}}', "looks like the format claude-code"),
    ],
)  # fmt: skip
def test_what_is_no_list_of_messages_is_refused_with_what_to_do(command, tmp_path, content, told):
    path = tmp_path / "file.json"
    path.write_text(content)
    done = command("validate", str(path))
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert len(done.err.splitlines()) == 2


def test_out_needs_a_repair(command, broken, tmp_path):
    done = command("validate", str(broken), "-o", str(tmp_path / "out.json"))
    assert done.code == 2
    assert "--repair" in done.err


@pytest.mark.parametrize(("provider", "content"), [("anthropic", []), ("gemini", []), ("openai-responses", [])])
def test_where_no_repair_can_help_none_is_advised_and_nothing_is_written(command, tmp_path, provider, content):
    path, out = tmp_path / "list.json", tmp_path / "out.json"
    path.write_text(json.dumps(content))
    done = command("validate", str(path), "--provider", provider)
    assert done.code == 2
    assert "--repair" not in done.out
    assert "No repair makes a list of it that is accepted." in done.out
    repaired = command("validate", str(path), "--provider", provider, "--repair", "-o", str(out))
    assert (repaired.code, out.exists()) == (2, False)
    assert "Nothing was written" in repaired.out
    on_stdout = command("validate", str(path), "--provider", provider, "--repair")
    assert (on_stdout.code, on_stdout.out) == (2, "")
    assert (
        command("validate", str(path), "--provider", provider, "--repair", "-o", str(out), "--json").json["output"]
        == ""
    )
