"""What goes wrong around Claude Code stays our own trouble: the client works on, and the archive makes up for it."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.e2e.claude import Claude
from tests.e2e.endpoint import Rule, text_of, whole_text
from tests.e2e.long_session import long_session
from tests.e2e.test_claude_code import INJECTED, MOST_CHARS, RULE, SUMMARY

KILLED_AFTER_S = "0.05"
SUMMARISE = Rule("detailed summary", text=SUMMARY)


@pytest.fixture
def own(claude: Claude, tmp_path) -> Claude:
    """The installed client with a project and an archive of this test's own."""
    (tmp_path / "project").mkdir()
    claude.model.script(SUMMARISE)
    return replace(claude, project=tmp_path / "project", env={"MCP_COMPACT_DB": str(tmp_path / "own" / "archive.db")})


def test_a_broken_archive_harms_nothing_and_is_said_once(own):
    own.database.parent.mkdir()
    own.database.write_bytes(b"this is no database" * 1000)
    with own.conversation() as talk:
        talk.ask(RULE)
        assert talk.said() == "done"
        talk.ask("/compact")
        (body,) = talk.ask("Go on.")
    assert "Work goes on." in whole_text(body)
    assert not INJECTED.search(whole_text(body))
    said = [event for event in talk.events if "OFF, run mcp-compact doctor" in json.dumps(event)]
    assert said
    assert own.database.read_bytes() == b"this is no database" * 1000


def test_two_clients_at_once_keep_to_their_own_sessions(own):
    with ExitStack() as stack:
        talks = [stack.enter_context(own.conversation()) for _ in range(2)]
        for talk in talks:
            talk.connect()
        own.model.script(SUMMARISE, Rule("how full", tool="get_context_status"))
        for at, talk in enumerate(talks):
            talk.ask(f"Rule {at}: never write the word number{at}.")
        for at, talk in enumerate(talks):
            own.model.script(Rule("how full", tool="get_context_status", times=1), SUMMARISE)
            status = text_of(talk.ask("Say how full it is.")[-1]["messages"][-1]["content"])
            assert f'"session_id":"{talk.session}"' in status
            talk.ask("/compact")
            given = INJECTED.findall(whole_text(talk.ask("Go on.")[-1]))
            assert f"number{at}" in given[0]
            assert f"number{1 - at}" not in given[0]
    for talk in talks:
        assert own.holds_all(talk.session)
        kept = own.archived(talk.session)
        assert len(kept) == len(set(kept))


def test_a_hook_that_is_killed_in_the_middle_is_made_up_for_by_the_next(own, tmp_path):
    hooks = own.folder / "skills/mcp-compact/hooks/hooks.json"
    whole = hooks.read_text(encoding="utf-8")
    killer = tmp_path / "killer.py"
    killer.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sh', '-c', 'exec ' + sys.argv[1]], stdin=sys.stdin)\n"
        f"time.sleep({KILLED_AFTER_S})\n"
        "child.kill()\n"
        "raise SystemExit(-child.wait() + 128)\n"
    )
    data = json.loads(whole)
    for event in ("PreCompact", "Stop"):
        (hook,) = data["hooks"][event][0]["hooks"]
        hook["command"] = shlex.join([sys.executable, str(killer), hook["command"].removeprefix("exec ")])
    try:
        hooks.write_text(json.dumps(data), encoding="utf-8")
        with own.conversation() as talk:
            talk.ask(RULE)
            talk.ask("/compact")
            (body,) = talk.ask("Go on.")
            assert "Work goes on." in whole_text(body)
    finally:
        hooks.write_text(whole, encoding="utf-8")
    with own.conversation(resume=talk.session) as again:
        again.ask("More.")
        again.ask("/compact")
        given = INJECTED.findall(whole_text(again.ask("Go on.")[-1]))
    assert any(RULE in text for text in given)
    assert own.holds_all(talk.session)
    kept = own.archived(talk.session)
    assert len(kept) == len(set(kept))


def test_a_transcript_of_four_megabytes_is_compacted_with_its_first_rule(own):
    session = long_session(own, RULE, megabytes=4)
    with own.conversation(resume=session) as talk:
        talk.ask("Where were we?")
        (summary, *_) = [body for body in talk.ask("/compact") if "detailed summary" in whole_text(body)]
        given = INJECTED.findall(whole_text(talk.ask("Go on.")[-1]))
    assert RULE in text_of(summary["messages"][-1]["content"])
    assert RULE in given[-1]
    assert len(given[-1]) <= MOST_CHARS
    assert own.holds_all(session)
    kept = own.archived(session)
    assert len(kept) == len(set(kept))
