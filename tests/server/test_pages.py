"""The loop that the docs show, page by page, over messages of every size: the list is the export, and is accepted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_compact import joined
from mcp_compact.config import Settings, load_settings
from mcp_compact.server.app import build_server, local_place
from mcp_compact.service.paging import size_tokens
from mcp_compact.service.service import Service
from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused
from mcp_compact.wiring import open_service
from tests.server.talk import call, text_of
from tests.service.test_own_loops import PROVIDERS

Json = dict[str, Any]
PAGE = load_settings({}).page_tokens
# About a page of words, of what is escaped, and of wide letters; from a little below to several pages.
TEXTS = [
    *("abcdefghi " * (PAGE * share // 40) for share in (7, 8, 9, 10, 11, 12, 13, 20, 60)),
    '"\\\n' * PAGE,
    "漢字" * PAGE,
]


def anthropic(text: str) -> list[Json]:
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": [
            {"type": "text", "text": text.strip()},
            {"type": "tool_use", "id": "T", "name": "Read", "input": {"said": text}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "T", "content": text}]},
    ]  # fmt: skip


def openai(text: str) -> list[Json]:
    made = {"id": "T", "type": "function", "function": {"name": "Read", "arguments": json.dumps({"said": text})}}
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "I read.", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "T", "content": text},
    ]


def responses(text: str) -> list[Json]:
    made = {"type": "function_call", "id": "fc_1", "call_id": "T", "name": "Read", "status": "completed"}
    return [
        {"role": "user", "content": [{"type": "input_text", "text": text}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" * (len(text) // 4)},
        made | {"arguments": json.dumps({"said": text})},
        {"type": "function_call_output", "call_id": "T", "output": text},
    ]


def gemini(text: str) -> list[Json]:
    return [
        {"role": "user", "parts": [{"text": text}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "Read", "args": {"said": text}}, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": {"output": text}}}]},
    ]  # fmt: skip


LISTS: dict[str, Callable[[str], list[Json]]] = {
    "anthropic": anthropic, "openai": openai, "responses": responses, "gemini": gemini,
}  # fmt: skip


@pytest.fixture
async def client(settings: Settings, project: Path, era: str) -> AsyncIterator[Client]:
    """A client of a server that has every tool."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with open_service(settings) as service:
            yield service

    server = build_server(settings, profile="full", place=local_place(settings, project), factory=opened)
    async with Client(server, mode=era) as client:
        yield client


async def pages(client: Client, tool: str, **arguments: Any) -> list[Json]:
    """Answers, one after the other, as the docs say to read them."""
    found: list[Json] = []
    while not found or found[-1]["next_cursor"]:
        cursor = found[-1]["next_cursor"] if found else ""
        found.append(await call(client, tool, cursor=cursor, **arguments))
    return found


def messages_of(found: list[Json]) -> list[Json]:
    return [message for page in found for message in page["messages"]]


@pytest.mark.parametrize("name", tuple(LISTS))
async def test_whatever_the_size_of_a_message_the_documented_loop_gets_the_list_that_an_export_gives(
    client: Client, name: str
):
    for number, text in enumerate(TEXTS):
        sent, session = LISTS[name](text), f"s{number}"
        await call(client, "append_messages", session_id=session, messages=sent)
        asked = {"session_id": session, "format": name}
        got = messages_of(await pages(client, "get_messages_after_boundary", whole_messages=True, **asked))
        assert got == sent
        assert got == joined(messages_of(await pages(client, "export_session", **asked)))
        assert not refused(findings(PROVIDERS[name], got))


@pytest.mark.parametrize("name", tuple(LISTS))
async def test_an_agent_gets_pages_that_its_client_does_not_cut_off_and_their_parts_join(client: Client, name: str):
    for number, text in enumerate(TEXTS):
        sent, session = LISTS[name](text), f"s{number}"
        await call(client, "append_messages", session_id=session, messages=sent)
        found = await pages(client, "get_messages_after_boundary", session_id=session, format=name)
        assert all(size_tokens(page) < 20_000 for page in found)
        assert joined(messages_of(found)) == sent
        for page in found:
            told = [warning for warning in page.get("warnings", ()) if "whole_messages" in warning]
            assert bool(told) is any("part" in message for message in page["messages"])


async def test_a_later_page_goes_on_as_the_first_began(client: Client):
    sent = [message for n in range(3) for message in anthropic(f"{n} " + "abcdefghi " * (PAGE // 2))[:1]]
    await call(client, "append_messages", session_id="s", messages=sent)
    page = await call(client, "get_messages_after_boundary", session_id="s", whole_messages=True)
    got = list(page["messages"])
    while page["next_cursor"]:
        page = await call(client, "get_messages_after_boundary", session_id="s", cursor=page["next_cursor"])
        got += page["messages"]
    assert got == sent


async def test_what_is_nested_too_deeply_for_an_answer_comes_in_parts_all_the_same(client: Client):
    value: Any = "x"
    for _ in range(122):
        value = [value]
    sent = anthropic("go")
    sent[1]["content"][1]["input"] = {"a": value}
    await call(client, "append_messages", session_id="s", messages=json.dumps(sent))
    found = await pages(client, "get_messages_after_boundary", session_id="s", whole_messages=True)
    assert any("part" in message for message in messages_of(found))
    assert joined(messages_of(found)) == sent


async def test_a_large_message_is_not_sent_twice(client: Client):
    await call(client, "append_messages", session_id="s", messages=anthropic("abcdefghi " * PAGE))
    asked = {"session_id": "s", "whole_messages": True}
    result = await client.call_tool("get_messages_after_boundary", asked)
    assert len(text_of(result)) < 300
