"""The tools of the profile `full`, in both eras, over a real archive."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server, local_place
from mcp_compact.server.backend import Place
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.server.talk import assistant, call, context_of, conversation, jsonl, refused, transcript, user

OWN = ("fork_session", "list_boundaries", "extract_session_memory")


@pytest.fixture
async def client(settings: Settings, project: Path, clock: FixedClock, era: str) -> AsyncIterator[Client]:
    """A client of a server that offers everything."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with open_service(settings) as service:
            yield replace(service, deps=replace(service.deps, clock=clock))

    server = build_server(settings, profile="full", place=local_place(settings, project), factory=opened)
    async with Client(server, mode=era) as client:
        yield client


async def stored(client: Client, session_id: str = "s", rounds: int = 12) -> list[str]:
    """The uuids of a conversation that is stored."""
    answer = await call(client, "append_messages", session_id=session_id, messages=conversation(rounds))
    uuids: list[str] = answer["uuids"]
    return uuids


async def test_sessions_are_made_listed_and_deleted(client: Client, project: Path, clock: FixedClock):
    made = await call(
        client,
        "create_session",
        session_id="s",
        title="Parser",
        model="claude-sonnet-4-5",
        context_window=100_000,
        overhead_tokens=10,
    )
    assert (made["session_id"], made["status"], made["owner"], made["context_window"]) == (
        "s",
        "created",
        "loop",
        100_000,
    )
    clock.at_ms += 1
    unnamed = await call(client, "create_session")
    assert unnamed["session_id"] not in ("", "s")
    assert (await call(client, "create_session", session_id="s"))["status"] == "exists"
    listed = await call(client, "list_sessions")
    assert [line["session_id"] for line in listed["sessions"]] == [unnamed["session_id"], "s"]
    assert listed["sessions"][1]["title"] == "Parser"
    first = await call(client, "list_sessions", limit=1)
    rest = await call(client, "list_sessions", cursor=first["next_cursor"])
    assert [*first["sessions"], *rest["sessions"]] == listed["sessions"]
    deleted = await call(client, "delete_session", session_id="s")
    assert (deleted["status"], deleted["records"]) == ("deleted", 0)
    assert "unknown_session: " in await refused(client, "get_context_status", session_id="s")


async def test_the_list_stays_in_the_project(client: Client, project: Path, tmp_path: Path):
    for name, cwd in (("here", project), ("elsewhere", tmp_path)):
        await call(client, "import_transcript", content=jsonl(transcript(name, str(cwd), 1)))
    assert [line["session_id"] for line in (await call(client, "list_sessions"))["sessions"]] == ["here"]


async def test_a_session_is_deleted_only_by_its_name(client: Client):
    await stored(client, rounds=1)
    text = await refused(client, "delete_session")
    assert "session_id" in text
    assert "bad_session_id: " in await refused(client, "delete_session", session_id=" ")
    assert "unknown_session: " in await refused(client, "delete_session", session_id="other")
    assert (await call(client, "get_context_status"))["live_messages"] == 4


async def test_what_no_session_can_be_is_refused(client: Client):
    assert "bad_owner: " in await refused(client, "create_session", session_id="s", owner="nobody")
    assert "bad_window: " in await refused(client, "create_session", session_id="s", context_window=-5)
    assert "bad_session_id: " in await refused(client, "create_session", session_id="a\nb")
    assert "bad_cursor: " in await refused(client, "list_sessions", cursor="x")
    assert (await call(client, "list_sessions"))["sessions"] == []


NUMBERS = {
    "append_messages": {"context_window": "bad_window", "overhead_tokens": "bad_arguments: overhead_tokens"},
    "compact_session": {"target_tokens": "bad_target"},
    "create_session": {"context_window": "bad_window", "overhead_tokens": "bad_arguments: overhead_tokens"},
    "list_sessions": {"limit": "bad_limit"},
    "microcompact_tool_results": {
        "keep": "bad_arguments: keep",
        "older_than_minutes": "bad_arguments: older_than_minutes",
    },
    "search_messages": {"limit": "bad_limit"},
}
"""Every parameter that is a number, by tool, and what a number that it cannot be is answered with."""
NEEDED: dict[str, dict[str, Any]] = {"append_messages": {"messages": [user("hi")]}, "search_messages": {"query": "x"}}


