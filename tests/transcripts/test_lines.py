from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.transcripts.lines import EXCERPT_CHARS, Line, parse_line, read_lines

U1 = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"one"}}'
A1 = b'{"type":"assistant","uuid":"a1","message":{"role":"assistant","content":[{"type":"text","text":"two"}]}}'
WITH_ENVELOPE = b'{"parentUuid":"u1","sessionId":"s","type":"user","uuid":"u9","message":{"role":"user","content":"x"}}'


def bodies(data: bytes, *, terminated: bool = True) -> list[bytes]:
    return [body for _, body in parse_line(Line(1, 0, len(data), data, terminated)).objects]


def reasons(data: bytes, *, terminated: bool = True) -> list[str]:
    return [problem.reason for problem in parse_line(Line(1, 0, len(data), data, terminated)).problems]


def test_lines_end_at_lf_only():
    data = "a\u2028b\u0085c\x0cd\ve\u2029f\rg\n".encode()
    assert [line.data for line in read_lines([data])] == [data[:-1]]


def test_blank_lines_are_counted_but_not_given_out():
    lines = list(read_lines([b"a\n\n \t\r\nb\n"]))
    assert [(line.number, line.data) for line in lines] == [(1, b"a"), (4, b"b")]


def test_byte_order_mark_and_carriage_returns_are_no_part_of_a_line():
    lines = list(read_lines([b"\xef\xbb\xbfa\r\nb\r\n\xef\xbb\xbfc"]))
    assert [line.data for line in lines] == [b"a", b"b", b"c"]
    assert [(line.start, line.end) for line in lines] == [(3, 6), (6, 9), (12, 13)]


def test_only_the_last_line_can_be_without_an_end():
    assert [line.terminated for line in read_lines([b"a\nb"])] == [True, False]
    assert [line.terminated for line in read_lines([b"a\nb\n"])] == [True, True]


def test_numbers_and_offsets_go_on_where_the_caller_says():
    whole = b"one\ntwo\nthree\n"
    first, *rest = read_lines([whole])
    again = list(read_lines([whole[first.end :]], first_line=first.number + 1, offset=first.end))
    assert again == rest


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_lines_do_not_depend_on_how_the_file_is_cut_into_chunks(data: bytes, cuts: list[int]):
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(edges)]
    lines = list(read_lines(chunks))
    assert lines == list(read_lines([data]))
    assert [line.data for line in lines] == [
        kept for piece in data.split(b"\n") if (kept := piece.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")).strip()
    ]
    assert all(data[line.start :].startswith(line.data) for line in lines)


def test_a_line_of_many_megabytes_is_one_line():
    big = b'{"type":"user","text":"' + b"x" * 5_000_000 + b'"}'
    chunks = [big[start : start + 65_536] for start in range(0, len(big), 65_536)]
    lines = list(read_lines([*chunks, b"\n"]))
    assert [line.data for line in lines] == [big]
    assert bodies(big) == [big]


def test_whole_object_keeps_its_own_bytes():
    spaced = b'{ "type" : "user", "n": 1.50, "t": "\\u00e9" }'
    assert bodies(spaced) == [spaced]


def test_glued_objects_are_taken_apart_each_with_its_own_bytes():
    assert bodies(U1 + A1) == [U1, A1]
    assert bodies(U1 + b"  " + A1 + U1) == [U1, A1, U1]
    assert reasons(U1 + A1) == []


TORN = (
    b'{"type":"user","uuid":"u2","message":{"role":"us',
    b'{"type":"user","uuid":"u2","message":{"role":"user","content":"a\\',
    b'{"type":"user","uuid":"u2","n":tru',
    b'{"type":"user","uuid":"u2","n":-',
    b'{"type":"user","uuid":"u2","n":12',
    b'{"type":"user","uuid":"u2"',
    b'{"type":"user","uuid":"u2",',
    b'{"type":"user","uuid":"u2","message":{"role":"user","content":"\\u00',
    b'{"type":"user","uuid":"u2","message":{"role":"user","content":[{"type":"text","te',
    b'{"type":"user","uuid":"u2","message":{"role":"user","content":"caf\xc3',
    b"{",
    b'{"',
    b"garbage",
)


@pytest.mark.parametrize("torn", TORN)
def test_whole_object_at_the_end_of_a_torn_line_is_recovered(torn: bytes):
    assert bodies(torn + A1) == [A1]
    assert len(reasons(torn + A1)) == 1
    assert bodies(torn + A1 + U1) == [A1, U1]
    assert bodies(U1 + torn + A1) == [U1, A1]


@pytest.mark.parametrize(
    "torn", [b'{"type":"user","message":', b'{"type":"user","list":[', b'{"type":"user","list":[1,']
)
def test_record_in_the_place_of_a_value_is_recovered_by_its_envelope(torn: bytes):
    assert bodies(torn + WITH_ENVELOPE) == [WITH_ENVELOPE]


def test_part_of_an_unfinished_object_is_never_taken_for_a_record():
    inner = b'{"type":"user","uuid":"x","timestamp":"t","message":{"role":"user","content":"inside"}}'
    assert bodies(b'{"type":"progress","data":{"message":' + inner) == []
    assert bodies(b'{"type":"user","message":{"role":"user","content":"one"}') == []
    assert bodies(b'{"type":"user",?"message":' + inner + b',"more":1}') == []


def test_whole_object_before_a_torn_one_is_kept():
    assert bodies(U1 + A1[:40]) == [U1]
    assert reasons(U1 + A1[:40]) == ["an unfinished object"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hello", "not JSON"),
        (b"\x1c\xc2\xa0", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": [-Infinity]}', "-Infinity is not JSON"),
        (b'{"a": 1e999}', "a number out of range is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number too large"),
        (b'{"a": "caf\xc3"}', "not UTF-8"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'{"a": "tab\there"}', "not JSON"),
        (b'{"type": "user', "an unfinished object"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, reason: str):
    assert bodies(data) == []
    assert reasons(data) == [reason]


def test_last_line_without_an_end_is_truncated_only_if_it_cannot_be_read():
    assert reasons(A1, terminated=False) == []
    assert reasons(A1[:50], terminated=False) == ["truncated: the last line has no end (an unfinished object)"]
    assert reasons(A1[:-6] + b"\xc3", terminated=False) == ["truncated: the last line has no end (not UTF-8)"]


def test_excerpts_are_short_and_printable():
    (problem,) = parse_line(Line(7, 0, 0, b"\x1b[31m" + "\u00e9\u2028".encode() * 500)).problems
    assert problem.line == 7
    assert len(problem.excerpt) <= EXCERPT_CHARS
    assert problem.excerpt.isprintable()


def test_hostile_lines_are_given_up_soon():
    nested = b'{"type":"x","a":' * 2_000
    assert bodies(nested * 20) == []
    assert bodies(b"{" * 1_000_000) == []
    assert bodies(b'{"type":"user","sessionId":"' * 50_000) == []


@given(st.binary(max_size=300))
def test_any_bytes_are_objects_or_problems(data: bytes):
    parsed = parse_line(Line(1, 0, len(data), data))
    assert parsed.objects or parsed.problems or not data.strip()
    for value, body in parsed.objects:
        assert json.loads(body) == value
        assert body in data
