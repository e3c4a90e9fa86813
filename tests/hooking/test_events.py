"""What each event of a client does, with the real process."""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any

import pytest

from mcp_compact import ancestors, handoff_note
from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.adapters.sqlite.migrations import migrate, schema_versions
from mcp_compact.compaction.injection import REFINED_CHARS, RULES
from mcp_compact.compaction.rules import DROPPED, rules_of
from mcp_compact.ports.store import Registered, SessionKey
from tests.hooking.client import RULE, SESSION, ClientFolder

pytestmark = pytest.mark.e2e
KEY = SessionKey("local", SESSION)
SUMMARY = "<summary>Nothing of note.</summary>"


def uuids(records: list[dict[str, Any]]) -> list[str]:
    return [record["uuid"] for record in records]


def compaction(client: ClientFolder, after: str, summary: str = SUMMARY) -> list[dict[str, Any]]:
    """A compaction as the client writes it into the transcript, once its hooks have run."""
    base = {"sessionId": SESSION, "cwd": str(client.project), "timestamp": "2026-01-01T01:00:00.000Z"}
    boundary = base | {
        "type": "system", "subtype": "compact_boundary", "uuid": "boundary", "parentUuid": None,
        "logicalParentUuid": after, "content": "Conversation compacted",
        "compactMetadata": {"trigger": "manual", "preTokens": 5000},
    }  # fmt: skip
    told = base | {
        "type": "user", "uuid": "summary", "parentUuid": "boundary", "isCompactSummary": True,
        "isVisibleInTranscriptOnly": True, "message": {"role": "user", "content": f"This session is being continued.\n{summary}"},
    }  # fmt: skip
    return [boundary, told]


def natives(client: ClientFolder) -> int:
    return client.rows("SELECT count(*) FROM marker WHERE native = 1 AND kind = 'compact_boundary'")[0][0]


# ---------------------------------------------------------------- starts and prompts


@pytest.mark.parametrize("source", ["startup", "resume", "clear"])
def test_a_start_notes_what_the_client_is_at_and_tells_the_person_alone(client: ClientFolder, source: str):
    said = client.hook("SessionStart", source=source)
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out) == {"systemMessage": "mcp-compact: recording"}
    bound = client.rows("SELECT client, session_id, transcript, cwd FROM binding")
    me = ancestors.name_of(os.getpid())
    assert bound == [(me, SESSION, str(client.transcript), str(client.project))]
    assert client.notes() == []


def test_a_client_that_says_its_process_is_bound_by_that(client: ClientFolder):
    client.env["CLAUDE_PID"] = str(os.getppid())
    client.hook("SessionStart", source="startup")
    assert client.rows("SELECT client FROM binding") == [(ancestors.name_of(os.getppid()),)]


def test_a_resumed_session_says_how_many_rules_are_kept(client: ClientFolder):
    client.write(client.talk(3))
    client.hook("Stop")
    assert client.hook("SessionStart", source="resume").person == "mcp-compact: recording, 3 rules kept"


def test_rules_are_counted_when_a_session_ends_and_one_that_was_revoked_counts_no_more(client: ClientFolder):
    records = client.talk(3)
    client.write(records)
    client.hook("SessionEnd", reason="other")
    assert client.hook("SessionStart", source="resume").person == "mcp-compact: recording, 3 rules kept"
    later = records[-1] | {"type": "user", "uuid": "later", "parentUuid": records[-1]["uuid"]}
    later["message"] = {"role": "user", "content": "You may touch config_0.yaml now."}
    client.write([later], more=True)
    client.hook("SessionEnd", reason="other")
    [(kept,)] = client.rows("SELECT rules FROM hook_state")
    assert client.hook("SessionStart", source="resume").person.startswith(f"mcp-compact: recording, {kept} rule")
    conn = operations.connect(client.archive)
    assert kept == len(rules_of(operations.records(conn, KEY, after_seq=0, up_to_seq=99, live_only=False)))
    conn.close()


def test_a_prompt_binds_too_where_the_start_was_missed_and_says_nothing(client: ClientFolder):
    assert client.hook("UserPromptSubmit", prompt="hello").out == ""
    assert client.rows("SELECT session_id FROM binding") == [(SESSION,)]


def test_a_brief_that_was_left_is_given_after_a_clear_and_only_then(client: ClientFolder):
    client.project.mkdir()
    handoff_note.put(str(client.archive), str(client.project), "Rules: use tabs.", client_now())
    assert client.hook("SessionStart", source="startup").context == ""
    said = client.hook("SessionStart", source="clear")
    assert said.context == "Rules: use tabs."
    assert said.person == "mcp-compact: recording"
    assert client.hook("SessionStart", source="clear").context == ""


