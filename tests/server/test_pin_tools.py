"""Pins over MCP, in both eras."""

from __future__ import annotations

import json

from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server import build_server
from tests.problems import problems
from tests.server.talk import call, context_of, conversation, refused

RULE = 'ALWAYS use tabs, and write "null" where nothing is known'


async def test_a_pinned_instruction_stands_word_for_word_in_the_context_after_a_compaction(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    pinned = await call(client, "pin_instruction", session_id="s", text=RULE)
    assert (pinned["status"], pinned["kind"], pinned["name"]) == ("pinned", "instruction", RULE)
    assert [pin["name"] for pin in pinned["pins"]] == [RULE]
    done = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
    assert done["status"] == "compacted"
    messages = await context_of(client, "s")
    assert problems(messages) == []
    assert json.dumps(messages).count(json.dumps(RULE)[1:-1]) == 1


async def test_text_that_looks_like_json_is_pinned_as_it_is(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    for text in ("null", "12", '{"a": [1]}', "[]"):
        await call(client, "pin_instruction", session_id="s", text=text, kind="plan")
        await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
        assert f"~~~\n{text}\n~~~" in str([m["content"] for m in await context_of(client, "s")]).replace("\\n", "\n")
        await call(client, "undo_compaction", session_id="s")


async def test_null_for_kind_and_name_is_the_same_as_leaving_them_out(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(1))
    pinned = await call(client, "pin_instruction", session_id="s", text="ALWAYS use tabs", kind=None, name=None)
    assert (pinned["kind"], pinned["name"]) == ("instruction", "ALWAYS use tabs")
    again = await call(client, "pin_instruction", session_id="s", text="ALWAYS use tabs", kind="instruction")
    assert again["status"] == "replaced"


async def test_what_cannot_be_pinned_is_refused_with_what_to_do(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(1))
    assert "empty: " in await refused(client, "pin_instruction", session_id="s", text=" ")
    assert "bad_kind: " in await refused(client, "pin_instruction", session_id="s", text="x", kind="wish")
    assert "bad_name: " in await refused(client, "pin_instruction", session_id="s", text="x", kind="skill")
    assert "too_long: " in await refused(client, "pin_instruction", session_id="s", text="x" * 100_000)
    assert "unknown_session: " in await refused(client, "pin_instruction", session_id="other", text="x")


async def test_a_pin_is_taken_back_in_the_full_profile(settings: Settings, era: str):
    async with Client(build_server(settings, profile="full"), mode=era) as client:
        await taken_back(client)


async def taken_back(client: Client) -> None:
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    name = (await call(client, "pin_instruction", session_id="s", text=RULE))["name"]
    await call(client, "pin_instruction", session_id="s", text="how to pdf", kind="skill", name="pdf")
    assert [pin["kind"] for pin in (await call(client, "unpin", session_id="s"))["pins"]] == ["instruction", "skill"]
    taken = await call(client, "unpin", session_id="s", name=name)
    assert (taken["status"], [pin["name"] for pin in taken["pins"]]) == ("unpinned", ["pdf"])
    assert "pdf" in await refused(client, "unpin", session_id="s", name="word", kind="skill")
    await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
    text = json.dumps(await context_of(client, "s"))
    assert "how to pdf" in text
    assert "ALWAYS use tabs" not in text
