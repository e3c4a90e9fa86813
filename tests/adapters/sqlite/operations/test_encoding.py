"""Ids of calls as a column: one JSON list of text, whichever way it was written and read."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite.operations.encoding import ids_of, ids_text, safe_id

ODD = ("", "-", "12-ab", "toolu_1", 'a"', "a\\", "a b", "a\n", "\u0663", "\u4e2d-1", "call-\x7f")


@pytest.mark.parametrize("name", ODD)
def test_an_odd_id_comes_back(name: str) -> None:
    assert json.loads(ids_text([name]) or "") == [name]
    assert ids_of(ids_text([name])) == (name,)


@given(st.lists(st.text().map(safe_id), max_size=3))
@example([])
def test_any_ids_come_back(names: list[str]) -> None:
    assert ids_of(ids_text(names)) == tuple(names)