def client_now() -> int:
    from mcp_compact.adapters.system import SystemClock

    return SystemClock().now_ms()


# ---------------------------------------------------------------- before a compaction


def test_before_a_compaction_archive_and_memory_are_brought_up_to_date(client: ClientFolder):
    records = client.talk(4)
    client.write(records)
    said = client.hook("PreCompact", trigger="auto", custom_instructions="")
    assert (said.code, said.err) == (0, "")
    assert f"- {RULE}" in said.out.splitlines()
    assert client.stored() == uuids(records)
    conn = operations.connect(client.archive)
    memory = operations.memory(conn, KEY)
    conn.close()
    assert memory is not None
    assert (memory.mark_uuid, memory.writer) == (records[-1]["uuid"], "extractor")
    assert client.rows("SELECT rules FROM hook_state") == [(4,)]


def test_twice_is_once_and_only_what_came_since_is_read(client: ClientFolder):
    records = client.talk(6)
    client.write(records[:12])
    first = client.hook("PreCompact", trigger="auto")
    assert client.hook("PreCompact", trigger="auto").out == first.out
    [(offset,)] = client.rows("SELECT offset FROM source WHERE source NOT LIKE '%|ready'")
    assert offset == client.transcript.stat().st_size
    assert client.rows("SELECT max(version) FROM memory") == [(1,)]
    # Bytes that were read are not read again: what stands there now would be no JSON.
    size = client.transcript.stat().st_size
    with client.transcript.open("r+b") as stream:
        stream.seek(size // 2)
        stream.write(b'"' * 40)
    client.write(records[12:], more=True)
    client.hook("Stop")
    assert client.stored() == uuids(records)


def test_a_session_without_a_transcript_yet_is_no_fault(client: ClientFolder):
    for event in ("PreCompact", "PostCompact", "Stop", "SessionEnd"):
        assert client.hook(event, trigger="auto", compact_summary=SUMMARY).out == ""
    client.write(b"")
    assert client.hook("PreCompact", trigger="auto").out == ""
    assert client.notes() == []


def test_a_compaction_by_hand_is_held_back_once_where_a_setting_asks_for_it(client: ClientFolder):
    client.write(client.talk(3))
    client.env["MCP_COMPACT_HOLD_MANUAL"] = "1"
    assert client.hook("PreCompact", trigger="auto").code == 0
    held = client.hook("PreCompact", trigger="manual")
    assert (held.code, held.out) == (2, "")
    assert "MCP_COMPACT_HOLD_MANUAL" in held.err
    assert RULE in client.hook("PreCompact", trigger="manual").out


def test_without_the_setting_no_compaction_is_held_back(client: ClientFolder):
    client.write(client.talk(3))
    assert client.hook("PreCompact", trigger="manual").code == 0


# ---------------------------------------------------------------- after a compaction


def test_after_a_compaction_everything_is_given_back_at_once(client: ClientFolder):
    client.write(client.talk(30))
    client.hook("PreCompact", trigger="auto")
    said = client.hook("SessionStart", source="compact")
    assert json.loads(said.out)["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert 1000 < len(said.context) <= 9500
    assert "never touch config_29.yaml" in said.context
    assert SESSION in said.context
    assert said.person == ""


def test_a_compaction_that_was_not_announced_is_made_good_at_the_start_after_it(client: ClientFolder):
    records = client.talk(4)
    client.write(records)
    assert RULE in client.hook("SessionStart", source="compact").context
    assert client.stored() == uuids(records)


def test_its_size_is_a_setting(client: ClientFolder):
    client.write(client.talk(30))
    client.env["MCP_COMPACT_INJECTION_CHARS"] = "2000"
    client.hook("PreCompact", trigger="auto")
    assert 500 < len(client.hook("SessionStart", source="compact").context) <= 2000


def test_without_the_extractor_the_rules_are_given_back_alone(client: ClientFolder):
    client.write(client.talk(4))
    client.env["MCP_COMPACT_FLAG_SESSION_MEMORY"] = "0"
    assert RULE in client.hook("PreCompact", trigger="auto").out
    said = client.hook("SessionStart", source="compact")
    assert RULE in said.context
    assert "function_0" not in said.context
    assert client.rows("SELECT count(*) FROM memory") == [(0,)]


def test_what_neither_summary_nor_injection_held_follows_with_the_next_prompt_once(client: ClientFolder):
    records = client.talk(40)
    client.write(records)
    client.env["MCP_COMPACT_INJECTION_CHARS"] = "1500"
    client.hook("PreCompact", trigger="manual")
    given = client.hook("SessionStart", source="compact").context
    rules = [f"Please look into module {number}; never touch config_{number}.yaml." for number in range(40)]
    told, lost = rules[3], [rule for rule in rules if rule not in given]
    assert told in lost
    client.env["MCP_COMPACT_INJECTION_CHARS"] = "9500"
    assert client.hook("PostCompact", trigger="manual", compact_summary=f"The user said: {told}").out == ""
    first = client.hook("UserPromptSubmit", prompt="go on")
    assert 0 < len(first.context) <= REFINED_CHARS
    assert any(rule in first.context for rule in lost)
    assert not any(rule in first.context for rule in rules if rule in given)
    assert told not in first.context
    assert client.hook("UserPromptSubmit", prompt="go on").out == ""
    assert client.rows("SELECT rules, rules_told FROM hook_state") == [(40, 1)]


def test_what_a_person_pinned_and_dropped_counts_before_and_after_a_compaction(client: ClientFolder):
    client.write(client.talk(3))
    client.hook("Stop")
    conn = operations.connect(client.archive)
    operations.register(conn, KEY, Registered("instruction", "a", "Be kind to the reader."), 1)
    operations.register(conn, KEY, Registered("instruction", "b", "Ask before a release."), 1)
    operations.register(conn, KEY, Registered(DROPPED, "c", RULE), 1)
    conn.close()
    kept = client.hook("PreCompact", trigger="auto").out
    assert "- Be kind to the reader." in kept
    assert RULE not in kept
    client.hook("PostCompact", trigger="auto", compact_summary="<summary>Ask before a release.</summary>")
    told = client.hook("UserPromptSubmit", prompt="go on").context
    rules = told.partition(RULES)[2].partition("##")[0]
    assert "- Be kind to the reader." in rules
    assert "config_1.yaml" in rules
    assert "Ask before a release." not in told
    assert RULE not in rules
    assert client.rows("SELECT rules, rules_told FROM hook_state") == [(4, 1)]


def test_where_nothing_was_lost_the_next_prompt_is_silent(client: ClientFolder):
    records = client.talk(2)
    client.write(records)
    client.hook("PreCompact", trigger="auto")
    client.hook("SessionStart", source="compact")
    everything = "\n".join(json.dumps(record["message"]) for record in records)
    client.hook("PostCompact", trigger="auto", compact_summary=everything)
    assert client.hook("UserPromptSubmit", prompt="go on").out == ""


def test_the_clients_summary_is_a_boundary_of_the_archive_once(client: ClientFolder):
    records = client.talk(4)
    client.write(records)
    client.hook("PreCompact", trigger="manual")
    client.hook("SessionStart", source="compact")
    client.hook("PostCompact", trigger="manual", compact_summary=SUMMARY)
    client.write(compaction(client, records[-1]["uuid"]), more=True)
    for event in ("UserPromptSubmit", "Stop", "Stop", "PostCompact", "SessionEnd"):
        client.hook(event, compact_summary=SUMMARY)
    assert natives(client) == 1
    assert client.stored() == [*uuids(records), "boundary", "summary"]
    conn = operations.connect(client.archive)
    row = operations.session(conn, KEY)
    [marker] = operations.markers(conn, KEY)
    conn.close()
    assert marker.metadata["strategy"] == "native"
    assert (row and row.compactions) == 1


def test_a_second_compaction_gives_back_what_was_said_before_the_first(client: ClientFolder):
    records = client.talk(8)
    client.write(records[:16])
    client.hook("PreCompact", trigger="auto")
    client.hook("SessionStart", source="compact")
    client.hook("PostCompact", trigger="auto", compact_summary=SUMMARY)
    client.write([*compaction(client, records[15]["uuid"]), *records[16:]], more=True)
    assert RULE in client.hook("PreCompact", trigger="auto").out
    assert RULE in client.hook("SessionStart", source="compact").context


# ---------------------------------------------------------------- the end of a turn, of a session


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_the_end_of_a_turn_picks_up_what_is_new(client: ClientFolder, event: str):
    records = client.talk(2)
    client.write(records)
    assert client.hook(event).out == ""
    assert client.stored() == uuids(records)


def test_it_is_left_to_a_server_that_follows_and_not_to_one_that_has_ended(client: ClientFolder):
    client.write(client.talk(2))
    client.hook("SessionStart", source="startup")
    me = ancestors.name_of(os.getpid())
    for server, expected in ((me, 0), ("999999:1", 8)):
        conn = hook_rows.open_known(str(client.archive))
        assert conn is not None
        hook_rows.follow(conn, me, server, 1)
        conn.close()
        client.hook("Stop")
        assert len(client.stored()) == expected


def test_an_event_that_is_not_ours_is_passed_over(client: ClientFolder):
    client.write(client.talk(2))
    for event in ("PreToolUse", "Notification", "", "../Stop"):
        assert client.hook(event).out == ""
    assert not client.archive.exists()


def test_the_command_line_may_name_the_event(client: ClientFolder):
    client.write(client.talk(2))
    told = client.given("Stop")
    del told["hook_event_name"]
    client.raw(json.dumps(told).encode(), "session-end")
    assert len(client.stored()) == 8


# ---------------------------------------------------------------- what it loads, what it makes


LISTED = "import sys; from mcp_compact.hook import main; main(); print('\\n'.join(sys.modules), file=sys.stderr)"
HEAVY = {"anyio", "argparse", "asyncio", "dataclasses", "inspect", "mcp", "pathlib", "pydantic", "tiktoken"}


@pytest.mark.parametrize(
    ("event", "source"),
    [("SessionStart", "startup"), ("SessionStart", "compact"), ("UserPromptSubmit", ""), ("Stop", "")],
)
def test_what_only_notes_or_gives_what_is_ready_loads_next_to_nothing(client: ClientFolder, event: str, source: str):
    client.write(client.talk(2))
    client.hook("PreCompact", trigger="auto")
    conn = hook_rows.open_known(str(client.archive))
    assert conn is not None
    me = ancestors.name_of(os.getpid())
    hook_rows.follow(conn, me, me, client_now())
    conn.close()
    loaded = set(client.raw(json.dumps(client.given(event, source=source)).encode(), code=LISTED).err.split())
    assert "mcp_compact.hooking.noting" in loaded
    assert not HEAVY & loaded
    assert [name for name in loaded if name.startswith(("mcp_compact.config", "mcp_compact.adapters.sqlite.op"))] == []


def test_what_works_loads_nothing_that_serves(client: ClientFolder):
    client.write(client.talk(2))
    loaded = set(client.raw(json.dumps(client.given("PreCompact", trigger="auto")).encode(), code=LISTED).err.split())
    assert "mcp_compact.hooking.compacting" in loaded
    assert not {"aiosqlite", "anyio", "argparse", "asyncio", "mcp", "pydantic", "tiktoken"} & loaded


BARE = """
import sys
sys.path[:] = [place for place in sys.path if "-packages" not in place]
try:
    import msgspec
except ImportError:
    from mcp_compact.hook import main
    raise SystemExit(main())
"""


def test_every_event_works_on_the_standard_library_alone_however_large_the_transcript(client: ClientFolder):
    large = client.talk(2)
    large[1]["message"]["content"] = [{"type": "text", "text": "a long answer " * 100_000}]
    client.write(large)
    for event in ("SessionStart", "PreCompact", "PostCompact", "SessionStart", "UserPromptSubmit", "Stop"):
        source = "compact" if client.archive.exists() and client.stored() else "startup"
        data = client.given(event, source=source, trigger="auto", compact_summary="Some work was done.", prompt="on")
        said = client.raw(json.dumps(data).encode(), code=BARE)
        assert (said.code, said.err, client.notes()) == (0, "", []), event
    assert len(client.stored()) == len(large)
    assert client.rows("SELECT given <> '' FROM hook_state") == [(1,)]


def test_the_end_of_a_turn_loads_neither_the_extractor_nor_what_a_compaction_needs(client: ClientFolder):
    client.write(client.talk(2))
    client.hook("PreCompact", trigger="auto")
    client.write(client.talk(3)[len(client.talk(2)) :], more=True)
    loaded = set(client.raw(json.dumps(client.given("Stop")).encode(), code=LISTED).err.split())
    assert len(client.stored()) == len(client.talk(3))
    assert "mcp_compact.adapters.sqlite.operations.append" in loaded
    parts = ("compaction.extract", "compaction.plan", "compaction.rules", "compaction.snip", "hooking.compacting")
    own = ("adapters.sqlite.operations.search", "adapters.sqlite.operations.commit", *parts)
    assert [name for name in loaded if name.startswith(tuple(f"mcp_compact.{part}" for part in own))] == []
    assert not {"difflib", "importlib.resources", "zipfile", "tempfile"} & loaded


def test_an_archive_of_an_earlier_release_is_brought_up_to_date_and_kept(client: ClientFolder):
    client.archive.parent.mkdir()
    conn = sqlite3.connect(client.archive, isolation_level=None)
    migrate(conn, schema_versions()[:1])
    conn.execute("INSERT INTO session (namespace, session_id, created_ms, updated_ms) VALUES ('local', 'old', 1, 1)")
    conn.close()
    assert client.hook("SessionStart", source="startup").person == "mcp-compact: recording"
    assert client.rows("SELECT session_id FROM session") == [("old",)]
    assert client.rows("SELECT session_id FROM binding") == [(SESSION,)]