async def test_every_number_is_refused_where_it_can_be_none(client: Client):
    found: dict[str, set[str]] = {}
    for tool in (await client.list_tools()).tools:
        for name, schema in tool.input_schema["properties"].items():
            if schema.get("type") == "integer":
                found.setdefault(tool.name, set()).add(name)
    assert found == {tool: set(names) for tool, names in NUMBERS.items()}


@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, names in NUMBERS.items() for name in names])
async def test_a_negative_number_is_refused_and_nothing_is_done(client: Client, tool: str, name: str):
    await call(client, "append_messages", session_id="there", messages=[user("hi")])
    arguments = dict(NEEDED.get(tool, {}))
    if tool != "list_sessions":
        arguments["session_id"] = "new" if tool in ("append_messages", "create_session") else "there"
    for number in (-4, -1_000_000):
        text = await refused(client, tool, **arguments, **{name: number})
        assert text.startswith(NUMBERS[tool][name])
    assert [line["session_id"] for line in (await call(client, "list_sessions"))["sessions"]] == ["there"]


async def test_a_fork_is_a_session_of_its_own(client: Client):
    uuids = await stored(client)
    fork = await call(client, "fork_session", session_id="s", new_session_id="twin")
    assert (fork["session_id"], fork["parent_session_id"], fork["live_messages"]) == ("twin", "s", len(uuids))
    assert await context_of(client, "twin") == await context_of(client, "s")
    early = await call(client, "fork_session", session_id="s", up_to=uuids[3])
    assert early["live_messages"] == 4
    assert "session_exists: " in await refused(client, "fork_session", session_id="s", new_session_id="twin")
    assert "unknown_message: " in await refused(client, "fork_session", session_id="s", up_to="nothing")
    # Both are at work here now: neither is guessed.
    assert "twin" in await refused(client, "get_context_status")


async def test_boundaries_are_listed_with_their_state(client: Client):
    await stored(client)
    done = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
    undone = await call(client, "undo_compaction", session_id="s")
    page = await call(client, "list_boundaries", session_id="s")
    assert [(line["uuid"], line["kind"], line["state"]) for line in page["boundaries"]] == [
        (undone["marker_uuid"], "undo", "done"),
        (done["boundary_uuid"], "compact_boundary", "undone"),
    ]
    assert page["boundaries"][1]["tokens_before"] == done["tokens_before"]
    assert page["boundaries"][1]["strategy"] == "session_memory"
    assert "bad_cursor: " in await refused(client, "list_boundaries", session_id="s", cursor="x")


async def test_messages_are_snipped_by_name_range_and_rule_as_lists_or_as_text(client: Client):
    uuids = await stored(client)
    done = await call(
        client, "snip_messages", session_id="s", uuids=[uuids[7], uuids[0]], ranges=[f"{uuids[8]}..{uuids[9]}"]
    )
    # The result of the call comes along.
    assert done["messages"] == [uuids[7], uuids[9], uuids[10]]
    assert done["spared"] == [
        {"uuid": uuids[0], "reason": "the first message of the user"},
        {"uuid": uuids[8], "reason": "a standing instruction"},
    ]
    as_text = await call(
        client, "snip_messages", session_id="s", uuids=json.dumps([uuids[11]]), ranges=f" {uuids[13]} .. {uuids[14]} ,"
    )
    assert as_text["messages"] == [uuids[11], uuids[13], uuids[14]]
    forced = await call(client, "snip_messages", session_id="s", uuids=f"{uuids[0]}, {uuids[8]}", force=True)
    assert forced["messages"] == [uuids[0], uuids[8]]
    assert problems(await context_of(client, "s")) == []


async def test_thousands_of_uuids_do_not_fill_the_answer_of_a_snip(client: Client):
    await stored(client, rounds=60)
    done = await call(client, "snip_messages", session_id="s", rules=["tool:Read"])
    assert len(done["messages"]) == 100
    assert any("of 120 are named" in warning for warning in done["warnings"])


