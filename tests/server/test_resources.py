"""Resources, the prompt, and completion: in both eras, below the size of a page, and masked where they derive."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, PromptReference, ResourceTemplateReference

KEY = "ghp_" + "a1B2" * 9
"""What a token looks like; it opens nothing."""
MESSAGES = [
    {"role": "user", "content": f"Always sign commits. My token is {KEY}"},
    {"role": "assistant", "content": "Noted."},
]


async def with_session(client: Client, session_id: str = "s1") -> None:
    stored = await client.call_tool("append_messages", {"messages": MESSAGES, "session_id": session_id})
    assert not stored.is_error


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    return content.text  # type: ignore[union-attr]


async def test_every_resource_of_a_session_is_offered(client: Client):
    templates = (await client.list_resource_templates()).resource_templates
    assert [item.uri_template for item in templates] == [
        f"session://{{session_id}}/{name}" for name in ("context", "memory", "transcript", "boundaries")
    ]
    assert all(item.description and item.title and item.mime_type for item in templates)


async def test_the_context_is_what_the_model_is_sent(client: Client):
    await with_session(client)
    shown = json.loads(await read(client, "session://s1/context"))
    page = await client.call_tool("get_messages_after_boundary", {"session_id": "s1"})
    assert shown["messages"] == (page.structured_content or {})["messages"]


async def test_the_transcript_is_masked(client: Client):
    await with_session(client)
    shown = await read(client, "session://s1/transcript")
    assert "Always sign commits" in shown
    assert KEY not in shown


async def test_memory_and_boundaries_are_read(client: Client):
    await with_session(client)
    await client.call_tool("update_session_memory", {"session_id": "s1", "content": "# Memory\n\nWe sign commits."})
    assert "We sign commits." in await read(client, "session://s1/memory")
    assert json.loads(await read(client, "session://s1/boundaries"))["total"] == 0


@pytest.mark.parametrize("name", ["nobody", "../../etc/passwd", "/etc/passwd", "a\0b", "%s%n"])
async def test_a_session_that_there_is_not_is_told(client: Client, name: str):
    with pytest.raises(MCPError):
        await client.read_resource(f"session://{quote(name, safe='')}/context")


@pytest.mark.parametrize("session_id", ["a/b", "über", "a b", "..", "x%2Fy"])
async def test_any_id_can_be_read(client: Client, session_id: str):
    await with_session(client, session_id)
    assert json.loads(await read(client, f"session://{quote(session_id, safe='')}/context"))["session_id"] == session_id


async def test_ids_are_completed_in_templates_and_the_prompt(client: Client):
    for name in ("alpha-1", "alpha-2", "beta"):
        await with_session(client, name)
    for ref in (
        ResourceTemplateReference(type="ref/resource", uri="session://{session_id}/memory"),
        PromptReference(type="ref/prompt", name="compact"),
    ):
        found = await client.complete(ref, {"name": "session_id", "value": "alpha"})
        assert sorted(found.completion.values) == ["alpha-1", "alpha-2"]
        other = await client.complete(ref, {"name": "keep", "value": "alpha"})
        assert other.completion.values == []


async def test_the_prompt_names_the_session_and_what_has_to_be_kept(client: Client):
    (prompt,) = (await client.list_prompts()).prompts
    assert prompt.name == "compact"
    given = await client.get_prompt("compact", {"session_id": "s1", "keep": "the ports: 8765"})
    text = given.messages[0].content.text  # type: ignore[union-attr]
    assert 'session_id "s1"' in text
    assert "the ports: 8765" in text
    plain = (await client.get_prompt("compact", {})).messages[0].content.text  # type: ignore[union-attr]
    assert "compact_session," in plain


async def test_a_prompt_that_there_is_not_is_the_callers_mistake(client: Client):
    with pytest.raises(MCPError, match="there is compact") as raised:
        await client.get_prompt("nothing", {})
    assert raised.value.error.code == INVALID_PARAMS
