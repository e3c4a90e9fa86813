"""Laws of validation and repair, for any list: what a repair gives is accepted, is little changed, and stays as it is."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.transcripts.validity.providers import PROVIDERS, findings, repaired
from mcp_compact.transcripts.validity.rules import refused
from tests.transcripts.validity.lists import LISTS

NAMES = tuple(PROVIDERS)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=80)
def test_a_repair_leaves_nothing_that_would_be_refused_and_a_second_one_changes_nothing(name: str, data: st.DataObject):
    given_list = data.draw(LISTS[name])
    before = copy.deepcopy(given_list)
    done = repaired(name, given_list)
    assert given_list == before
    assert [f for f in refused(findings(name, done.messages)) if not f.rule.endswith("/not-empty")] == []
    again = repaired(name, done.messages)
    assert again.messages == done.messages
    assert again.changes == ()
    assert bool(done.changes) == (done.messages != given_list)
    json.dumps(done.messages)


def _without_call(message: object) -> object:
    """A result keeps what it says where its call was renamed."""
    if not isinstance(message, dict):
        return message
    return {key: value for key, value in message.items() if key not in ("call_id", "tool_call_id")}


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=30)
def test_messages_without_a_finding_are_kept_as_they_are(name: str, data: st.DataObject):
    given_list = data.draw(LISTS[name])
    if refused(findings(name, given_list)):
        done = repaired(name, given_list)
        assert {change.index for change in done.changes} <= {-1, *range(len(given_list))}
        assert all(change.path and change.text for change in done.changes)
        changed = {change.index for change in done.changes}
        kept = [message for index, message in enumerate(given_list) if index not in changed]
        if name.startswith("openai"):
            # Results of the others may stand in the same message as what else the user said.
            given_out = [_without_call(message) for message in done.messages]
            assert all(_without_call(message) in given_out for message in kept)
    else:
        assert repaired(name, given_list).messages == given_list


thought = st.builds(
    lambda text, signature: {"type": "thinking", "thinking": text, "signature": signature},
    st.sampled_from(("", "so")),
    st.sampled_from(("", "signed")),
)
said = st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(("", " ", "done ")))


@given(st.lists(thought | said, min_size=1, max_size=16))
def test_an_answer_of_thoughts_is_mended_whatever_is_wrong_with_several_of_them(blocks: list[dict[str, str]]):
    done = repaired("anthropic", [{"role": "user", "content": "go"}, {"role": "assistant", "content": blocks}])
    assert refused(findings("anthropic", done.messages)) == []
    kept = [block for message in done.messages[1:] for block in message["content"]]
    assert [block for block in kept if block["type"] == "thinking"] == [
        block
        for at, block in enumerate(blocks)
        if block["type"] == "thinking" and block["signature"] and _leads_on(blocks[at:])
    ]


def _leads_on(blocks: list[dict[str, str]]) -> bool:
    """Is there something said behind a thought?"""
    return any(block["type"] == "text" and block["text"].strip() for block in blocks)
