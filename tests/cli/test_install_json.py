from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.cli.install_json import value_at, with_member, without_member
from mcp_compact.errors import CallerError

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)

COMMENTED = """\
{
    // which model
    "model": "opus", /* a { brace in a comment */
    "hooks": { "Stop": [1, 2,], },
    // the last word
}
"""


@settings(max_examples=40)
@given(OBJECTS.filter(lambda data: "ours" not in data), st.sampled_from([None, 1, 2, "\t"]), VALUES)
def test_a_member_is_added_and_nothing_else_changes(data, indent, value):
    text = json.dumps(data, indent=indent)
    made = with_member(text, ("ours", "entry"), {"of": value})
    assert json.loads(made) == {**data, "ours": {"entry": {"of": value}}}


@settings(max_examples=40)
@given(OBJECTS.filter(lambda data: data and "ours" not in data), st.sampled_from([None, 2, "\t"]))
def test_adding_a_member_and_taking_it_away_gives_the_same_bytes(data, indent):
    text = json.dumps(data, indent=indent) + "\n"
    assert without_member(with_member(text, ("ours",), [1]), ("ours",)) == text


@settings(max_examples=40)
@given(OBJECTS)
def test_what_is_read_is_what_json_says(data):
    text = json.dumps({"all": data}, indent=1)
    assert value_at(text, ("all",)) == data
    assert value_at(text, ("all", "no such key")) is None


def test_comments_trailing_commas_and_indent_stay():
    made = with_member(COMMENTED, ("statusLine",), {"type": "command"})
    assert made.startswith(COMMENTED[: COMMENTED.index("\n}")])
    assert made.endswith('\n    "statusLine": {\n        "type": "command"\n    },\n}\n')
    assert without_member(made, ("statusLine",)) == COMMENTED


def test_a_comment_stays_with_the_member_it_stands_behind():
    text = '{\n  "a": 1 // why\n}\n'
    made = with_member(text, ("b",), 2)
    assert made == '{\n  "a": 1, // why\n  "b": 2\n}\n'
    assert without_member(made, ("b",)) == text


def test_the_first_member_can_be_taken_away():
    assert without_member('{"a": 1, /* of b */ "b": 2}', ("a",)) == '{/* of b */ "b": 2}'


def test_objects_on_the_way_go_with_the_last_member_only():
    assert without_member('{"servers": {"a": 1}, "x": 1}', ("servers", "a")) == '{"x": 1}'
    assert without_member('{"servers": {"a": 1, "b": 2}}', ("servers", "a")) == '{"servers": {"b": 2}}'
    assert without_member('{"a": 1}', ("no", "such")) == '{"a": 1}'


@pytest.mark.parametrize("text", ["", "\n", "// only a comment", "{}", "{ }", "{\n}\n", "{ // {\n}"])
def test_an_empty_file_takes_a_member(text):
    assert value_at(with_member(text, ("a", "b"), [True]), ("a",)) == {"b": [True]}


def test_lines_end_as_they_do_in_the_file():
    made = with_member('{\r\n\t"a": 1\r\n}\r\n', ("b",), {"c": 1})
    assert made == '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": 1\r\n\t}\r\n}\r\n'


def test_of_a_key_that_stands_twice_the_last_counts():
    assert with_member('{"a": 1, "a": 2}', ("a",), 3) == '{"a": 1, "a": 3}'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a" 1}', 1), ('{\n"a":}', 2), ("{a: 1}", 1), ("[", 1), ('{"a": 1} x', 1), ('{"a": 1\n"b": 2}', 2),
        ('{"a": "\n"}', 1), ('{"a": 1', 1), ("[1 2]", 1), ("{,}", 1), ("/* open", 1), ("[" * 5000, 1),
    ],
)  # fmt: skip
def test_broken_json_is_refused_with_its_line(text, line):
    with pytest.raises(CallerError, match=f"no valid JSON: .* in line {line}\\."):
        with_member(text, ("b",), 1)


@pytest.mark.parametrize("text", ["[]", '"text"', "3"])
def test_a_file_that_is_no_object_is_refused(text):
    with pytest.raises(CallerError, match="no JSON object"):
        with_member(text, ("b",), 1)


def test_a_member_that_is_no_object_is_not_replaced():
    with pytest.raises(CallerError, match="servers is no JSON object"):
        with_member('{"servers": []}', ("servers", "ours"), 1)
