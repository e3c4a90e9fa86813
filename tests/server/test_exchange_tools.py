"""Messages that are handed on: validated by a provider's rules, exported in its form; in both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server, local_place
from mcp_compact.service.paging import joined
from mcp_compact.service.service import Service
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.validity.providers import PROVIDERS, findings
from mcp_compact.transcripts.validity.rules import refused
from mcp_compact.wiring import open_service
from tests.server.talk import call, conversation
from tests.server.talk import refused as refusal

SECRET = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
async def client(settings: Settings, project: Path, era: str) -> AsyncIterator[Client]:
    """A client of a server that offers everything."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with open_service(settings) as service:
            yield service

    server = build_server(settings, profile="full", place=local_place(settings, project), factory=opened)
    async with Client(server, mode=era) as client:
        yield client


BROKEN: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]},
    {"role": "user", "content": "what?"},
]


async def test_what_would_be_refused_is_told_with_its_place_and_rule(client: Client):
    answer = await call(client, "validate_messages", messages=BROKEN)
    assert (answer["status"], answer["provider"], answer["refused"]) == ("refused", "anthropic", 1)
    (found,) = answer["findings"]
    assert (found["rule"], found["path"], found["index"]) == ("anthropic/unanswered", "messages[1].content[0]", 1)
    assert "t1, it has none" in found["text"]
    assert answer["messages"] == []


async def test_a_repair_answers_a_list_that_is_accepted_and_each_change(client: Client):
    answer = await call(client, "validate_messages", messages=json.dumps(BROKEN), repair=True)
    assert (answer["status"], len(answer["changes"])) == ("repaired", 1)
    assert refused(findings("anthropic", answer["messages"])) == []
    assert [answer["messages"][at] for at in (0, 1, 3)] == BROKEN
    again = await call(client, "validate_messages", messages=answer["messages"], repair=True)
    assert (again["status"], again["messages"]) == ("valid", answer["messages"])
    assert "changes" not in again


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_context_of_a_session_is_checked_where_no_list_is_given(client: Client, provider: str):
    await call(client, "append_messages", session_id="s", messages=conversation(3))
    answer = await call(client, "validate_messages", session_id="s", provider=provider)
    assert (answer["status"], answer["provider"], answer["refused"]) == ("valid", provider, 0)


async def test_what_is_no_list_of_messages_is_refused_with_what_to_do(client: Client):
    assert "bad_messages" in await refusal(client, "validate_messages", messages="{nothing")
    assert "unknown_provider" in await refusal(client, "validate_messages", messages=BROKEN, provider="mistral")
    assert "bad_cursor" in await refusal(client, "validate_messages", messages=BROKEN, repair=True, cursor="x")


@pytest.mark.parametrize("name", OUTS)
async def test_pages_of_an_export_join_to_a_list_that_is_accepted(client: Client, name: str):
    said = [*conversation(30), {"role": "user", "content": f"Use the key {SECRET} now."}]
    said += [{"role": "assistant", "content": [{"type": "tool_use", "id": "open", "name": "Bash", "input": {}}]}]
    await call(client, "append_messages", session_id="s", messages=said)
    items: list[Any] = []
    cursor = ""
    while True:
        page = await call(client, "export_session", session_id="s", format=name, cursor=cursor)
        items += page["messages"]
        cursor = page["next_cursor"]
        if not cursor:
            break
    whole = joined(items)
    assert len(whole) == page["total"]
    assert SECRET not in json.dumps(whole)
    assert "[masked]" in json.dumps(whole)
    assert page["masked"] == 1
    if OUTS[name].provider:
        assert findings_of(OUTS[name].provider, whole) == []


def findings_of(provider: str, messages: list[Any]) -> list[str]:
    """What is wrong with a list, open calls too: an export has none."""
    return [found.rule for found in findings(provider, messages) if found.severity != "depends"]


async def test_an_export_of_everything_holds_what_left_the_context(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(40), context_window=30_000)
    await call(client, "compact_session", session_id="s", force=True, target_tokens=3_000)
    live = await call(client, "export_session", session_id="s")
    whole = await call(client, "export_session", session_id="s", whole=True)
    assert live["total"] < whole["total"]
    assert "This session" not in json.dumps(whole["messages"][0])
    assert await refusal(client, "export_session", session_id="s", format="yaml")
    assert "nothing_to_export" in await refusal_of_an_empty_session(client)


async def refusal_of_an_empty_session(client: Client) -> str:
    await call(client, "create_session", session_id="empty")
    return await refusal(client, "export_session", session_id="empty")
