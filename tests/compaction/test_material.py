"""What a writer of summaries is given."""

from __future__ import annotations

from mcp_compact.compaction.material import material_text, render
from mcp_compact.messages.masking import MASK
from mcp_compact.testing import Talk

KEY = "ghp_" + "a1B2" * 9
"""What a token looks like; it opens nothing."""


def test_keys_reach_no_writer_whatever_they_stand_in():
    talk = Talk()
    talk.user(f"deploy with {KEY}")
    talk.assistant(f"I use {KEY}")
    talk.add("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"login {KEY}"}}])
    talk.results("t1", text=f"the key {KEY} is good")
    text = material_text([f"the key was {KEY}"], render(talk.records), 0)
    assert KEY not in text
    assert text.count(MASK) == 5
    assert "deploy with" in text
