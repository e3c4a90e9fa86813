"""The real process over standard input and output: what it survives, what it writes, how it ends."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.server.stdio import LAST_ANSWERS_S, NEVER_ENDS
from mcp_compact.server.transports import ENDED_HARD, GRACE_S
from tests.server.talk import assistant, user
from tests.server.test_listing import CORE
from tests.server.wire import REPO, SERVE, Wire, data_of, serving

pytestmark = pytest.mark.process

HALF = "\ud83d"


def surrogate_messages() -> list[dict[str, Any]]:
    return [
        user(f"half {HALF} emoji"),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "echo \udc00"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": f"tail {HALF}"}]},
    ]


def test_lone_surrogates_and_broken_lines_are_answered_and_the_server_lives_on(tmp_path: Path):
    with Wire(tmp_path) as wire:
        wire.raw(b"this is no JSON\n")
        assert wire.answer(None)["error"]["code"] == -32700
        wire.handshake()
        stored = wire.call("append_messages", session_id=f"s{HALF}", messages=surrogate_messages())
        assert stored["session_id"] == "s\ufffd"
        page = wire.call("get_messages_after_boundary", session_id="s\ufffd")
        assert "half \ufffd emoji" in json.dumps(page, ensure_ascii=False)
        wire.call("compact_session", session_id=f"s{HALF}", force=True, custom_instructions=f"keep {HALF}")
        wire.call("search_messages", session_id="s\ufffd", query=f"tail {HALF}")
        wire.call("update_session_memory", session_id="s\ufffd", content=f"memory {HALF}")
        assert "unknown_session" in wire.refused("get_context_status", session_id="\udc00")
        assert "error" in wire.ask(f"no/{HALF}/method")

        for line in (
            b"{",
            b"[]",
            b"12",
            b'"text"',
            b"null",
            b"{}",
            b'{"jsonrpc":"2.0"}',
            b"\xff\xfe\x00",
            b"[" * 100_000,
            b"\xc3",
        ):
            wire.raw(line + b"\n")
            assert wire.answer(None)["error"]["code"] in (-32700, -32600)
        wire.raw(b'{"id": 77, "method": 5}\n')
        assert wire.answer(77)["error"]["code"] == -32600
        wire.raw(
            b'{"jsonrpc":"2.0","id":78,"method":"tools/call","params":{"name":"\\ud83d","arguments":{"\\udc00":1}}}\n'
        )
        assert wire.answer(78)["result"]["isError"] is True
        deep = '{"jsonrpc":"2.0","id":79,"method":"tools/call","params":{"name":"append_messages","arguments":{"messages":%s}}}\n'
        wire.raw((deep % ("[" * 150 + "]" * 150)).encode())
        assert "nested deeper" in wire.answer(79)["result"]["content"][0]["text"]
        wire.raw((deep % ("[" * 500 + "]" * 500)).encode())
        assert "nested deeper" in wire.answer(79)["error"]["message"]

        assert wire.call("get_context_status", session_id="s\ufffd")["live_messages"] == 3
        assert wire.leave() == 0
        wire.check_protocol()
        assert "Traceback" not in wire.stderr


def test_a_client_that_opens_with_discover_is_served_without_a_handshake(tmp_path: Path):
    with Wire(tmp_path) as wire:
        wire.modern = True
        assert wire.ask("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
        wire.send(NEVER_ENDS, {"filter": {}})
        assert [tool["name"] for tool in wire.ask("tools/list")["result"]["tools"]] == CORE
        assert wire.call("append_messages", session_id=f"s{HALF}", messages=surrogate_messages())["stored"] == 3
        assert "unknown_session" in wire.refused("get_context_status", session_id="nobody")
        assert wire.leave() == 0
        wire.check_protocol()
        assert "Traceback" not in wire.stderr


def test_text_is_utf8_whatever_the_locale_and_logs_stay_off_the_wire(tmp_path: Path):
    env = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C", "MCP_COMPACT_LOG_LEVEL": "DEBUG"}
    text = "\u0110\u01b0\u1eddng \u2192 \u91cd\u8981 \u2605 \U0001f389 \u00f1 \u2028 \x85"
    (tmp_path / "run.json").write_text(json.dumps([user(text), assistant(text)], ensure_ascii=False), encoding="utf-8")
    with Wire(tmp_path, env) as wire:
        wire.handshake()
        wire.call("append_messages", session_id="s", messages=[user(text)])
        wire.raw(
            (
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": "utf8",
                        "method": "tools/call",
                        "params": {
                            "name": "append_messages",
                            "arguments": {"session_id": "s", "messages": [assistant(text)]},
                        },
                    },
                    ensure_ascii=False,
                )
                + "\n"
            ).encode()
        )
        data_of(wire.answer("utf8"))
        for page in (
            wire.call("get_messages_after_boundary", session_id="s"),
            wire.call(
                "get_messages_after_boundary", session_id=wire.call("import_transcript", path="run.json")["session_id"]
            ),
        ):
            assert [
                text in json.dumps(message, ensure_ascii=False).replace("\\u2028", "\u2028")
                for message in page["messages"]
            ] == [True, True]
        assert "unknown_session" in wire.refused(
            "get_context_status", session_id=text.replace("\u2028", "").replace("\x85", "")
        )
        assert wire.leave() == 0
        wire.check_protocol()
        assert "Traceback" not in wire.stderr


def huge_text(megabytes: int) -> str:
    words = "".join(f"word{number} = compute_{number * 7919}(alpha, beta);\n" for number in range(20_000))
    return (words * (megabytes * 1_000_000 // len(words) + 1))[: megabytes * 1_000_000]


def test_a_huge_text_holds_up_neither_small_calls_nor_the_end_of_the_process(tmp_path: Path):
    with Wire(tmp_path, program=serving(answers_s=0.2, grace_s=0.5)) as wire:
        wire.handshake()
        wire.call("append_messages", session_id="small", messages=[user("hi")])
        order: list[str] = []
        huge = wire.start_call("append_messages", session_id="huge", messages=[user(huge_text(5))])
        small = [wire.start_call("get_context_status", session_id="small") for _ in range(10)]
        for name in small:
            assert data_of(wire.answer(name))["session_id"] == "small"
            order.append("huge" if huge in wire._held else "small")
        assert order == ["small"] * 10, "a small call waited for the huge one"
        assert data_of(wire.answer(huge))["status"]["tokens"] > 1_000_000
        wire.start_call("append_messages", session_id="huge", messages=[user(huge_text(10))])
        assert wire.leave() == 0
        wire.check_protocol()
        assert "Traceback" not in wire.stderr
        assert "Event loop is closed" not in wire.stderr


def test_a_call_that_cannot_be_stopped_does_not_keep_the_process(tmp_path: Path):
    with Wire(tmp_path, program=serving(answers_s=0.2, grace_s=0.5)) as wire:
        wire.handshake()
        wire.call("append_messages", session_id="s", messages=[user("acknowledged")])
        other = sqlite3.connect(tmp_path / "archive.db", isolation_level=None)
        try:
            # While another process writes, the append waits in a thread, far longer than the server is given.
            other.execute("BEGIN IMMEDIATE")
            wire.start_call("append_messages", session_id="s", messages=[user("never acknowledged")])
            assert wire.leave() == 0
        finally:
            other.close()
        assert ENDED_HARD in wire.stderr
        assert "Traceback" not in wire.stderr
        wire.check_protocol()
    with Wire(tmp_path) as wire:
        wire.handshake()
        assert wire.call("get_context_status", session_id="s")["live_messages"] == 1
        assert wire.leave() == 0
        assert ENDED_HARD not in wire.stderr


def test_the_process_has_less_than_five_seconds_to_end_and_first_to_answer():
    assert 0 < LAST_ANSWERS_S < GRACE_S < 5


def piped(tmp_path: Path, lines: list[dict[str, Any]], tail: str = "") -> subprocess.CompletedProcess[str]:
    command = f'{sys.executable} -c "{SERVE}"{tail}'
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        input="".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHONPATH": str(REPO),
            "MCP_COMPACT_DB": str(tmp_path / "a.db"),
        },
        timeout=60,
        check=False,
    )


HELLO: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    },
    {"method": "notifications/initialized"},
]


def test_requests_from_a_pipe_are_all_answered_before_the_process_ends(tmp_path: Path):
    calls = [
        {"id": 2, "method": "tools/list"},
        {
            "id": 3,
            "method": "tools/call",
            "params": {"name": "get_context_status", "arguments": {"session_id": "s"}},
        },
    ]
    done = piped(tmp_path, HELLO + calls)
    assert done.returncode == 0, done.stderr
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert sorted(answers) == [1, 2, 3]
    assert "unknown_session" in answers[3]["result"]["content"][0]["text"]
    assert done.stderr == ""


def test_a_reader_that_goes_away_ends_the_server_without_a_traceback(tmp_path: Path):
    many = [{"id": number, "method": "tools/list"} for number in range(2, 40)]
    done = piped(tmp_path, HELLO + many, tail=" | head -n 1")
    assert json.loads(done.stdout)["id"] == 1
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path):
    with Wire(tmp_path) as wire:
        wire.handshake()
        for number in range(20):
            wire.call("append_messages", session_id="s", messages=[user(f"message {number}")])
        wire.process.kill()
        wire.process.wait()
    with Wire(tmp_path) as wire:
        wire.handshake()
        assert wire.call("get_context_status", session_id="s")["live_messages"] == 20
        page = wire.call("get_messages_after_boundary", session_id="s")
        assert "message 19" in json.dumps(page["messages"][-1])
        assert wire.leave() == 0


def test_writers_in_four_processes_lose_nothing_and_never_meet_a_lock(tmp_path: Path):
    wires = [Wire(tmp_path) for _ in range(4)]
    try:
        for wire in wires:
            wire.handshake()
        names = [
            (
                wire,
                wire.start_call(
                    "append_messages", session_id=f"p{at}-w{number % 5}", messages=[user(f"x {number:03d}")]
                ),
            )
            for number in range(50)
            for at, wire in enumerate(wires)
        ]
        assert all(data_of(wire.answer(name))["stored"] == 1 for wire, name in names)
        found = 0
        for at in range(4):
            for writer in range(5):
                page = wires[0].call("get_messages_after_boundary", session_id=f"p{at}-w{writer}")
                text = json.dumps(page["messages"])
                places = [text.index(f"x {number:03d}") for number in range(writer, 50, 5)]
                assert places == sorted(places)
                found += len(places)
        assert found == 200
        assert [wire.leave() for wire in wires] == [0, 0, 0, 0]
    finally:
        for wire in wires:
            wire.__exit__()
