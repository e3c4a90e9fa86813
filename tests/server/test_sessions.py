"""A call that names no session means the only one at work in the folder, or none."""

from __future__ import annotations

from pathlib import Path

from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server
from mcp_compact.server.backend import Place
from mcp_compact.testing import FixedClock
from tests.server.talk import call, jsonl, refused, transcript, user

MINUTE_MS = 60_000


async def test_the_only_active_session_is_meant_and_an_older_one_is_not(client: Client, clock: FixedClock):
    await call(client, "append_messages", session_id="old", messages=[user("hi")])
    clock.at_ms += 11 * MINUTE_MS
    await call(client, "append_messages", session_id="new", messages=[user("hi")])
    assert (await call(client, "get_context_status"))["session_id"] == "new"
    await call(client, "append_messages", messages=[user("more")])
    assert (await call(client, "get_context_status", session_id="  "))["live_messages"] == 2


async def test_two_active_sessions_are_both_named_and_neither_is_taken(client: Client):
    for name in ("one", "two"):
        await call(client, "append_messages", session_id=name, messages=[user("hi")])
    text = await refused(client, "compact_session")
    assert "which_session: Several sessions" in text
    assert "one" in text
    assert "two" in text


async def test_without_an_active_session_the_latest_are_named(client: Client, clock: FixedClock):
    assert "No session is known" in await refused(client, "get_context_status")
    await call(client, "append_messages", session_id="yesterday", messages=[user("hi")])
    clock.at_ms += 24 * 60 * MINUTE_MS
    assert "yesterday" in await refused(client, "get_context_status")


async def test_sessions_of_other_folders_and_of_sub_agents_are_not_meant(client: Client, project: Path, tmp_path: Path):
    await call(client, "import_transcript", content=jsonl(transcript("elsewhere", str(tmp_path), 1)))
    assert "No session is known" in await refused(client, "get_context_status")
    inline = transcript("here", str(project), 1)
    inline += [
        record | {"uuid": "side-" + record["uuid"], "parentUuid": None, "isSidechain": True, "agentId": "a1"}
        for record in inline
    ]
    imported = await call(client, "import_transcript", content=jsonl(inline))
    assert imported["children"]
    assert (await call(client, "get_context_status"))["session_id"] == "here"


async def test_over_a_network_a_session_must_be_named_and_no_file_is_read(settings: Settings, era: str):
    async with Client(build_server(settings, place=Place()), mode=era) as client:
        assert "required over a network" in await refused(client, "get_context_status")
        assert "required over a network" in await refused(client, "search_messages", query="x")
        assert "no_roots: " in await refused(client, "import_transcript", path="/etc/passwd")
        await call(client, "append_messages", session_id="s", messages=[user("hi")])
        assert (await call(client, "get_context_status", session_id="s"))["live_messages"] == 1
