from __future__ import annotations

import json
import re
from typing import Any

import anyio
import pytest

from mcp_compact.cli.archive import matching, short_ids
from mcp_compact.cli.show import session_lines
from mcp_compact.cli.terminal import Terminal
from mcp_compact.cli.text import tokens
from mcp_compact.config import load_settings
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import SessionLine
from mcp_compact.wiring import open_service

SESSION = "5e551011-0000-4000-8000-000000000001"
NOW_MS = 1_767_225_600_000


@pytest.fixture
def imported(command, transcript, monkeypatch):
    """The small session is in the archive, and the command line is run in its folder."""
    done = command("import", str(transcript))
    assert done.code == 0, done.err
    monkeypatch.chdir(transcript.parent)
    return done


def compacted():
    """Compact the session as a server would."""

    async def work():
        async with open_service(load_settings()) as service:
            return await service.compact(SESSION, CompactCall("manual", target_tokens=8000, force=True))

    return anyio.run(work)


def line(session_id, parent="", **fields):
    facts: dict[str, Any] = {
        "title": "Tides", "model": "m", "owner": "client", "cwd": "/home/me/tides", "updated": "2026-01-01T00:00:00Z",
        "messages": 12, "tokens": 12_345, "level": "ok", "compactions": 0,
    }  # fmt: skip
    return SessionLine(session_id=session_id, parent_session_id=parent, **(facts | fields))


def test_an_import_says_what_came_and_what_to_do_next(imported):
    assert "Imported 62 messages (claude-code): 62 records stored." in imported.out
    assert f"Next: mcp-compact status {SESSION}" in imported.out


def test_a_second_import_stores_nothing(command, imported, transcript):
    again = command("import", str(transcript), "--json").json
    assert (again["stored"], again["session_id"]) == (0, SESSION)


def test_status_takes_the_last_session_of_the_folder(command, imported):
    done = command("status")
    assert done.code == 0
    assert SESSION in done.out
    for words in ("Read results", "your words", "assistant", "warning at", "never"):
        assert words in done.out
    shown = command("status", "--json").json
    assert shown["status"]["session_id"] == SESSION
    assert {item["kind"] for item in shown["picture"]["slices"]} >= {"Read results", "your words"}


def test_the_parts_of_a_status_add_up_to_the_total_that_it_tells(command, tmp_path):
    """Each part is rounded up by itself: five of a token or two would be more than the whole."""
    talk: list[dict[str, Any]] = [
        {"role": role, "content": f"{role} {number}"} for number in range(2) for role in ("user", "assistant")
    ]
    talk[1]["content"] = [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]
    talk[2]["content"] = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in talk))
    done = command("status", command("import", str(path), "--json").json["session_id"])
    total = re.search(r"The live context: .* (\d+) tokens", done.out)
    assert total
    assert sum(map(int, re.findall(r"^  \S [a-zA-Z ]+ +(\d+) +\d+% ", done.out, re.MULTILINE))) == int(total[1])


