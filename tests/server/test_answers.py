"""The text beside the data: a line for those who read the data, the data for those who read nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp import Client
from mcp.types import Implementation

from mcp_compact.config import Settings
from mcp_compact.errors import ServerError
from mcp_compact.server.answers import _writable
from mcp_compact.server.app import build_server
from mcp_compact.server.schemas import answer_model, as_json, lean
from tests.server.talk import assistant, call, text_of, user

LONG = [user("go"), assistant("a long answer. " * 800)]


async def answers_to(settings: Settings, era: str, name: str) -> tuple[dict[str, Any], str, str]:
    info = Implementation(name=name, version="1")
    async with Client(build_server(settings), mode=era, client_info=info) as client:
        await call(client, "append_messages", session_id="s", messages=LONG)
        page = await client.call_tool("get_messages_after_boundary", {"session_id": "s"})
        status = await client.call_tool("get_context_status", {"session_id": "s"})
    assert isinstance(page.structured_content, dict)
    return page.structured_content, text_of(page), text_of(status)


async def test_a_long_answer_is_sent_once_to_a_client_that_reads_structured_content(settings: Settings, era: str):
    data, text, status = await answers_to(settings, era, "claude-code")
    assert "a long answer. " in json.dumps(data)
    assert text.startswith("2 messages of a context of ")
    assert len(text) < 200
    assert "of 200000 tokens" in status


async def test_a_client_that_reads_text_only_gets_the_data_as_text(settings: Settings, era: str):
    data, text, status = await answers_to(settings, era, "gemini-cli-mcp-client")
    assert json.loads(text) == data
    assert json.loads(status)["level"] == "ok"


async def test_short_data_is_text_for_everybody(settings: Settings, era: str):
    async with Client(build_server(settings), mode=era) as client:
        await call(client, "append_messages", session_id="s", messages=[user("hi")])
        page = await client.call_tool("get_messages_after_boundary", {"session_id": "s"})
    assert json.loads(text_of(page)) == page.structured_content


def test_an_answer_that_json_cannot_carry_is_an_error_of_ours():
    with pytest.raises(ServerError, match="not finite"):
        _writable({"a": [float("nan")]})
    assert _writable({"a": "\ud83d"}) == {"a": "\ufffd"}


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Outer:
    session_id: str
    note: str
    items: tuple[Inner, ...]
    raw: dict[str, Any] = field(default_factory=dict)
    one: Inner | None = None
    is_done: bool = False
    next_cursor: str = ""


def test_what_is_empty_is_left_out_but_for_what_programs_rely_on():
    assert as_json(Outer("", "", ())) == {"session_id": "", "is_done": False, "next_cursor": ""}
    full = as_json(Outer("s", "n", (Inner("", 0),), {"kept": "", "empty": []}))
    assert full["items"] == [{"count": 0}]
    assert full["raw"] == {"kept": "", "empty": []}, "data is not ours to shorten"


def test_the_schema_allows_exactly_what_is_left_out():
    model = answer_model(Outer)
    for value in (Outer("", "", ()), Outer("s", "n", (Inner("x", 1),), {"a": 1}, Inner("y", 2), is_done=True)):
        model.model_validate(as_json(value))
    schema = lean(model.model_json_schema())
    assert schema["required"] == ["session_id", "is_done", "next_cursor"]
    assert "title" not in json.dumps(schema)
    assert answer_model(Outer, without=("raw",)).model_json_schema()["properties"].keys() == schema[
        "properties"
    ].keys() - {"raw"}
