from __future__ import annotations

import pytest

from mcp_compact.compaction.answers import Refused, SummaryAnswer, usable_text

LONG = "The parser is ported to the new grammar, and rule_7 still fails on nested lists of its third kind. " * 5
NOTES = "The parser is ported; rule_7 still fails."


@pytest.mark.parametrize(
    "ending", ["", "end_turn", "endTurn", "END_TURN", "stop", "STOP", "stop_sequence", "stopSequence", "completed"]
)
def test_an_answer_that_came_to_its_end_is_taken(ending: str) -> None:
    assert usable_text(SummaryAnswer(NOTES, ending), "") == NOTES


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("max_tokens", "cut_off"),
        ("maxTokens", "cut_off"),
        ("MAX_TOKENS", "cut_off"),
        ("length", "cut_off"),
        ("incomplete", "cut_off"),
        ("model_context_window_exceeded", "cut_off"),
        ("tool_use", "tool_call"),
        ("toolUse", "tool_call"),
        ("tool_calls", "tool_call"),
        ("refusal", "refused"),
        ("SAFETY", "refused"),
        ("anything else", "refused"),
    ],
)
def test_any_other_ending_is_refused_however_its_words_are_joined(ending: str, reason: str) -> None:
    refused = usable_text(SummaryAnswer(NOTES, ending), "")
    assert isinstance(refused, Refused)
    assert refused.reason == reason


def test_blocks_that_hold_no_text_are_no_summary() -> None:
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    thinking = {"type": "thinking", "thinking": NOTES, "signature": "s"}
    reasons = [usable_text(SummaryAnswer([block]), "") for block in (picture, thinking)]
    assert [refused.reason for refused in reasons if isinstance(refused, Refused)] == ["blank", "thinking_only"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}', "tool_call"),
        (
            '[{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "a", "name": "B", "input": {}}]',
            "tool_call",
        ),
        ('[{"type": "thinking", "thinking": "hm"}]', "thinking_only"),
        ("<thinking>only this</thinking>", "thinking_only"),
        ("  <think>never closed", "thinking_only"),
    ],
)
def test_blocks_and_thinking_handed_in_as_text_are_what_they_are(text: str, reason: str) -> None:
    refused = usable_text(SummaryAnswer(text), "prompt")
    assert isinstance(refused, Refused)
    assert refused.reason == reason


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("<thinking>hm</thinking>\n# Work\nThe parser.", "# Work\nThe parser."),
        ('[{"type": "text", "text": "# Work"}]', "# Work"),
        ('{"files": ["a.py"]}', '{"files": ["a.py"]}'),
        ("# Work\nWe strip `<thinking>` tags.", "# Work\nWe strip `<thinking>` tags."),
        ("[1] the parser", "[1] the parser"),
        ("The router reads `<tool_use>` tags. " + LONG, "The router reads `<tool_use>` tags. " + LONG.strip()),
        ("# Work\nI'm sorry to say rule_7 fails.", "# Work\nI'm sorry to say rule_7 fails."),
        (
            "I can't find the cause of rule_7 yet. " + LONG * 3,
            "I can't find the cause of rule_7 yet. " + (LONG * 3).strip(),
        ),
        ('{"name": "parser", "state": "ported"}', '{"name": "parser", "state": "ported"}'),
    ],
)
def test_what_is_written_beside_them_is_the_summary(text: str, summary: str) -> None:
    assert usable_text(SummaryAnswer(text), "prompt") == summary


@pytest.mark.parametrize(
    "text",
    [
        "<tool_use>\n<name>Bash</name>\n<input>ls -la /src</input>\n</tool_use>",
        "I look at the files first.\n<function_calls><invoke name='Read'><parameter>" + LONG + "</parameter></invoke>",
        '<tool_call>{"name": "Read", "arguments": {"path": "src/parser.py"}}</tool_call>',
        '{"name": "Read", "arguments": {"path": "src/parser.py"}}',
        '```json\n[{"name": "Read", "input": {"path": "src/parser.py"}}]\n```',
        '[TOOL_CALLS][{"name": "Read", "arguments": {}}]',
        "<|tool_call|>Read(path='src/parser.py')",
    ],
)
def test_a_call_that_is_written_as_text_is_no_summary(text: str) -> None:
    assert refusal(text) == "tool_call"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with summarizing this conversation.",
        "I’m afraid I cannot assist with that request. If there is anything else, let me know!",
        "Thank you for sharing this. Unfortunately, I am not able to summarize it, as it holds private data.",
        "I apologize, but I don't see any conversation here.",
        "As an AI, I have no access to earlier messages.",
        "There is no conversation to summarize yet.",
        "Could you please provide the transcript that you would like me to summarize?",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Je suis désolé, mais je ne peux pas faire cela.",
        "抱歉，我无法总结这段对话，因为其中包含敏感信息，请您提供其他的内容给我。",
    ],
)
def test_a_polite_refusal_is_no_summary(text: str) -> None:
    assert refusal(text) == "refused"


@pytest.mark.parametrize(
    "text",
    ["Done.", "OK, I have summarized the whole conversation for you.", "The context has been compacted."],
)
def test_next_to_nothing_is_no_summary(text: str) -> None:
    assert refusal(text) == "too_short"


def refusal(text: str) -> str:
    refused = usable_text(SummaryAnswer(text), "prompt")
    return refused.reason if isinstance(refused, Refused) else f"taken: {refused}"


def test_keys_in_a_summary_are_masked() -> None:
    key = "ghp_" + "a1B2" * 9
    assert usable_text(SummaryAnswer(f"{NOTES} Push with {key}."), "") == f"{NOTES} Push with [masked]."
