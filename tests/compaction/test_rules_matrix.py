from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.rules import Rule
from mcp_compact.compaction.rules_matrix import BACK, FATES, KEPT, LOST, NOT_YET, REWORDED, Column, fates, matrix


def fate_of(rule: str, summary: str, given: str = "") -> str:
    [(_, fate)] = fates(Column((Rule(rule),), summary, given))
    return fate


def test_word_for_word_is_kept_whatever_its_case_and_white_space():
    assert fate_of("Never push to main.", "Rules:\n- never  push to\n  MAIN. And more.") == KEPT


def test_most_of_its_words_in_one_sentence_is_kept_in_other_words():
    rule = "Never push directly to the main branch."
    assert fate_of(rule, "The user said that one must never push to main branch directly.") == REWORDED
    assert fate_of(rule, "Never say never.\nWe push often.\nThe main branch is directly green.") == LOST


def test_what_is_in_our_text_alone_was_put_back_by_us():
    assert fate_of("Never push to main.", "We fixed the parser.", "- Never push to main. (turn 1)") == BACK
    assert fate_of("Never push to main.", "We fixed the parser.") == LOST


def test_of_very_short_rules_only_the_words_themselves_count():
    assert fate_of("Use tabs.", "We use many tabs here") == LOST


def test_rules_of_scripts_without_spaces_are_judged_too():
    assert fate_of("不要直接推送到主分支", "用户要求：不要直接推送到主分支。") == KEPT
    assert fate_of("请不要直接推送到主分支", "用户说过不要直接推送到主分支") == REWORDED


def test_the_matrix_shows_a_rule_from_the_compaction_on_at_which_it_held():
    first, second = Rule("Never push to main.", turn=1), Rule("Use tabs, not spaces.", turn=9)
    rows = matrix(
        [Column((first,), "Never push to main."), Column((first, second), "nothing", "Use tabs, not spaces.")]
    )
    assert [(row.rule.turn, row.fates) for row in rows] == [(1, (KEPT, LOST)), (9, (NOT_YET, BACK))]


@given(st.lists(st.lists(st.text(min_size=1, max_size=30), max_size=5), max_size=5), st.text(max_size=200))
def test_every_row_has_a_fate_or_a_gap_for_every_compaction(columns, summary):
    rows = matrix([Column(tuple(Rule(text) for text in own), summary) for own in columns])
    assert all(len(row.fates) == len(columns) and set(row.fates) <= {*FATES, NOT_YET} for row in rows)
