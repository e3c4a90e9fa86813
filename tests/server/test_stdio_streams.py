"""What stands around the SDK's streams, piece by piece."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server
from mcp_compact.server.stdio import NEVER_ENDS, Answers, Requests, Unanswered, mended, writable
from mcp_compact.server.transports import run_streams
from tests.server.talk import user
from tests.server.test_listing import CORE


def refusal(line: str) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    return caught.value


def test_a_line_with_a_lone_surrogate_is_mended():
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a\ud83d": ["\udc00", "\U0001f600"]}})
    message = mended(refusal(line)).message
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {"a\ufffd": ["\ufffd", "\U0001f600"]}


@pytest.mark.parametrize(
    ("line", "name", "code"),
    [
        ("", None, -32700),
        ("{", None, -32700),
        ("[" * 100_000, None, -32700),
        ('{"jsonrpc":"2.0","id":5}', 5, -32600),
        ('{"id":"a","method":"m"}', "a", -32600),
        ('{"jsonrpc":"2.0","id":6,"method":"m","params":{"a":%s}}' % ("[" * 400 + "]" * 400), 6, -32600),
        ('{"id":true,"method":"m"}', None, -32600),
        ("[1]", None, -32600),
        ("3", None, -32600),
        ('"\\ud83d"', None, -32600),
    ],
)
def test_a_line_that_means_no_message_gets_the_error_that_json_rpc_has_for_it(line: str, name: object, code: int):
    message = mended(refusal(line)).message
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.code) == (name, code)


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["half \ud83d", deep(400), float("nan")])
def test_an_answer_that_cannot_be_written_becomes_an_error_with_its_id(value: Any):
    item = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=9, result={"value": value}))
    sent = writable(item).message
    json.loads(sent.model_dump_json(by_alias=True, exclude_unset=True))
    if isinstance(value, float):
        return  # pydantic writes it as null, which every reader takes
    assert isinstance(sent, JSONRPCError)
    assert (sent.id, sent.error.code) == (9, -32603)


def request(name: int, method: str = "tools/call") -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=name, method=method)


async def test_requests_are_open_until_answered_or_cancelled():
    open_ = Unanswered()
    for name in (1, 2, 3):
        open_.read(request(name))
    open_.read(request(4, NEVER_ENDS))
    open_.written(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
    open_.read(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 2}))
    assert open_.ids == {3}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_.none_left)
        await anyio.lowlevel.checkpoint()
        open_.written(JSONRPCResponse(jsonrpc="2.0", id=3, result={}))


async def test_the_end_of_input_waits_for_answers_and_is_told_at_once():
    to_server, incoming = anyio.create_memory_object_stream[Any](9)
    from_server, outgoing = anyio.create_memory_object_stream[Any](9)
    told: list[str] = []
    answers = Answers(from_server, lambda: told.append("first answer"))
    requests = Requests(incoming, answers, lambda: told.append("end"))
    await to_server.send(SessionMessage(request(1)))
    await to_server.send(refusal("{"))
    to_server.close()
    seen: list[str] = []

    async def read() -> None:
        async for item in requests:
            assert isinstance(item, SessionMessage)
            seen.append(item.message.method if isinstance(item.message, JSONRPCRequest) else "?")
        seen.append("end")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert seen == ["tools/call"]
        assert told == ["first answer", "end"]
        await answers.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
    assert seen == ["tools/call", "end"]
    assert [type(item.message) for item in (outgoing.receive_nowait(), outgoing.receive_nowait())] == [
        JSONRPCError,
        JSONRPCResponse,
    ]
    for stream in (incoming, from_server, outgoing):
        stream.close()


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ],
)
async def test_every_handshake_version_is_served_and_an_unknown_one_gets_the_latest(
    settings: Settings, asked: str, given: str
):
    to_server, incoming = anyio.create_memory_object_stream[Any](9)
    from_server, outgoing = anyio.create_memory_object_stream[Any](9)
    answered = anyio.Event()
    answers = Answers(from_server, answered.set)
    requests = Requests(incoming, answers, lambda: None)
    hello = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_streams, build_server(settings), requests, answers)
        await to_server.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=hello)))
        result = (await outgoing.receive()).message.result
        assert (result["protocolVersion"], answered.is_set()) == (given, True)
        await to_server.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")))
        await to_server.send(SessionMessage(request(2, "tools/list")))
        assert [tool["name"] for tool in (await outgoing.receive()).message.result["tools"]] == CORE
        store = {"name": "append_messages", "arguments": {"session_id": "s", "messages": [user("hi")]}}
        await to_server.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=3, method="tools/call", params=store)))
        result = (await outgoing.receive()).message.result
        if given < "2025-06-18":
            assert json.loads(result["content"][0]["text"])["session_id"] == "s", "it knows no structured content"
        else:
            assert result["structuredContent"]["session_id"] == "s"
        to_server.close()
    outgoing.close()
