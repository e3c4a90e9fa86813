from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.tool_inputs import DEFAULT_LINES, MAX_PATH_CHARS, covers, lines_of, path_of


@pytest.mark.parametrize("key", ["file_path", "notebook_path", "path"])
def test_a_path_is_found_under_the_names_that_tools_use(key: str) -> None:
    assert path_of({key: "/src/a.py", "other": 1}) == "/src/a.py"


@pytest.mark.parametrize("given", [None, 7, "text", [], {}, {"file_path": 7}, {"file_path": ""}, {"file": "a"}])
def test_an_input_that_names_no_file_has_no_path(given: object) -> None:
    assert path_of(given) == ""
    assert lines_of(given) is None


def test_a_path_that_is_longer_than_any_file_system_takes_is_none() -> None:
    assert path_of({"file_path": "x" * MAX_PATH_CHARS})
    assert path_of({"file_path": "x" * (MAX_PATH_CHARS + 1)}) == ""


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({}, (1, 1 + DEFAULT_LINES)),
        ({"offset": None, "limit": None}, (1, 1 + DEFAULT_LINES)),
        ({"offset": 0, "limit": 10}, (1, 11)),
        ({"offset": 100}, (100, 100 + DEFAULT_LINES)),
        ({"offset": 100, "limit": 7}, (100, 107)),
        ({"pages": "1-3"}, None),
        ({"offset": "100"}, None),
        ({"offset": 1.5}, None),
        ({"limit": True}, None),
        ({"limit": -1}, None),
        ({"limit": 10**30}, None),
    ],
)
def test_the_lines_of_a_read_are_known_only_where_it_asks_for_lines(given: dict[str, object], lines: object) -> None:
    assert lines_of({"file_path": "a", **given}) == lines


def test_a_read_covers_another_only_with_every_line_of_it() -> None:
    assert covers((1, 100), (1, 100))
    assert covers((1, 100), (50, 60))
    assert not covers((1, 100), (50, 101))
    assert not covers((2, 100), (1, 50))


ranges = st.tuples(st.integers(1, 50), st.integers(1, 50)).map(lambda pair: (min(pair), max(pair)))


@given(ranges, ranges)
def test_covering_is_holding_the_same_lines(later: tuple[int, int], earlier: tuple[int, int]) -> None:
    if covers(later, earlier):
        assert set(range(*earlier)) <= set(range(*later))
