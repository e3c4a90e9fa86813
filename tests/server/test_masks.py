"""A key that somebody typed anywhere comes back from no tool, resource, completion or command but those that give raw text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from mcp_compact.cli.main import main
from mcp_compact.config import Settings
from mcp_compact.server.app import build_server, local_place
from tests.server.talk import call

KEY = "sk-ant-api03-" + "Zq8" * 12
TOKEN = "ghp_" + "aB3" * 12
WORDS = "the invoice module rounds twice and the tests of it fail on Mondays " * 30
RAW = frozenset({"get_messages_after_boundary", "get_original"})
"""The caller's own context and what was stored, whole."""


def conversation() -> list[dict[str, Any]]:
    """A session with keys in every kind of text."""
    said: list[dict[str, Any]] = [{"role": "user", "content": f"Fix the login. Always use {KEY}; never print {KEY}."}]
    for at in range(8):
        use = {"type": "tool_use", "id": f"t{at}", "name": "Bash", "input": {"command": f"curl -H 'X: {TOKEN}' h/{at}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": f"{at}: token={TOKEN} {WORDS}"}
        said.append({"role": "assistant", "content": [{"type": "text", "text": f"Looking with {KEY}"}, use]})
        said.append({"role": "user", "content": [result]})
    return [*said, {"role": "user", "content": f"go on with {KEY}"}]


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("create_session", {"session_id": "s", "title": f"work with {KEY}"}),
    ("append_messages", {"session_id": "s", "messages": conversation()}),
    ("append_messages", {"session_id": "other", "messages": conversation()}),
    ("pin_instruction", {"session_id": "s", "text": f"Deploy with {KEY}"}),
    ("unpin", {"session_id": "s"}),
    ("get_context_status", {"session_id": "s", "detail": True}),
    ("microcompact_tool_results", {"session_id": "other", "mode": "all"}),
    ("extract_session_memory", {"session_id": "other"}),
    ("compact_session", {"session_id": "s", "target_tokens": 4_000, "dry_run": True}),
    ("compact_session", {"session_id": "s", "target_tokens": 4_000, "custom_instructions": f"dwell on {KEY}"}),
    ("compact_session", {"session_id": "other", "target_tokens": 4_000, "force": True}),
    ("update_session_memory", {"session_id": "s", "content": f"# Notes\nthe key is {KEY}"}),
    ("get_session_memory", {"session_id": "s"}),
    ("get_session_memory", {"session_id": "other"}),
    ("list_sessions", {}),
    ("list_boundaries", {"session_id": "other"}),
    ("audit_loss", {"session_id": "other"}),
    ("search_messages", {"query": "Looking"}),
    ("fork_session", {"session_id": "s"}),
    ("export_session", {"session_id": "other"}),
    ("validate_messages", {"messages": conversation()[1:]}),
    ("get_context_status", {}),
)
COMMANDS = (
    *("sessions", "sessions --json", "status s", "status s --json", "search Looking", "search Looking --json"),
    *(
        "memory other",
        "memory other --json",
        "rules other",
        "rules other --json",
        "report other",
        "report other --json",
    ),
    *("handoff other", "stats", "stats --json", "doctor", "doctor --json"),
)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCP_COMPACT_DB", str(tmp_path / "archive.db"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return Settings(db=tmp_path / "archive.db", hook_entry_points=False)


async def test_no_tool_resource_or_completion_gives_a_key_back(settings: Settings, tmp_path: Path) -> None:
    leaked: list[str] = []

    def look(name: str, said: object) -> None:
        text = str(said)
        if KEY in text or TOKEN in text:
            leaked.append(name)

    server = build_server(settings, profile="full", place=local_place(settings, tmp_path))
    async with Client(server) as client:
        for name, arguments in CALLS:
            answer = await client.call_tool(name, arguments)
            assert answer.is_error == (name == "get_context_status" and not arguments), answer.content
            look(f"{name} {sorted(arguments)}", answer)
        waiting = await call(client, "compact_session", session_id="s", target_tokens=4_000, force=True)
        if waiting["status"] == "summary_required":
            given = {"compaction_id": waiting["compaction_id"], "summary": f"## Requests\nUse {KEY}. {WORDS}"}
            look("submit_summary", await client.call_tool("submit_summary", given))
        for name in ("memory", "transcript", "boundaries"):
            for session in ("s", "other"):
                look(f"{name} of {session}", await client.read_resource(f"session://{session}/{name}"))
        offered = {tool.name for tool in (await client.list_tools()).tools}
    assert leaked == []
    # A tool that is added has to be looked at here too.
    looked_at = {name for name, _ in CALLS} | RAW | {"submit_summary"}
    said_nothing_of = {"import_transcript", "undo_compaction", "delete_session", "apply_plan", "snip_messages"}
    assert offered <= looked_at | said_nothing_of


def test_no_command_shows_a_key(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def fill() -> None:
        async with Client(build_server(settings, profile="full", place=local_place(settings, tmp_path))) as client:
            for name, arguments in CALLS[:11]:
                await client.call_tool(name, arguments)

    anyio.run(fill)
    capsys.readouterr()
    leaked = []
    for command in COMMANDS:
        code = main(command.split())
        shown = capsys.readouterr()
        if KEY in shown.out + shown.err or TOKEN in shown.out + shown.err:
            leaked.append(command)
        assert code in (0, 1), (command, shown.err)
        if command.endswith("--json"):
            json.loads(shown.out)
    assert leaked == []