async def test_snips_take_what_is_named_and_spare_what_is_protected(client: Client):
    sent = [
        user("Start."),
        assistant("ALPHA"),
        assistant("BETA"),
        *conversation(3)[1:],
        assistant("end"),
        user("go on"),
    ]
    uuids = (await call(client, "append_messages", session_id="s", messages=sent))["uuids"]
    before = await call(client, "get_context_status", session_id="s")
    done = await call(client, "snip_messages", session_id="s", uuids=[uuids[0], uuids[1]])
    assert (done["status"], done["executed"], done["messages"]) == ("compacted", True, [uuids[1]])
    assert done["spared"] == [{"uuid": uuids[0], "reason": "the first message of the user"}]
    assert done["tokens_before"] == before["message_tokens"]
    assert done["tokens_freed"] == done["tokens_before"] - done["tokens_after"] > 0
    assert (await call(client, "snip_messages", session_id="s", ranges=f"{uuids[2]}..{uuids[2]}"))["messages"] == [
        uuids[2]
    ]
    by_rule = await call(client, "snip_messages", session_id="s", rules="errors, tool:Re*")
    assert len(by_rule["messages"]) == 6
    messages = await context_of(client, "s")
    assert problems(messages) == []
    assert "ALPHA" not in json.dumps(messages)
    nothing = await call(client, "snip_messages", session_id="s", rules='["errors"]')
    assert (nothing["status"], nothing["executed"], nothing["reason"]) == (
        "nothing_to_compact",
        False,
        "nothing_to_snip",
    )
    original = await call(client, "get_original", session_id="s", id=uuids[1])
    assert "ALPHA" in original["text"]


async def test_mistakes_in_a_snip_are_named_and_change_nothing(client: Client):
    uuids = await stored(client, rounds=2)
    before = await call(client, "get_context_status", session_id="s")
    for arguments, code in (
        ({}, "nothing_named"),
        ({"rules": "all"}, "unknown_rule"),
        ({"uuids": "nobody"}, "not_live"),
        ({"ranges": uuids[0]}, "bad_range"),
        ({"ranges": ".."}, "bad_range"),
        ({"uuids": {"a": 1}}, "bad_list"),
        ({"uuids": [1]}, "bad_list"),
        ({"uuids": 7}, "bad_list"),
        ({"rules": '["errors"'}, "bad_list"),
        ({"uuids": ["x"] * 10_001}, "too_many"),
    ):
        assert f"{code}: " in await refused(client, "snip_messages", session_id="s", **arguments)
    assert await call(client, "get_context_status", session_id="s") == before


async def test_the_status_tells_what_could_be_snipped_where_it_is_asked(client: Client):
    sent = [*conversation(2), *conversation(2)[1:], user("and now?")]
    for message in sent:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                block["input"] = {"file_path": "same.py"}
    for number, block in enumerate(
        block
        for message in sent
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] in ("tool_use", "tool_result")
    ):
        block["id" if block["type"] == "tool_use" else "tool_use_id"] = f"call_{number // 2}"
    await call(client, "append_messages", session_id="s", messages=sent)
    assert "snippable_tokens" not in await call(client, "get_context_status", session_id="s")
    asked = await call(client, "get_context_status", session_id="s", detail=True)
    assert asked["snippable_tokens"] > 0
    assert any("snip_messages" in warning for warning in asked["warnings"])


async def test_a_plan_is_carried_out_as_it_was_shown(client: Client):
    await stored(client)
    plan = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True, dry_run=True)
    assert "apply_plan" in plan["next"]
    await call(client, "append_messages", session_id="s", messages=[user("meanwhile")])
    done = await call(client, "apply_plan", session_id="s", plan_id=plan["plan_id"])
    assert (done["status"], done["tokens_after"]) == ("compacted", plan["tokens_after"])
    messages = await context_of(client, "s")
    assert problems(messages) == []
    assert "meanwhile" in json.dumps(messages[-1])