def test_status_elsewhere_wants_a_name(command, imported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command("status")
    assert done.code == 2
    assert "sessions --all" in done.err
    assert command("status", SESSION[:6]).code == 0


def test_sessions_lists_this_folders_or_all(command, imported, tmp_path, monkeypatch):
    assert SESSION[:8] in command("sessions").out
    monkeypatch.chdir(tmp_path)
    assert "--all" in command("sessions").out
    assert "project: " in command("sessions", "--all").out
    assert command("sessions", "--json").json["sessions"] == []
    assert command("sessions", "--all", "--json").json["sessions"][0]["session_id"] == SESSION
    monkeypatch.setenv("MCP_COMPACT_CONTEXT_WINDOW", "many")
    assert "note: MCP_COMPACT_CONTEXT_WINDOW" in command("sessions", "--all").err
    assert len(command("sessions", "--all", "--json").json["warnings"]) == 1


def test_search_finds_what_was_said_and_takes_it_literally(command, imported):
    done = command("search", "gauge_reading_7_12")
    assert done.code == 0
    assert "gauge_reading_7_12" in done.out
    assert "in the live context" in done.out
    assert command("search", "gauge_reading_7_12", "--json").json["hits"][0]["session_id"] == SESSION
    assert "Nothing holds" in command("search", "' OR 1=1 --").out


def test_memory_is_empty_before_and_there_after_a_compaction(command, imported):
    assert "no memory yet" in command("memory").out
    assert compacted().status in ("compacted", "prepared")
    assert "Never touch the folder vendor/" in command("memory").out
    assert command("memory", "--json").json["version"] >= 1
    assert "in the archive only" in command("search", "gauge_reading_1_12").out
    assert "compacted once" in command("status").out


def test_undo_brings_the_context_back(command, imported):
    before = command("status", "--json").json["status"]["live_hash"]
    nothing = command("undo", SESSION)
    assert (nothing.code, "no compaction to undo" in nothing.out) == (1, True)
    assert command("undo", SESSION, "--json").code == 1
    compacted()
    assert command("status", "--json").json["status"]["live_hash"] != before
    assert "Undone" in command("undo", SESSION[:8]).out
    assert command("status", "--json").json["status"]["live_hash"] == before


def test_the_real_program_keeps_stdout_and_stderr_apart(program, transcript):
    done = program("import", str(transcript), "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["session_id"] == SESSION


def test_ids_are_shortened_until_they_differ():
    lines = [
        line("aaaaaaaa-1111"),
        line("aaaaaaaa-1122"),
        line("bbbbbbbb-1"),
        line("aaaaaaaa-1111/agent7", "aaaaaaaa-1111"),
    ]
    assert short_ids(lines) == {
        "aaaaaaaa-1111": "aaaaaaaa-111",
        "aaaaaaaa-1122": "aaaaaaaa-112",
        "bbbbbbbb-1": "bbbbbbbb",
        "aaaaaaaa-1111/agent7": "agent7",
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("aa", ["aa1", "aa2"]),
        ("bb", ["bb1"]),
        ("bb1/c", ["bb1/c1"]),
        ("c1", ["bb1/c1"]),
        ("", ["aa1", "aa2", "bb1", "bb1/c1"]),
        ("zz", []),
    ],
)
def test_a_beginning_means_the_session_rather_than_its_sub_agents(name, found):
    assert sorted(matching(name, ["aa1", "aa2", "bb1", "bb1/c1"])) == found


def test_a_list_of_sessions_fits_and_cannot_steer_the_terminal():
    lines = [line("aaaaaaaa-1", title="可以提交了" * 30), line("bbbbbbbb-1", title="\x1b[2Jx" * 40)]
    shown = session_lines(lines, NOW_MS + 3_600_000, Terminal(), folders=True)
    assert "1 h ago" in shown[1]
    assert "12.3k" in shown[1]
    assert not any("\x1b" in text for text in shown)


def test_a_fork_stands_for_itself_and_a_sub_agents_session_under_its_parent():
    lines = [line("parent-1"), line("parent-1/agent-1", "parent-1"), line("fork-1", "parent-1", is_fork=True)]
    rows = session_lines(lines, NOW_MS + 3_600_000, Terminal(), folders=False)[1:]
    assert [row.startswith("  ") for row in rows] == [False, True, False]


def test_a_child_is_indented_below_its_own_parent_alone():
    lines = [line("other-1"), line("gone-1/agent-1", "gone-1"), line("parent-1"), line("parent-1/agent-2", "parent-1")]
    lines += [
        line("parent-1/agent-2/agent-3", "parent-1/agent-2"),
        line("parent-2"),
        line("parent-1/agent-4", "parent-1"),
    ]
    rows = session_lines(lines, NOW_MS + 3_600_000, Terminal(), folders=False)[1:]
    assert [row.startswith("  ") for row in rows] == [False, False, False, True, True, False, False]


@pytest.mark.parametrize("columns", [80, 120])
def test_a_long_id_leaves_the_titles_their_room_and_can_be_named_as_it_is_shown(columns):
    long = [f"project-{'x' * 90}-{number:02d}-end" for number in range(3)]
    lines = [
        line(own, title="The tides of the north coast") for own in (*long, "aaaaaaaa-1", long[0] + "/agent-" + "y" * 99)
    ]
    rows = session_lines(lines, NOW_MS + 3_600_000, Terminal(columns=columns), folders=False)
    assert all("The tides" in row for row in rows[1:])
    assert max(map(len, rows)) <= columns
    for own, row in zip(long, rows[1:], strict=False):
        assert matching(row.split()[0], [shown.session_id for shown in lines]) == [own]


def native(command, transcript):
    """The session again, with a compaction of the client's own, and an answer after it that the provider counted."""
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    last = lines[-1]
    own = {key: last[key] for key in ("sessionId", "cwd") if key in last}
    at = {"timestamp": "2026-01-02T00:00:00.000Z"}
    usage = {"input_tokens": 90_000, "output_tokens": 10}
    boundary = {**own, **at, "type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None,
                "content": "Conversation compacted", "compactMetadata": {"trigger": "auto", "preTokens": 90_000}}  # fmt: skip
    summary = {**own, **at, "type": "user", "uuid": "s1", "parentUuid": "b1", "isCompactSummary": True,
               "message": {"role": "user", "content": "This session is being continued. Tides."}}  # fmt: skip
    said = {"id": "m1", "role": "assistant", "model": "claude-opus-4-6", "usage": usage,
            "content": [{"type": "text", "text": "Going on."}]}  # fmt: skip
    answer = {**own, **at, "type": "assistant", "uuid": "a1", "parentUuid": "s1", "message": said}
    transcript.write_text("".join(json.dumps(item) + "\n" for item in (*lines, boundary, summary, answer)))
    assert command("import", str(transcript)).code == 0


def test_a_status_says_where_the_archive_and_the_client_hold_different_contexts(command, imported, transcript):
    native(command, transcript)
    alike = command("status", SESSION)
    assert "the client itself sends" not in alike.out
    undone = command("undo", SESSION)
    assert undone.code == 0
    assert "Only the archive's view changed" in undone.out
    assert f"mcp-compact resume {SESSION}" in undone.out
    apart = command("status", SESSION)
    found = command("status", SESSION, "--json").json["status"]
    assert found["message_tokens"] + found["overhead_tokens"] > found["tokens"]
    assert f"{tokens(found['tokens'])} is what the client itself sends" in apart.out
    assert f"{tokens(found['message_tokens'] + found['overhead_tokens'])} in all" in apart.out
