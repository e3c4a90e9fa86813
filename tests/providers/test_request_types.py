from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("anthropic", reason="the extra llm is not installed")
pytest.importorskip("openai", reason="the extra llm is not installed")
pytest.importorskip("google.genai", reason="the extra llm is not installed")

from pydantic import ValidationError

from mcp_compact.transcripts.validity.providers import PROVIDERS, findings, repaired
from tests.conversations import talks
from tests.providers.request_types import check
from tests.transcripts.exporting import all_sent, conversations, dialogue, files
from tests.transcripts.foreign import WRITERS, turns
from tests.transcripts.validity.lists import LISTS


@pytest.mark.parametrize(
    ("provider", "wrong"),
    [
        ("anthropic", {"role": "user", "content": [{"type": "tool_result"}]}),
        ("openai-chat", {"role": "tool", "content": "x"}),
        ("openai-responses", {"type": "function_call", "name": "x"}),
        ("gemini", {"role": "user", "parts": [{"text": 7}]}),
    ],
)
def test_a_message_of_another_form_is_refused_by_the_library_s_types(provider: str, wrong: dict[str, Any]):
    with pytest.raises(ValidationError):
        check(provider, [wrong])


def test_every_transcript_goes_out_in_the_types_of_each_provider(shared: Path):
    seen = 0
    for file in files(shared):
        for data in conversations(file):
            found = dialogue(data)
            if found:
                for provider, messages in all_sent(found).items():
                    check(provider, messages)
                seen += 1
    assert seen > 50


@given(talks(), st.sampled_from([1, 200, None]))
@settings(max_examples=25)
def test_any_conversation_goes_out_in_the_types_of_each_provider(talk: Any, target: int | None):
    for provider, messages in all_sent(list(talk.records), target).items():
        check(provider, messages)


@pytest.mark.parametrize("name", WRITERS)
@given(said=turns)
@settings(max_examples=5)
def test_any_session_of_another_harness_goes_out_in_the_types_of_each_provider(name: str, said: Any):
    for provider, messages in all_sent(dialogue(WRITERS[name](said), name)).items():
        check(provider, messages)


@pytest.mark.parametrize("name", PROVIDERS)
@given(data=st.data())
@settings(max_examples=40)
def test_a_repaired_list_is_of_the_library_s_types(name: str, data: st.DataObject):
    done = repaired(name, data.draw(LISTS[name]))
    # What is not known may be newer than the library; what a search found has forms of its own.
    assume(not any(finding.rule.endswith("/kind") for finding in findings(name, done.messages)))
    assume("web_search_tool_result" not in json.dumps(done.messages))
    # The API takes an answer in parts without an id; the library has a type for one with an id alone.
    assume(name != "openai-responses" or not any(map(is_answer_in_parts, done.messages)))
    check(name, done.messages)


def is_answer_in_parts(item: Any) -> bool:
    return item.get("role") == "assistant" and isinstance(item["content"], list) and "id" not in item