async def test_a_plan_after_an_undo_or_of_another_session_is_not_carried_out(client: Client):
    await stored(client)
    await stored(client, "other")
    arguments = {"target_tokens": 6_000, "force": True}
    plan = await call(client, "compact_session", session_id="s", dry_run=True, **arguments)
    assert "unknown_plan: " in await refused(client, "apply_plan", session_id="other", plan_id=plan["plan_id"])
    assert "unknown_plan: " in await refused(client, "apply_plan", session_id="s", plan_id="nonsense")
    await call(client, "compact_session", session_id="s", **arguments)
    await call(client, "undo_compaction", session_id="s")
    void = await call(client, "apply_plan", session_id="s", plan_id=plan["plan_id"])
    assert void["status"] == "failed"
    [why] = void["declined"]
    assert why["reason"] == "plan_changed"
    assert "an undo" in why["detail"]
    assert "boundary_uuid" not in void
    assert "No compaction waits" in await refused(client, "submit_summary", compaction_id=plan["plan_id"], summary="x")


async def test_a_plan_of_an_hour_ago_is_refused(client: Client, clock: FixedClock):
    await stored(client)
    plan = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True, dry_run=True)
    clock.at_ms += 3_600_001
    assert "plan_expired: " in await refused(client, "apply_plan", session_id="s", plan_id=plan["plan_id"])


async def test_the_memory_is_extracted_on_request(client: Client):
    await stored(client)
    written = await call(client, "extract_session_memory", session_id="s")
    assert (written["version"], written["uncovered_messages"]) == (1, 0)
    assert "content" not in written
    memory = await call(client, "get_session_memory", session_id="s")
    assert "never touch config_3.yaml" in memory["content"]
    again = await call(client, "extract_session_memory", session_id="s")
    assert again["version"] == 1
    assert any("nothing is new" in warning for warning in again["warnings"])


async def test_unknown_sessions_are_refused_by_every_tool(client: Client):
    calls: dict[str, dict[str, Any]] = {
        **{name: {} for name in OWN},
        "snip_messages": {"rules": "errors"},
        "apply_plan": {"plan_id": "plan-1"},
        "delete_session": {},
    }
    for tool, arguments in calls.items():
        assert "unknown_session: There is no session 'nobody'" in await refused(
            client, tool, session_id="nobody", **arguments
        )


async def test_over_a_network_sessions_must_be_named_and_all_of_them_are_listed(settings: Settings, era: str):
    async with Client(build_server(settings, profile="full", place=Place()), mode=era) as client:
        await call(client, "append_messages", session_id="s", messages=[user("hi")])
        assert [line["session_id"] for line in (await call(client, "list_sessions"))["sessions"]] == ["s"]
        for tool in OWN:
            assert "required over a network" in await refused(client, tool)
        assert "required over a network" in await refused(client, "snip_messages", rules="errors")
        assert "required over a network" in await refused(client, "apply_plan", plan_id="plan-1")
        assert (await call(client, "create_session", session_id="t"))["status"] == "created"


async def test_what_the_number_of_live_messages_counts_is_said_wherever_it_stands(client: Client):
    schemas = [str(tool.output_schema) for tool in (await client.list_tools()).tools]
    told = [schema for schema in schemas if "'live_messages'" in schema]
    assert len(told) == 4
    assert all("without what a compaction put before them" in schema for schema in told)


async def test_live_messages_are_the_stored_ones_whatever_is_given_out_beside_or_instead_of_them(client: Client):
    await call(client, "append_messages", session_id="e", messages=[user("hi"), assistant(" "), user(" ")])
    status = await call(client, "get_context_status", session_id="e")
    assert (status["live_messages"], len(await context_of(client, "e"))) == (3, 1)
    await stored(client, rounds=40)
    done = await call(client, "compact_session", session_id="s", force=True, target_tokens=2_000, trigger="manual")
    assert done["status"] == "compacted"
    status = await call(client, "get_context_status", session_id="s")
    notes, *kept = await context_of(client, "s")
    assert "replaced by the notes below" in str(notes)
    assert status["live_messages"] == len(kept) < 80
