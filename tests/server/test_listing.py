"""What a client is told of the server: tools, sizes, schemas, instructions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.errors import CallerError
from mcp_compact.server import build_server, serve, tool_rows
from mcp_compact.server.app import INSTRUCTIONS
from tests.server.talk import conversation

CORE = [
    "append_messages",
    "import_transcript",
    "get_context_status",
    "compact_session",
    "submit_summary",
    "microcompact_tool_results",
    "get_messages_after_boundary",
    "undo_compaction",
    "get_session_memory",
    "update_session_memory",
    "pin_instruction",
    "search_messages",
    "get_original",
]
FULL = [
    "unpin",
    "create_session",
    "list_sessions",
    "delete_session",
    "fork_session",
    "list_boundaries",
    "snip_messages",
    "apply_plan",
    "extract_session_memory",
    "audit_loss",
    "validate_messages",
    "export_session",
]
PARAMETERS = {
    "append_messages": ["messages", "session_id", "model", "context_window", "overhead_tokens"],
    "import_transcript": ["path", "content", "format", "session_id"],
    "get_context_status": ["session_id", "detail"],
    "compact_session": [
        "session_id",
        "trigger",
        "custom_instructions",
        "target_tokens",
        "force",
        "dry_run",
        "error",
        "cursor",
        "now",
    ],
    "submit_summary": ["compaction_id", "summary"],
    "microcompact_tool_results": ["session_id", "mode", "older_than_minutes", "keep", "media", "force", "now"],
    "get_messages_after_boundary": ["session_id", "format", "cursor", "whole_messages"],
    "undo_compaction": ["session_id"],
    "get_session_memory": ["session_id"],
    "update_session_memory": ["content", "section", "summarized_through", "session_id"],
    "pin_instruction": ["text", "kind", "name", "session_id"],
    "search_messages": [
        "query",
        "session_id",
        "cursor",
        "limit",
        "role",
        "tool",
        "since",
        "until",
        "boundary",
        "order",
    ],
    "get_original": ["id", "session_id", "cursor"],
}


async def listed(settings: Settings, era: str, profile: str = "core") -> list[dict[str, Any]]:
    async with Client(build_server(settings, profile=profile), mode=era) as client:
        tools = (await client.list_tools()).tools
    return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]


def size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


async def test_the_core_tools_have_the_names_and_parameters_that_clients_rely_on(settings: Settings, era: str):
    tools = await listed(settings, era)
    assert [tool["name"] for tool in tools] == CORE
    assert {tool["name"]: list(tool["inputSchema"]["properties"]) for tool in tools} == PARAMETERS
    assert {
        tool["name"]: tool["inputSchema"].get("required", []) for tool in tools if tool["inputSchema"].get("required")
    } == {
        "append_messages": ["messages"],
        "submit_summary": ["compaction_id", "summary"],
        "update_session_memory": ["content"],
        "pin_instruction": ["text"],
        "search_messages": ["query"],
        "get_original": ["id"],
    }


async def test_the_listing_stays_small(settings: Settings, era: str, capsys: pytest.CaptureFixture[str]):
    tools = await listed(settings, era)
    spoken = size([{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools])
    whole = size(tools)
    with capsys.disabled():
        print(f"\ncore: names, descriptions, input schemas {spoken} bytes; tools/list {whole} bytes")  # noqa: T201 - the figures are to be seen
    assert spoken <= 10 * 1024
    assert whole <= 24 * 1024


async def test_no_text_parameter_may_be_null_and_none_has_a_made_up_title(settings: Settings):
    for tool in await listed(settings, "auto"):
        for name, schema in tool["inputSchema"]["properties"].items():
            assert "title" not in schema
            if name != "messages":
                assert schema["type"] in ("string", "integer", "boolean"), (tool["name"], name)


async def test_every_tool_says_what_it_may_do(settings: Settings):
    tools = await listed(settings, "auto")
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    assert all(hint["destructiveHint"] is False and hint["openWorldHint"] is False for hint in hints.values())
    assert [name for name, hint in hints.items() if hint["readOnlyHint"]] == [
        "get_context_status",
        "get_messages_after_boundary",
        "get_session_memory",
        "search_messages",
        "get_original",
    ]
    assert [name for name, hint in hints.items() if not hint["idempotentHint"]] == [
        "append_messages",
        "submit_summary",
        "undo_compaction",
        "update_session_memory",
    ]
    assert all(tool["title"] and tool["description"] and tool["outputSchema"]["properties"] for tool in tools)


async def test_the_listing_is_the_same_every_time(settings: Settings):
    assert await listed(settings, "auto") == await listed(settings, "auto")


async def test_a_client_that_keeps_its_history_can_be_offered_fewer_tools(settings: Settings):
    names = [tool["name"] for tool in await listed(settings, "auto", "agent")]
    assert names == [name for name in CORE if name in names]
    assert len(names) == 7
    with pytest.raises(CallerError, match="agent, core, full"):
        build_server(settings, profile="everything")
    with pytest.raises(CallerError, match="stdio"):
        serve("carrier-pigeon", settings=settings)


async def test_a_list_of_tools_is_a_profile_of_its_own(settings: Settings):
    names = [
        tool["name"] for tool in await listed(settings, "auto", "search_messages, get_context_status,export_session")
    ]
    assert names == ["get_context_status", "search_messages", "export_session"]
    with pytest.raises(CallerError, match=r"'serch_messages'\. Did you mean search_messages\?"):
        build_server(settings, profile="get_context_status,serch_messages")
    with pytest.raises(CallerError, match="no profile"):
        build_server(settings, profile=" , ")


@pytest.mark.parametrize("more", ["", ",submit_summary"])
async def test_a_summary_is_asked_of_the_caller_only_where_it_can_hand_one_in(settings: Settings, more: str):
    tools = f"append_messages,compact_session{more}"
    async with Client(build_server(settings, profile=tools)) as client:
        await client.call_tool("append_messages", {"session_id": "s", "messages": conversation(14)})
        asked = {"session_id": "s", "trigger": "manual", "target_tokens": 6_000, "custom_instructions": "dwell on 42"}
        done = (await client.call_tool("compact_session", asked)).structured_content or {}
    assert (done["status"] == "summary_required") == bool(more)


async def test_the_instructions_reach_the_client_and_name_only_tools_that_are_there(settings: Settings, era: str):
    async with Client(build_server(settings), mode=era) as client:
        assert client.instructions == INSTRUCTIONS
    assert len(INSTRUCTIONS.encode()) <= 1536
    words = {word.strip(".,:;()`") for word in INSTRUCTIONS.split()}
    named = {
        word
        for word in words
        if word.count("_")
        and word.split("_")[0] in ("get", "search", "update", "undo", "append", "import", "compact", "microcompact")
    }
    assert named - {"compact_at"} <= set(CORE)


def test_the_docs_get_a_row_for_every_tool():
    rows = tool_rows()
    assert [name for name, profile, _ in rows if profile != "full"] == CORE
    assert [name for name, profile, _ in rows if profile == "full"] == FULL
    assert {profile for _, profile, _ in rows} == {"agent", "core", "full"}


async def test_only_the_full_profile_has_all_tools_and_one_that_destroys(settings: Settings, era: str):
    tools = await listed(settings, era, "full")
    assert {tool["name"] for tool in tools} == {*CORE, *FULL}
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    assert [name for name, hint in hints.items() if hint["destructiveHint"]] == ["delete_session"]
    assert [name for name in FULL if hints[name]["readOnlyHint"]] == [
        "list_sessions", "list_boundaries", "audit_loss", "validate_messages", "export_session",
    ]  # fmt: skip
    assert [name for name in FULL if not hints[name]["idempotentHint"]] == ["create_session", "fork_session"]
    required = {tool["name"]: tool["inputSchema"].get("required", []) for tool in tools if tool["name"] in FULL}
    assert {name: names for name, names in required.items() if names} == {
        "delete_session": ["session_id"],
        "apply_plan": ["plan_id"],
    }
    assert all(tool["title"] and tool["description"] and tool["outputSchema"]["properties"] for tool in tools)
