"""The quick decoder reads what the strict one reads, and nothing else."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.codec import canonical
from mcp_compact.transcripts import quick_json
from mcp_compact.transcripts.quick_json import QUICK_AFTER_BYTES, ObjectDecoder, ValueWriter

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)
ODD = (
    b'{"a":123456789012345678901234567890}',
    b'{"a":-9223372036854775809,"b":18446744073709551616}',
    b'{"a":' + b"7" * 400 + b"}",
    b'{"a":' + b"7" * 5000 + b"}",
    b'{"a":1e999}',
    b'{"a":1.7976931348623159e308}',
    b'{"a":' + b"7" * 400 + b".5}",
    b'{"a":-0,"b":-0.0,"c":0.1e1,"d":5e-324,"e":1e-999}',
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":01}',
    b'{"a":1.}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\udc00\\ud800"}',
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xff"}',
    b'{"a":"\x01\x7f"}',
    b'{"a":"\\u0000"}',
    b'{"a":1,"a":2}',
    b'{"a":1,}',
    b'{"a":1}{"b":2}',
    b'{"a":1}}',
    b' {"a":1}',
    b'{"a":1} ',
    b'\xef\xbb\xbf{"a":1}',
    b"[1]",
    b"1",
    b"{",
    b"}",
    b"",
    b'{"a":' * 300 + b"1" + b"}" * 300,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
)


def quick() -> ObjectDecoder:
    """A decoder that has read its megabyte."""
    decoder = ObjectDecoder()
    decoder(b'{"a":"%s"}' % (b"x" * QUICK_AFTER_BYTES))
    return decoder


LATER = quick()


@pytest.mark.parametrize("data", ODD, ids=lambda data: repr(data[:24]))
def test_odd_bytes_read_the_same_at_first_and_later(data: bytes) -> None:
    # By their text: 1, 1.0 and True are equal, and -0.0 is 0.
    assert repr(ObjectDecoder()(data)) == repr(LATER(data))


@given(st.data())
def test_any_value_reads_the_same_whole_or_damaged(data: st.DataObject) -> None:
    value = data.draw(st.dictionaries(st.text(), JSON, max_size=4))
    body = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass")
    at = data.draw(st.integers(0, len(body)))
    damaged = body[:at] + data.draw(st.binary(max_size=2)) + body[at + data.draw(st.integers(0, 2)) :]
    for given_bytes in (body, damaged):
        assert repr(ObjectDecoder()(given_bytes)) == repr(LATER(given_bytes))


def test_a_few_lines_load_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[bool] = []
    monkeypatch.setattr(quick_json, "quick_decoder", lambda: loaded.append(True))

    assert ObjectDecoder()(b'{"a":1}') == {"a": 1}
    assert loaded == []
    quick()(b'{"a":1}')
    assert loaded == [True]


@pytest.mark.parametrize("data", ODD, ids=lambda data: repr(data[:24]))
def test_without_msgspec_it_all_reads_the_same(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setitem(sys.modules, "msgspec.json", None)

    assert repr(quick()(data)) == repr(LATER(data))


def quick_writer() -> ValueWriter:
    """A writer that has written its megabyte."""
    writer = ValueWriter()
    writer("x" * (QUICK_AFTER_BYTES + 1))
    return writer


WRITES_LATER = quick_writer()
finite = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)


@given(finite)
def test_any_value_is_written_the_same_at_first_and_later(value: object) -> None:
    assert ValueWriter()(value) == WRITES_LATER(value) == canonical(value)


@pytest.mark.parametrize(
    "value", [1e16, 1e-7, 123456789.123, 5e-324, 1.7976931348623157e308, 2**64, -(2**63) - 1, 10**400]
)
def test_odd_numbers_are_written_the_same_at_first_and_later(value: float) -> None:
    assert ValueWriter()({"a": [value]}) == WRITES_LATER({"a": [value]}) == canonical({"a": [value]})


def test_a_writer_without_msgspec_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgspec.json", None)

    assert quick_writer()({"a": "\ud800"}) == canonical({"a": "\ud800"})
