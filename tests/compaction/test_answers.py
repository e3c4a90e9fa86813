from __future__ import annotations

import pytest

from mcp_compact.compaction.answers import Refused, SummaryAnswer, usable_text

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
    ],
)
def test_what_is_written_beside_them_is_the_summary(text: str, summary: str) -> None:
    assert usable_text(SummaryAnswer(text), "prompt") == summary


def test_keys_in_a_summary_are_masked() -> None:
    key = "ghp_" + "a1B2" * 9
    assert usable_text(SummaryAnswer(f"{NOTES} Push with {key}."), "") == f"{NOTES} Push with [masked]."
