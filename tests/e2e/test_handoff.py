"""A brief that was left for the conversation after `/clear`, with the real client and its hooks."""

from __future__ import annotations

from tests.e2e.endpoint import Rule, whole_text

RULE = "Always answer in short sentences."


def test_after_a_clear_the_brief_is_given_once_and_only_if_asked_for(claude):
    claude.model.script(Rule("", text="done"))
    with claude.conversation() as talk:
        talk.ask(f"Please look around. {RULE}")
        session = talk.session
        talk.ask("/clear")
        bare = talk.ask("who are you")
        assert RULE not in whole_text(bare[-1])
        done = claude.ours("handoff", session, "--after-clear")
        assert done.returncode == 0, done.stderr
        talk.ask("/clear")
        (given,) = [body for body in talk.ask("and now?") if body.get("tools")]
        talk.ask("/clear")
        (again,) = [body for body in talk.ask("and then?") if body.get("tools")]
    assert RULE in whole_text(given)
    assert f'session_id="{session}"' in whole_text(given)
    assert RULE not in whole_text(again)
