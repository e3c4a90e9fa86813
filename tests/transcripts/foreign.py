"""One conversation written in each foreign format, and short ways to read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from mcp_compact.messages.message import Message, Record
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.parsed import Parsed, Reader
from mcp_compact.transcripts.registry import reader_for

AT = "2026-01-01T10:00:00.000Z"


class Call(NamedTuple):
    name: str
    given: dict[str, Any]
    output: str
    failed: bool = False


class Turn(NamedTuple):
    """A user's words, and what the agent did about them: each answer has text and calls."""

    asked: str
    answers: tuple[tuple[str, tuple[Call, ...]], ...] = ()


def read(format: str, data: bytes) -> tuple[Reader, list[Parsed]]:
    reader = reader_for(format, "source")
    return reader, list(reader.read(read_lines([data])))


def records(format: str, data: bytes) -> list[Record]:
    return [item.record for item in read(format, data)[1]]


def document(value: object) -> bytes:
    return json.dumps(value).encode()


def jsonl(lines: Iterable[object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def spoken(found: Iterable[Record]) -> list[tuple[str, str]]:
    """The texts of the dialogue in order."""
    return [(record.type, record.text) for record in found if record.is_message and record.text]


def pairs(found: Sequence[Record]) -> list[tuple[str, Any, str, bool]]:
    """Each call with what came of it."""
    results = {result.tool_use_id: result for record in found for result in record.results}
    return [
        (call.name, call.input, results[call.id].text, results[call.id].is_error)
        for record in found
        for call in record.calls
        if call.id in results
    ]


def message_of(record: Record) -> Message:
    assert record.message is not None
    return record.message


def sent(record: Record) -> int:
    """The tokens of the request that a record answers; 0 where nothing was counted."""
    usage = message_of(record).usage
    return usage.context_tokens if usage else 0


# ------------------------------------------------------------------ writers


def ids() -> Callable[[str], str]:
    number = 0

    def make(kind: str) -> str:
        nonlocal number
        number += 1
        return f"{kind}-{number}"

    return make


def gemini_cli(turns: Sequence[Turn]) -> bytes:
    new = ids()
    messages: list[Any] = []
    for turn in turns:
        messages.append({"id": new("m"), "timestamp": AT, "type": "user", "content": turn.asked})
        for text, calls in turn.answers:
            told = [
                {
                    "id": (call_id := new("c")),
                    "name": call.name,
                    "args": call.given,
                    "status": "error" if call.failed else "success",
                    "result": [
                        {"functionResponse": {"id": call_id, "name": call.name, "response": {"output": call.output}}}
                    ],
                }
                for call in calls
            ]
            messages.append({"id": new("m"), "timestamp": AT, "type": "gemini", "content": text, "toolCalls": told})
    return document({"sessionId": "s", "projectHash": "p", "startTime": AT, "lastUpdated": AT, "messages": messages})


def copilot_cli(turns: Sequence[Turn]) -> bytes:
    new = ids()
    lines = [_event(new, "session.start", sessionId="s", selectedModel="gpt-5", context={"cwd": "/app"})]
    for turn in turns:
        lines.append(_event(new, "user.message", content=turn.asked))
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            asked = [{"toolCallId": call_id, "name": call.name, "arguments": call.given} for call_id, call in made]
            lines.append(_event(new, "assistant.message", messageId=new("a"), content=text, toolRequests=asked))
            for call_id, call in made:
                lines.append(
                    _event(new, "tool.execution_start", toolCallId=call_id, toolName=call.name, arguments=call.given)
                )
            for call_id, call in reversed(made):
                outcome = {"error": {"message": call.output}} if call.failed else {"result": {"content": call.output}}
                lines.append(
                    _event(new, "tool.execution_complete", toolCallId=call_id, success=not call.failed, **outcome)
                )
    return jsonl(lines)


def _event(new: Callable[[str], str], kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": new("e"), "timestamp": AT, "parentId": None}


def cline(turns: Sequence[Turn]) -> bytes:
    messages = [{"id": f"m-{at}", "ts": 1_767_261_600_000, **message} for at, message in enumerate(_anthropic(turns))]
    return document({"version": "1", "sessionId": "s", "messages": messages, "system_prompt": "You are an agent."})


def _anthropic(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    new = ids()
    messages: list[dict[str, Any]] = []
    for turn in turns:
        messages.append({"role": "user", "content": [{"type": "text", "text": turn.asked}]})
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            blocks: list[Any] = [{"type": "text", "text": text}]
            blocks += [
                {"type": "tool_use", "id": call_id, "name": call.name, "input": call.given} for call_id, call in made
            ]
            messages.append({"role": "assistant", "content": blocks})
            if made:
                given = [
                    {"type": "tool_result", "tool_use_id": call_id, "content": call.output, "is_error": call.failed}
                    for call_id, call in made
                ]
                messages.append({"role": "user", "content": given})
    return messages


def api_log(turns: Sequence[Turn]) -> bytes:
    messages = _anthropic(turns)
    lines = [
        {
            "request": {"model": "claude-x", "messages": messages[:at]},
            "response": {"type": "message", "id": f"msg-{at}", "model": "claude-x", **message},
        }
        for at, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    if messages and messages[-1]["role"] == "user":
        lines.append({"request": {"model": "claude-x", "messages": messages}, "response": {"n": len(messages)}})
    return jsonl(lines)


def openhands(turns: Sequence[Turn]) -> bytes:
    events: list[dict[str, Any]] = []

    def add(**event: Any) -> int:
        events.append({"id": len(events), "timestamp": "2026-01-01T10:00:00", **event})
        return len(events) - 1

    for turn in turns:
        add(source="user", action="message", args={"content": turn.asked})
        for text, calls in turn.answers:
            add(source="agent", action="message", args={"content": text})
            made = [(add(source="agent", action=call.name, args=call.given), call) for call in calls]
            for cause, call in made:
                kind = "error" if call.failed else call.name
                add(source="agent", observation=kind, cause=cause, content=call.output, extras={})
    return document(events)


def responses(turns: Sequence[Turn]) -> bytes:
    new = ids()
    items: list[Any] = []
    for turn in turns:
        items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": turn.asked}]})
        for text, calls in turn.answers:
            parts = [{"type": "output_text", "text": text, "annotations": []}]
            items.append({"type": "reasoning", "id": new("r"), "summary": [], "encrypted_content": "x"})
            items.append({"type": "message", "id": new("m"), "role": "assistant", "content": parts})
            made = [(new("c"), call) for call in calls]
            for call_id, call in made:
                given = json.dumps(call.given)
                items.append({"type": "function_call", "call_id": call_id, "name": call.name, "arguments": given})
            for call_id, call in reversed(made):
                output: object = {"content": call.output, "success": False} if call.failed else call.output
                items.append({"type": "function_call_output", "call_id": call_id, "output": output})
    return document({"model": "gpt-5", "instructions": "Be brief.", "input": items})


def opencode(turns: Sequence[Turn]) -> bytes:
    new = ids()
    messages: list[Any] = []
    for turn in turns:
        messages.append({"info": {"id": new("msg"), "role": "user"}, "parts": [{"type": "text", "text": turn.asked}]})
        for text, calls in turn.answers:
            parts: list[Any] = [{"type": "step-start"}, {"type": "text", "text": text}]
            for call in calls:
                said = {"error": call.output} if call.failed else {"output": call.output}
                status = "error" if call.failed else "completed"
                state = {"status": status, "input": call.given, "time": {"start": 1, "end": 2}, **said}
                parts.append({"id": new("prt"), "type": "tool", "callID": new("c"), "tool": call.name, "state": state})
            messages.append({"info": {"id": new("msg"), "role": "assistant", "modelID": "m"}, "parts": parts})
    return document({"info": {"id": "ses_1", "title": "A title", "directory": "/app"}, "messages": messages})


def pi(turns: Sequence[Turn]) -> bytes:
    new = ids()
    lines: list[Any] = [{"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/app"}]

    def add(**message: Any) -> None:
        parent = lines[-1]["id"] if len(lines) > 1 else None
        lines.append({"type": "message", "id": new("e"), "parentId": parent, "timestamp": AT, "message": message})

    for turn in turns:
        add(role="user", content=turn.asked)
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            parts: list[Any] = [{"type": "text", "text": text}]
            parts += [
                {"type": "toolCall", "id": call_id, "name": call.name, "arguments": call.given}
                for call_id, call in made
            ]
            add(role="assistant", content=parts, model="m", usage={"input": 5, "output": 1, "cacheRead": 2})
            for call_id, call in made:
                told = [{"type": "text", "text": call.output}]
                add(role="toolResult", toolCallId=call_id, toolName=call.name, content=told, isError=call.failed)
    return jsonl(lines)


def gemini(turns: Sequence[Turn]) -> bytes:
    contents: list[Any] = []
    for turn in turns:
        contents.append({"role": "user", "parts": [{"text": turn.asked}]})
        for text, calls in turn.answers:
            asked = [{"functionCall": {"name": call.name, "args": call.given}} for call in calls]
            contents.append({"role": "model", "parts": [{"text": text}, *asked]})
            if calls:
                given = [
                    {"functionResponse": {"name": c.name, "response": {"error" if c.failed else "output": c.output}}}
                    for c in calls
                ]
                contents.append({"role": "user", "parts": given})
    return document({"contents": contents, "systemInstruction": {"parts": [{"text": "Be brief."}]}})


def langchain(turns: Sequence[Turn]) -> bytes:
    new = ids()
    messages: list[Any] = [{"type": "system", "data": {"content": "Be brief."}}]
    for turn in turns:
        messages.append({"type": "human", "data": {"content": turn.asked, "id": new("h")}})
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            asked = [
                {"name": call.name, "args": call.given, "id": call_id, "type": "tool_call"} for call_id, call in made
            ]
            messages.append({"type": "ai", "data": {"content": text, "id": new("run"), "tool_calls": asked}})
            for call_id, call in reversed(made):
                status = "error" if call.failed else "success"
                data = {"content": call.output, "tool_call_id": call_id, "status": status}
                messages.append({"type": "tool", "data": data})
    return document(messages)


def atif(turns: Sequence[Turn]) -> bytes:
    new = ids()
    steps: list[Any] = []

    def add(**step: Any) -> None:
        steps.append({"step_id": len(steps) + 1, **step})

    for turn in turns:
        add(source="user", message=turn.asked)
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            asked = [
                {"tool_call_id": call_id, "function_name": call.name, "arguments": call.given} for call_id, call in made
            ]
            given = [{"source_call_id": call_id, "content": call.output} for call_id, call in made]
            add(source="agent", message=text, tool_calls=asked, observation={"results": given})
    return document({"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {"name": "a"}, "steps": steps})


def function_call(call_id: str, call: Call) -> dict[str, Any]:
    """A call as OpenAI's chat has it."""
    function = {"name": call.name, "arguments": json.dumps(call.given)}
    return {"id": call_id, "type": "function", "function": function}


def swe_agent(turns: Sequence[Turn]) -> bytes:
    new = ids()
    history: list[Any] = [{"role": "system", "content": "You are an agent."}]
    for turn in turns:
        history.append({"role": "user", "content": turn.asked})
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            asked = [function_call(call_id, call) for call_id, call in made]
            history.append({"role": "assistant", "content": text, "tool_calls": asked or None})
            history += [{"role": "tool", "content": call.output, "tool_call_ids": [call_id]} for call_id, call in made]
    return document({"environment": "main", "trajectory": [], "history": history, "info": {}})


def codex(turns: Sequence[Turn]) -> bytes:
    new = ids()
    lines: list[Any] = []

    def add(kind: str, **payload: Any) -> None:
        lines.append({"timestamp": AT, "type": kind, "payload": payload})

    def message(role: str, part: str, text: str) -> None:
        add("response_item", type="message", role=role, content=[{"type": part, "text": text}])

    add("session_meta", id="s", timestamp=AT, cwd="/app", originator="codex_cli", cli_version="0.1.0")
    for turn in turns:
        add("turn_context", cwd="/app", approval_policy="never", model="gpt-5")
        message("user", "input_text", turn.asked)
        add("event_msg", type="user_message", message=turn.asked)
        for text, calls in turn.answers:
            add("response_item", type="reasoning", id=new("r"), summary=[], encrypted_content="x")
            message("assistant", "output_text", text)
            add("event_msg", type="agent_message", message=text)
            made = [(new("c"), call) for call in calls]
            for call_id, call in made:
                given = json.dumps(call.given)
                add("response_item", type="function_call", call_id=call_id, name=call.name, arguments=given)
            for call_id, call in made:
                output: object = {"content": call.output, "success": False} if call.failed else call.output
                add("response_item", type="function_call_output", call_id=call_id, output=output)
            used = {"input_tokens": 5, "output_tokens": 1}
            add("event_msg", type="token_count", info={"last_token_usage": used})
    return jsonl(lines)


def anthropic(turns: Sequence[Turn]) -> bytes:
    return document(_anthropic(turns))


def openai(turns: Sequence[Turn]) -> bytes:
    new = ids()
    messages: list[Any] = [{"role": "developer", "content": "Be brief."}]
    for turn in turns:
        messages.append({"role": "user", "content": turn.asked})
        for text, calls in turn.answers:
            made = [(new("c"), call) for call in calls]
            asked = [function_call(call_id, call) for call_id, call in made]
            messages.append({"role": "assistant", "content": text, **({"tool_calls": asked} if asked else {})})
            messages += [{"role": "tool", "tool_call_id": call_id, "content": call.output} for call_id, call in made]
    return document(messages)


def mini_swe(turns: Sequence[Turn]) -> bytes:
    """A list of messages whose commands are told as text: one a message, without ids or outcome."""
    messages: list[Any] = [{"role": "system", "content": "You are an agent."}]
    for turn in turns:
        messages.append({"role": "user", "content": turn.asked})
        for text, calls in turn.answers:
            for call in calls:
                told = f"{text}\n\n```mswea_bash_command\n{call.name} {json.dumps(call.given)}\n```"
                messages += [{"role": "assistant", "content": told}, {"role": "user", "content": call.output}]
    return document(messages)


WRITERS: Mapping[str, Callable[[Sequence[Turn]], bytes]] = {
    "gemini-cli": gemini_cli,
    "copilot-cli": copilot_cli,
    "cline": cline,
    "openhands": openhands,
    "responses": responses,
    "opencode": opencode,
    "pi": pi,
    "gemini": gemini,
    "langchain": langchain,
    "api-log": api_log,
    "swe-agent": swe_agent,
    "atif": atif,
    "codex": codex,
    "anthropic": anthropic,
    "openai": openai,
}
TELL_FAILURES = frozenset(WRITERS) - {"atif", "swe-agent", "openai"}
"""Formats that say whether a call failed."""
LINES = ("copilot-cli", "pi", "api-log", "codex")

# ------------------------------------------------------------------ conversations

_words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).map("w{}".format)
_values = st.one_of(st.integers(-9, 9), st.booleans(), st.text(max_size=6), st.lists(st.integers(0, 9), max_size=2))
calls = st.builds(
    Call,
    st.sampled_from(("read", "run", "edit", "grep")),
    st.dictionaries(st.sampled_from(("path", "command", "n")), _values, min_size=1, max_size=3),
    _words,
    st.booleans(),
)
turns = st.lists(
    st.builds(
        Turn,
        _words,
        st.lists(st.tuples(_words, st.lists(calls, max_size=3).map(tuple)), min_size=1, max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=4,
)
