"""What is mutated: a small transcript of every format that can be read, and real ones where they are there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mcp_compact.transcripts.registry import FORMATS
from tests.transcripts.foreign import WRITERS, Call, Turn
from tests.transcripts.samples import SESSION, answer, call, jsonl, result, text, user

LARGEST = 70_000
"""Bytes of a real transcript that is taken; larger ones take too long for thousands of mutants."""
TURNS = (
    Turn("please look at src/a.py", (("reading", (Call("read", {"path": "src/a.py"}, "line 1\nline 2"),)),)),
    Turn(
        "never touch main.py; mend the rest",
        (
            ("", (Call("run", {"command": "make"}, "error: 3", failed=True), Call("grep", {"n": 3}, "a:1"))),
            ("it is mended \N{GRINNING FACE}", ()),
        ),
    ),
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def claude_code() -> bytes:
    """With thinking, parallel calls of one message id, a sub-agent, a rewind and the client's own compactions."""
    kept = {"headUuid": "u4", "tailUuid": "u4", "anchorUuid": "s1"}
    return jsonl(
        [
            {"type": "mode", "mode": "normal"},
            {"type": "summary", "summary": "An earlier talk", "leafUuid": "u0"},
            user("u1", "start, never touch main.py", timestamp="2026-01-02T03:04:05.678Z", cwd="/project"),
            answer("a1", "M1", {"type": "thinking", "thinking": "hm", "signature": "sig"}, "u1"),
            answer("a2", "M1", call("t1", "Read"), "a1", timestamp="2026-01-02T03:04:06.678Z"),
            answer("a3", "M1", call("t2"), "a2"),
            {
                "type": "progress",
                "uuid": "p1",
                "parentUuid": "a2",
                "sessionId": SESSION,
                "data": {"type": "agent_progress", "agentId": "g1", "message": user("e1", "task")},
            },
            user("u2", [result("t1", "text of a file\n" * 20), IMAGE], "p1"),
            user("u3", [result("t2", "ok")], "u2", toolUseResult={"stdout": "ok"}),
            user("u4", "no, the other way", "u1"),
            user("x1", "sub", isSidechain=True, agentId="g2"),
            {
                "type": "system",
                "subtype": "microcompact_boundary",
                "uuid": "m1",
                "parentUuid": "u4",
                "microcompactMetadata": {"trigger": "auto", "compactedToolIds": ["t1"], "tokensSaved": 10},
            },
            {
                "type": "system",
                "subtype": "compact_boundary",
                "uuid": "b1",
                "parentUuid": None,
                "logicalParentUuid": "u4",
                "compactMetadata": {"trigger": "auto", "preTokens": 1000, "preservedSegment": kept},
            },
            user("s1", "This session is being continued ...", "b1", isCompactSummary=True),
            answer("a5", "M2", text("go on"), "s1"),
        ]
    )


def anthropic() -> bytes:
    """A request as it is sent."""
    return json.dumps(
        {
            "model": "claude-x",
            "system": [{"type": "text", "text": "be short"}],
            "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "look"},
                {"role": "assistant", "content": [text("reading"), call("t1", "Read")]},
                {"role": "user", "content": [result("t1"), text("and now?")]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "server_tool_use", "id": "st1", "name": "web_search", "input": {"query": "q"}},
                        {"type": "web_search_tool_result", "tool_use_id": "st1", "content": []},
                        text("found"),
                    ],
                },
            ],
        }
    ).encode()


def openai() -> bytes:
    """A list with calls, a developer's message and parts."""
    made = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    return json.dumps(
        [
            {"role": "system", "content": "be short"},
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c1", "content": "line 1"},
            {"role": "assistant", "content": "done", "refusal": None},
        ]
    ).encode()


def codex() -> bytes:
    """A rollout with a call, its output, reasoning and a compaction of the client's own."""

    def line(kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": "2026-01-01T10:00:00.000Z", "type": kind, "payload": payload}

    said = [{"type": "input_text", "text": "look at a.py"}]
    return jsonl(
        [
            line("session_meta", id="5e551011-0000-4000-8000-00000000000c", cwd="/app", originator="codex_cli_rs"),
            line("turn_context", cwd="/app", model="gpt-5"),
            line("response_item", type="message", role="user", content=said),
            line("response_item", type="reasoning", summary=[], encrypted_content="AAAA"),
            line("response_item", type="function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
            line("response_item", type="function_call_output", call_id="c1", output="a.py"),
            line("event_msg", type="token_count", info={"total_token_usage": {"total_tokens": 100}}),
            line("compacted", message="a summary of it all"),
            line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
        ]
    )


@cache
def samples() -> Mapping[str, tuple[bytes, ...]]:
    """Of every format that the registry knows, written by the tests."""
    own = {"claude-code": claude_code(), "anthropic": anthropic(), "openai": openai(), "codex": codex()}
    own |= {name: write(TURNS) for name, write in WRITERS.items()}
    assert set(own) == set(FORMATS), "a format without a sample would not be tried"
    return {name: (data,) for name, data in own.items()}


@cache
def all_samples() -> Mapping[str, tuple[bytes, ...]]:
    """With the smaller real transcripts, from the shared folder where there is one; the folder's name is unknown."""
    named = os.environ.get("MCP_COMPACT_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    found = {name: list(data) for name, data in samples().items()}
    for path in sorted((folder / "transcripts").glob("*/*.json*")):
        if path.stat().st_size <= LARGEST:
            found.setdefault(path.parent.name, []).append(path.read_bytes())
    return {name: tuple(data) for name, data in found.items()}
