"""The story of one conversation with Claude Code: each test goes on where the one before it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from mcp_compact.cli.install_program import manifests
from tests.e2e.claude import TOOL, Claude
from tests.e2e.endpoint import Json, Rule, text_of, whole_text

RULE = "Never touch the folder vendor/, not even to format it."
FACT = "calibration offset of gauge GX-4471-B is 0.8317"
SUMMARY = "<analysis>short</analysis><summary>The notes were read. Work goes on.</summary>"
INJECTED = re.compile(r"SessionStart hook additional context: (.*?)\n</system-reminder>", re.DOTALL)
MOST_CHARS = 9_500
"""So much may a hook give at a session's start: of more than 10,000 the client shows a preview."""


@dataclass
class Story:
    """One conversation: a rule, a fact read by a tool, a call of ours, two compactions, a resume."""

    session: str = ""
    connected: str = ""
    tool_results: list[str] = field(default_factory=list)
    summary_request: Json = field(default_factory=dict)
    after: list[Json] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    second: list[Json] = field(default_factory=list)
    resumed: list[Json] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    cleared: list[Json] = field(default_factory=list)
    fresh_session: str = ""


@pytest.fixture(scope="module")
def story(claude: Claude) -> Story:
    """Told once; the tests look at its parts."""
    told = Story()
    notes = claude.project / "notes.txt"
    notes.write_text(f"The {FACT}.\n", encoding="utf-8")
    with claude.conversation() as talk:
        talk.connect()
        told.connected = talk.server_state()
        claude.model.script(
            Rule("detailed summary", text=SUMMARY),
            Rule("read the notes", tool="Read", input={"file_path": str(notes)}, times=1),
            Rule(f"^1\t.*{FACT}", text=f"Noted: the {FACT}, so I use it in gauges.py.", times=1),
            Rule("how full", tool="get_context_status", times=1),
            Rule("search the archive", tool="search_messages", input={"query": "GX-4471-B"}, times=1),
        )
        talk.ask(f"{RULE} Then read the notes.")
        told.tool_results = _results(talk.ask("Now ask how full the context is."))
        told.summary_request = _summary_request(talk.ask("/compact"))
        told.after = talk.ask("Go on.")
        told.found = _results(talk.ask("Please search the archive."))
        told.second = [*talk.ask("/compact"), *talk.ask("Go on again.")]
        told.session = talk.session
    with claude.conversation(resume=told.session) as talk:
        told.resumed = talk.ask("And now?")
        for command in ("/mcp-compact status", "/mcp-compact rules", "/mcp-compact report", "/mcp-compact:handoff"):
            # A command that fails never reaches the model: the client says so itself.
            asked = talk.ask(command)
            told.commands[command[13:]] = whole_text(asked[-1]) if asked else talk.said()
        talk.ask("/clear")
        told.cleared = talk.ask("Go on with it.")
        told.fresh_session = talk.session
    return told


def _results(requests: list[Json]) -> list[str]:
    """Results of tools in the last request of a turn."""
    blocks = [b for m in requests[-1]["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result"]


def _summary_request(requests: list[Json]) -> Json:
    """The request that asks for the client's own summary."""
    (found,) = (body for body in requests if "detailed summary" in whole_text(body))
    return found


def test_the_installed_plugin_is_loaded_and_its_server_connects(claude, story):
    listed = claude.run("plugin", "list").stdout
    assert "mcp-compact@skills-dir" in listed
    assert "loaded" in listed
    assert story.connected == "connected"
    assert any(tool["name"].startswith(TOOL) for body in story.after for tool in body["tools"])


def test_the_shipped_plugin_is_valid_for_the_client_itself(fresh_claude):
    folder = str(manifests("claude-code"))
    for how in ("--strict", "--profile=directory"):
        done = fresh_claude.run("plugin", "validate", how, folder)
        assert done.returncode == 0, done.stdout


def test_the_agent_calls_our_tool_and_gets_its_answer(story):
    assert any('"level"' in result for result in story.tool_results)


def test_the_native_summary_is_asked_to_keep_the_rule(story):
    last = text_of(story.summary_request["messages"][-1]["content"])
    assert "Additional Instructions" in last
    assert RULE in last.partition("Additional Instructions")[2]


def test_the_next_request_carries_what_the_summary_left_out_whole(story):
    (body,) = story.after
    text = whole_text(body)
    assert "Work goes on." in text
    given = _injection(body)
    assert RULE in given, given
    assert FACT in given, given
    assert len(given) <= MOST_CHARS
    assert "persisted-output" not in text


def test_a_search_finds_what_left_the_context(story):
    assert any("0.8317" in result for result in story.found)


def test_a_second_compaction_and_a_resume_still_carry_the_rule(story):
    assert RULE in whole_text(story.second[-1])
    assert RULE in whole_text(story.resumed[-1])


def test_the_commands_of_the_plugin_answer_for_this_session(story):
    assert set(story.commands) == {"status", "rules", "report", "handoff"}
    assert f"Session {story.session}" in story.commands["status"], story.commands["status"][-2000:]
    assert f"Rules of session {story.session}" in story.commands["rules"], story.commands["rules"][-2000:]
    assert RULE.rstrip(".") in story.commands["rules"]
    assert "was never compacted" not in story.commands["report"]
    assert RULE in story.commands["report"], story.commands["report"][-2000:]


def test_after_a_clear_the_fresh_session_starts_from_the_brief(story):
    assert story.fresh_session != story.session
    text = whole_text(story.cleared[-1])
    assert FACT not in text.partition("SessionStart hook additional context")[0]
    assert RULE in text
    assert f'session_id="{story.session}"' in text


def test_the_archive_holds_every_message_once(claude, story):
    assert claude.holds_all(story.session)
    kept = claude.archived(story.session)
    assert len(kept) == len(set(kept))


def test_nothing_but_the_loopback_was_asked_for(claude, story):
    assert story.session
    assert claude.model.outward == []


def _injection(body: Json) -> str:
    """What our hook gave at the session's start, without the client's own words around it."""
    found = INJECTED.findall(whole_text(body))
    assert len(found) == 1
    return str(found[0])
