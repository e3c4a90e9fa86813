from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")

from mcp_compact.adapters.summarizers.failures import SHOWN, shown

KEYS = st.text(string.ascii_letters + string.digits + "-_/+=.", min_size=8, max_size=60)


@given(st.text(max_size=400), KEYS, st.text(max_size=400))
def test_a_key_is_never_shown_wherever_it_stands(before: str, key: str, after: str):
    assert key not in shown(before + key + after + key, key)


@given(st.text())
def test_what_is_shown_is_one_short_printable_line(text: str):
    line = shown(text, "")
    assert line.isprintable()
    assert len(line) <= SHOWN + 3
