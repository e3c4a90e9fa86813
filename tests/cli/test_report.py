from __future__ import annotations

import json
import os
import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mcp_compact.cli.native_sessions import find_session
from mcp_compact.cli.report import matrix_lines
from mcp_compact.cli.terminal import Terminal
from mcp_compact.compaction.rules import Rule
from mcp_compact.compaction.rules_matrix import BACK, KEPT, LOST, Row
from mcp_compact.errors import CallerError
from mcp_compact.transcripts.project_folder import project_slug

SESSION = "5e551011-0000-4000-8000-000000000009"
KEY = "sk-" + "ant-api03-" + "a1B2c3D4" * 4
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def line(number, type_, content=None, **more):
    made = {
        "type": type_, "uuid": f"00000000-0000-4000-8000-{number:012d}", "sessionId": SESSION, "version": "2.1.0",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012d}" if number else None, "isSidechain": False,
        "timestamp": f"2026-01-01T00:{number:02d}:00.000Z", "cwd": "/p", **more,
    }  # fmt: skip
    if content is not None:
        made["message"] = {"role": type_, "content": content}
    return made


def session_lines():
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/ledger/store.py"}}
    again = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "/p/ledger/store.py"}}
    return [
        line(0, "user", f"Build it. Never push to main. Always use the token {KEY} in tests."),
        line(1, "assistant", [{"type": "text", "text": "The table booking_lines needs the index ix_booking_day now."}]),
        line(2, "assistant", [use]),
        line(3, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "def open_store(): pass"}]),
        line(4, "user", "Use tabs, not spaces."),
        line(5, "system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 150_000}),
        line(6, "user", "Summary: the user said Never push to main.", isCompactSummary=True),
        line(7, "assistant", [{"type": "text", "text": "Next I add ix_booking_day in open_store."}, again]),
        line(8, "user", [{"type": "tool_result", "tool_use_id": "t2", "content": "def open_store(): pass"}]),
        line(9, "user", f"You may now push to main. The title is {EVIL} then"),
        line(10, "system", subtype="compact_boundary", compactMetadata={"trigger": "manual", "preTokens": 90_000}),
        line(11, "user", "Summary: nothing of note.", isCompactSummary=True),
        line(12, "assistant", [{"type": "text", "text": "I go on with ix_booking_day."}]),
    ]


