from __future__ import annotations

from collections.abc import Sequence

from mcp_compact.compaction.extract_requests import (
    WHOLE_CHARS,
    Request,
    requests,
    telling,
    within,
    without_revoked,
)
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.words import users_words


def count(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def user(text: str, number: int) -> Record:
    raw = {"message": {"role": "user", "content": text}}
    return Record(MessageUuid(f"u{number}"), "user", b"", raw, decode_message(raw["message"], "user"))


def said(*messages: str) -> list[str]:
    return [request.text for request in requests(messages)]


def test_a_short_message_is_kept_whole_on_one_line():
    assert said("fix it\n\nin src/a.py") == ["fix it in src/a.py"]
    assert said("", "  ") == []


def test_of_a_long_message_its_beginning_and_its_instructions_stay():
    filler = "Some more words about how things are at the moment here in the shop. " * 12
    made = requests([f"The invoice is off by a cent.\n{filler}\nNever touch migrations/."])
    assert made[0].text.startswith("The invoice is off by a cent.")
    assert len(made[0].text) <= WHOLE_CHARS
    assert Request("Never touch migrations/.", standing=True) in made


def test_a_long_beginning_without_a_sentence_end_is_cut_at_a_blank():
    made = said("word " * 200)
    assert made[0].endswith("word …")
    assert len(said("x" * 900)[0]) <= 2 * 200 + 2


def test_what_is_said_again_stands_once_where_it_was_said_last():
    assert said("Never push.", "port the parser to src/b.py", "never push.") == [
        "port the parser to src/b.py",
        "never push.",
    ]


def test_old_small_talk_goes_and_the_newest_messages_stay():
    many = ["run it", "are you sure?", "look at src/a.py", "one", "two", "three", "four"]
    assert said(*many) == ["look at src/a.py", "one", "two", "three", "four"]


def test_instructions_are_the_last_to_go():
    found = [Request(f"rule {n}", standing=n == 1) for n in range(4)]
    size = count(["- rule 0\n"])[0]
    assert within(found, 4 * size, 4 * size, count) == ["rule 1", "rule 3"]
    assert within(found, 2 * size, 2 * size, count) == ["rule 1"]
    assert within(found, 0, 0, count) == []


def test_together_they_keep_to_the_limit_of_their_section():
    found = [Request(f"rule {n}", standing=False) for n in range(9)]
    size = count(["- rule 0\n"])[0]
    assert within(found, 1000 * size, 2 * size, count) == ["rule 7", "rule 8"]


def test_the_first_request_is_kept_before_the_middle_ones():
    found = [Request(f"rule {n}", standing=False) for n in range(9)]
    size = count(["- rule 0\n"])[0]
    assert within(found, 12 * size, 99 * size, count) == ["rule 0", "rule 7", "rule 8"]


def test_a_revoked_rule_leaves_the_records_too_and_the_rest_of_them_stays():
    records = [user("Fix it. Never push to main.", 1), user("You may now push to main.", 2)]
    made = without_revoked(records)
    assert [record.text for record in made] == ["Fix it.", "You may now push to main."]
    assert [record.uuid for record in made] == [record.uuid for record in records]


def test_words_from_before_the_records_tell_what_they_revoke():
    made = without_revoked([user("Forget the rule about tabs.", 1), user("go on", 2)], ["Use tabs, not spaces."])
    assert [record.text for record in made] == ["", "go on"]


def test_records_without_a_revocation_are_the_same():
    records = [user("Fix it. Never push to main.", 1)]
    assert without_revoked(records)[0] is records[0]


def test_a_fact_that_is_said_again_with_another_figure_stands_with_the_newest_only() -> None:
    said = [
        "The launch deadline is 2027-08-09 for now.",
        "Look at the log.",
        "The launch deadline is 2027-12-26 for now.",
    ]
    texts = [request.text for request in requests(said)]
    assert texts == ["Look at the log.", "The launch deadline is 2027-12-26 for now."]


def test_a_rule_that_a_message_beside_it_holds_whole_is_not_said_twice() -> None:
    rule = "Never print the key, not even for debugging."
    said = [f"{rule} {'What follows is a log of the last night, nothing to keep of it. ' * 9}", f"Renewed. {rule}"]
    texts = [request.text for request in requests(said)]
    assert sum(rule in text for text in texts[1:]) == 1
    assert texts.count(rule) == 0


def test_what_is_said_in_every_other_message_tells_less_than_what_is_said_once():
    again, once = "The weather is fine here today.", "The boiler was serviced by Anna Keller."
    said_before = [again, "What a day.", again, once, again, "The weather is fine."]
    made = telling([Request(again, standing=False), Request(once, standing=False)], said_before)
    assert made[1] > made[0] > 0


def test_where_it_is_known_what_tells_most_that_comes_before_the_newest():
    found = [Request(f"Remark number {letter}.", standing=False) for letter in "abcdefgh"]
    room = 4 * 3 * len(f"- {found[0].text}\n")
    newest = within(found, room, room, count)
    assert newest == [found[i].text for i in (0, 6, 7)]
    assert within(found, room, room, count, [1, 5, 4, 3, 0, 0, 0, 0]) == [found[i].text for i in (1, 2, 3)]
    rule = Request("Never a remark.", standing=True)
    assert rule.text in within([rule, *found], room, room, count, [0] + [1] * len(found))


def test_a_short_message_with_a_value_is_no_small_talk():
    assert said("Omar Haddad now owns the pager.", "ok", "run it", "a", "b", "c", "d") == [
        "Omar Haddad now owns the pager.", "a", "b", "c", "d"
    ]  # fmt: skip


def test_a_rule_that_was_typed_behind_a_command_is_kept_and_revoked_like_any_other() -> None:
    form = "<command-name>/feature</command-name>\n<command-args>{}</command-args>"
    asked = user(form.format("Build the CSV exporter. Never use semicolons as delimiter."), 1)
    revoked = user("Forget the rule about semicolons, you may use semicolons as delimiter.", 2)

    assert said(users_words(asked)) == ["/feature Build the CSV exporter. Never use semicolons as delimiter."]
    left = without_revoked([asked, revoked])
    assert "CSV exporter" in left[0].text
    assert "Never use semicolons" not in left[0].text
