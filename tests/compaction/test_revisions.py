from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.extract_requests import requests
from mcp_compact.compaction.revisions import LONGEST, MOST_HELD, gives_value, revised, revised_by
from mcp_compact.compaction.rules import Rule, in_force

REVISED = (
    ("The launch date is 2027-03-19.", "We moved the launch to May 7."),
    ("The hosting budget is $800 a month.", "The hosting is now capped at $650 a month."),
    ("Keep the hosting under $800.", "From now on keep the hosting under six hundred dollars."),
    ("Anna Keller is on call for billing.", "Billing is now handled by Omar Haddad."),
    ("The release branch is release/2027-1.", "We switched the release to release/2027-2."),
    ("The reactor's serial is KX-4410.", "The reactor was replaced: the new serial is KX-5120."),
    ("Show all log times in UTC.", "From now on show log times in Europe/Paris."),
    ("Give measurements in imperial units.", "Please use metric units."),
    ("I want brief answers.", "I'd rather have detailed answers."),
)
BOTH_HOLD = (
    # Another thing of the same kind.
    ("The production budget is $800.", "The staging budget is $300."),
    ("The production budget is $800.", "The staging budget is now $300."),
    ("The launch date is 2027-03-19.", "The docs freeze moved to 2027-04-01."),
    ("The hosting budget is $800.", "The hosting now also has a reserve of $200."),
    # Nothing changed.
    ("The launch date is 2027-03-19.", "The launch party is on 2027-03-20."),
    # No value of the same kind.
    ("The launch date is 2027-03-19.", "The launch is now prepared by Anna Keller."),
    ("Fix the tests in tests/parser.py.", "Now fix the tests in tests/lexer.py."),
    # A narrower rule leaves the wider one.
    ("Put every timestamp in UTC.", "For status reports, show clocks in Europe/Paris."),
    # What else was asked for would be lost.
    ("I want brief answers with no tables.", "I'd rather have detailed answers."),
)


@pytest.mark.parametrize(("earlier", "later"), REVISED)
def test_a_later_sentence_of_another_value_revises_what_it_is_about(earlier: str, later: str):
    assert revised([earlier, later]) == {earlier}
    assert [request.text for request in requests([earlier, later])] == [later]


@pytest.mark.parametrize(("earlier", "later"), BOTH_HOLD)
def test_where_it_is_not_clear_both_stay(earlier: str, later: str):
    assert revised([earlier, later]) == frozenset()
    assert [request.text for request in requests([earlier, later])] == [earlier, later]


def test_of_two_that_fit_as_well_none_is_revised():
    rooms = ["The blue room's budget is $100.", "The green room's budget is $200."]
    assert revised([*rooms, "The room's budget is now $300."]) == frozenset()
    assert revised([*rooms, "The green room's budget is now $300."]) == {rooms[1]}


def test_a_message_keeps_what_is_not_revised_in_it():
    said = ["The hosting cap is $800. Never sign anything without asking me.", "The hosting cap is now $650."]
    assert [request.text for request in requests(said)] == ["Never sign anything without asking me.", said[1]]


def test_what_is_said_again_after_a_revision_holds():
    first, second = "The launch date is 2027-03-19.", "We moved the launch to May 7."
    assert revised([first, second, "So the launch date is 2027-03-19 again from now on."]) == {first, second}
    assert first not in revised([first, second, first])


def test_a_rule_that_is_revised_is_not_in_force_unless_it_is_pinned():
    old, new = "Always keep the hosting under $800.", "From now on keep the hosting under $650."
    assert [rule.text for rule in in_force([Rule(old), Rule(new)])] == [new]
    assert [rule.text for rule in in_force([Rule(old, pinned=True), Rule(new)])] == [old, new]


def test_a_long_sentence_revises_nothing_and_is_not_revised():
    old = "The launch date is 2027-03-19."
    long = "We moved the launch to May 7 " + "and said so " * (LONGEST // 10) + "."
    assert not gives_value(long)
    assert revised_by(long, {old: old}) is None
    assert revised([long, "We moved the launch to May 8."]) == frozenset()


def test_only_the_newest_statements_are_compared():
    old = "The launch date is 2027-03-19."
    between = [f"The rent of flat {number} is ${number}." for number in range(MOST_HELD)]
    assert revised([old, *between, "We moved the launch to May 7."]) == frozenset()
    assert revised([old, *between[:-1], "We moved the launch to May 7."]) == {old}


@given(st.lists(st.sampled_from([one for pair in (*REVISED, *BOTH_HOLD) for one in pair]), max_size=8))
def test_only_what_was_said_is_revised_and_the_last_words_stand(said: list[str]):
    gone = revised(said)
    assert gone <= set(said)
    assert not said or said[-1] not in gone