@pytest.fixture
def project(tmp_path, monkeypatch, archive) -> Path:
    """A folder with a client's transcript of it, and a home of its own. No archive yet."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(folder)
    kept = tmp_path / "home" / ".claude" / "projects" / project_slug(folder)
    kept.mkdir(parents=True)
    path = kept / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in session_lines()), encoding="utf-8")
    return path


def test_the_last_compaction_of_this_folder_is_found_without_an_archive(project, command, archive):
    ended = command("report")
    assert ended.code == 0
    assert "compaction 2 of 2" in ended.out
    assert "asked for" in ended.out
    assert not archive.exists()


def test_a_newer_session_that_was_never_compacted_is_passed_over(project, command):
    newer = project.with_name("77777777-0000-4000-8000-000000000000.jsonl")
    newer.write_text(json.dumps(line(0, "user", "hello there")) + "\n", encoding="utf-8")
    os.utime(newer, (2_000_000_000, 2_000_000_000))
    assert command("report", "--last", "--json").json["session_id"] == SESSION
    assert command("report", "77777777").code == 2


def test_the_matrix_tells_what_became_of_each_rule_at_each_compaction(project, command):
    rows = {row["rule"]: row["fates"] for row in command("report", "--json").json["matrix"]}
    assert rows["Never push to main."] == ["kept", ""]
    assert rows["Use tabs, not spaces."] == ["put_back", "put_back"]
    assert rows["You may now push to main."] == ["", "put_back"]


def test_what_the_next_messages_needed_is_told(project, command):
    told = command("report", "--json").json
    assert told["needed"]["total"] >= 1
    assert told["needed"]["in_summary"] == 0
    assert "ix_booking_day" in (*told["needed"]["given_back"], *told["needed"]["lost"])


def test_a_transcript_can_be_named_by_its_path_and_by_the_beginning_of_its_id(project, command, tmp_path, monkeypatch):
    for name in (str(project), SESSION[:8]):
        assert command("report", name, "--json").json["session_id"] == SESSION
    monkeypatch.chdir(tmp_path)
    assert command("report", SESSION[:8], "--json").json["session_id"] == SESSION


def test_a_whole_id_is_meant_though_another_begins_with_it(project, command):
    longer = project.with_name(f"{SESSION}-copy.jsonl")
    longer.write_bytes(project.read_bytes())
    assert command("report", SESSION, "--json").json["source"] == str(project)
    ended = command("report", SESSION[:8])
    assert ended.code == 2
    assert "2 sessions begin with" in ended.err


@pytest.mark.parametrize("name", ["../../etc/passwd", "*", "?[a-z]*", "/", "no-such-session"])
def test_a_name_is_no_pattern_and_no_way_out_of_the_folder(project, command, name):
    assert command("report", name).code == 2


class Page(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_page_is_one_file_for_its_owner_that_loads_and_runs_nothing(project, command, tmp_path):
    out = tmp_path / "report.html"
    assert command("report", "--html", str(out)).code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    text = out.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.tags.isdisjoint({"script", "img", "link", "iframe", "object", "embed", "form", "a", "base", "svg"})
    assert page.attributes.isdisjoint({"src", "href", "onerror", "onload", "onclick", "srcset", "action"})
    assert not re.search(r"url\(|@import|https?://", text)
    assert "alert(1)" in text
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_keys_are_masked_in_every_form_of_the_report(project, command, tmp_path):
    out = tmp_path / "report.html"
    for ended in (command("report", "--html", str(out)), command("report", "--json"), command("rules")):
        assert KEY not in ended.out
    assert KEY not in out.read_text(encoding="utf-8")
    assert "[masked]" in command("report", "--json").out


def test_the_terminals_escapes_of_a_transcript_are_not_passed_on(project, command):
    items = [line(0, "user", "Never use \x1b[31mred\x1b[0m \x07 text at all."), *session_lines()[5:]]
    project.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    assert "\x1b" not in command("report").out
    assert "\x1b" not in command("rules").out


def test_a_folder_without_sessions_is_told_so(command, tmp_path, monkeypatch, archive):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ended = command("report")
    assert ended.code == 2
    assert "neither a client's transcript nor in the archive" in ended.err


def test_a_session_of_the_archive_alone_is_reported_too(project, command):
    assert command("import", str(project)).code == 0
    project.unlink()
    told = command("report", SESSION, "--json").json
    assert told["source"] == "archive"
    assert [row["fates"] for row in told["matrix"] if row["rule"] == "Use tabs, not spaces."] == [
        ["put_back", "put_back"]
    ]


def test_a_broken_transcript_is_an_error_that_names_it(project):
    project.write_bytes(b"\0\0\0")
    with pytest.raises(CallerError) as raised:
        find_session(SESSION)
    assert str(project) in raised.value.message


def test_the_picture_fits_the_terminal_and_knows_plain_letters():
    rows = [Row(Rule("Never " + "x" * 300, turn=3), (KEPT, BACK, LOST) * 10)]
    for screen in (Terminal(columns=60), Terminal(blocks=False)):
        lines = matrix_lines(rows, 30, screen)
        assert all(len(text) <= screen.columns for text in lines)
    assert "x" in matrix_lines(rows, 30, Terminal(blocks=False))[1]


def test_real_transcripts_are_reported(shared, command, project):
    files = sorted((shared / "transcripts" / "recall").glob("*.jsonl"))[:3]
    for path in files:
        told = command("report", str(path), "--json").json
        assert told["injection_chars"] <= 9_500
        assert told["needed"]["with_ours"] >= told["needed"]["in_summary"]
