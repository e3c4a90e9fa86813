"""Parts of a large document are written as `canonical` writes them, to the byte."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical
from mcp_compact.transcripts.lines import Line
from mcp_compact.transcripts.objects import FirstLine, cleaned, document
from mcp_compact.transcripts.quick_document import quick_document
from mcp_compact.transcripts.quick_json import QUICK_AFTER_BYTES
from tests.transcripts.foreign import WRITERS, Call, Turn, records

CHARS = st.characters()
"""Halves of surrogate pairs are among them."""
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from((1e16, 1e-5, -0.0, 5e-324, 123456789012345680.0, 1e15, 0.1, 10**30))
    | st.text(CHARS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARS), inner, max_size=3),
    max_leaves=8,
)
LONG = "x" * QUICK_AFTER_BYTES


@given(JSON, st.booleans(), st.text(CHARS, max_size=3))
def test_what_was_read_is_written_as_canonical_writes_it(value: object, ascii_only: bool, more: str) -> None:
    found = quick_document(json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))

    if found is None:  # half of a pair
        with pytest.raises(UnicodeEncodeError):
            json.dumps(value, ensure_ascii=False).encode()
        return
    assert repr(found.value) == repr(value)
    assert found.write(found.value) == canonical(value)
    # A text of it may be read as JSON, which may hold anything.
    assert found.write({more: [found.value, more]}) == canonical({more: [value, more]})


def test_every_character_is_written_as_canonical_writes_it() -> None:
    found = quick_document(b"1")
    assert found is not None
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)

    assert found.write([every, {every: every}]) == canonical([every, {every: every}])


@pytest.mark.parametrize("data", [b"[NaN]", b"[1e999]", b'["\\ud800"]', b"[1", b'["\xff"]', b"[" * 100_000])
def test_what_is_no_json_or_holds_half_a_pair_is_left_to_the_strict_one(data: bytes) -> None:
    assert quick_document(data) is None


def test_without_msgspec_a_large_document_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgspec.json", None)
    line = Line(1, 0, 0, json.dumps({"a": LONG}).encode())

    assert FirstLine(line).value == document([line]).value == {"a": LONG}
    with pytest.raises(CallerError, match="not valid JSON"):
        document([Line(1, 0, 0, line.data[:-1])])


def test_halves_of_pairs_in_a_large_document_are_replaced() -> None:
    line = Line(1, 0, 0, json.dumps({"a": LONG, "b": "\ud800"}).encode())

    assert cleaned(FirstLine(line).document, [line]).value["b"] == cleaned(document([line]), [line]).value["b"] == "�"


@pytest.mark.parametrize("name", sorted(WRITERS))
@pytest.mark.parametrize("odd", [0.5, 1e22, 1e-7])
def test_a_long_session_keeps_the_bytes_that_a_short_one_has(name: str, odd: float) -> None:
    call = Call("read", {"n": odd, "of": {"text": "a\x00\x7f\u2028/é\U0001f600"}}, "done")
    short = [Turn("hello", (("I look.", (call,)),))]

    first = records(name, WRITERS[name](short))
    longer = records(name, WRITERS[name]([*short, Turn(LONG)]))

    bodies = {record.body for record in longer}
    assert all(record.body in bodies for record in first if record.is_message)
