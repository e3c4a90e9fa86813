from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.branch import Link, active_positions, link_of, parent_positions
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.testing import Talk


def link(number: int, parent: str | None = None, *, root: bool = False) -> Link:
    return Link(number, MessageUuid(f"r{number}"), MessageUuid(parent) if parent else None, root)


def test_a_parent_is_found_by_name_else_it_is_the_record_before() -> None:
    links = [link(1, root=True), link(2, "r1"), link(3, "r1"), link(4), link(5, "gone")]
    assert parent_positions(links) == [None, 0, 0, 2, 3]


def test_a_parent_before_the_list_is_older_than_it() -> None:
    older = {MessageUuid("r0"): 0}
    assert parent_positions([link(1, "r0"), link(2, "r0"), link(3, "other")], older) == [-1, -1, 1]
    assert active_positions([link(1, "r0"), link(2)]) == {0, 1}


def test_of_two_records_with_one_uuid_the_first_is_the_parent() -> None:
    again = Link(2, MessageUuid("r1"))
    assert parent_positions([link(1, root=True), again, link(3, "r1")]) == [None, 0, 0]


def test_a_root_begins_anew() -> None:
    assert active_positions([link(1, root=True), link(2), link(3, root=True), link(4)]) == {2, 3}


def test_no_records_have_no_branch() -> None:
    assert active_positions([]) == set()
    assert parent_positions([]) == []


def test_a_record_without_message_is_a_link_too() -> None:
    talk = Talk()
    note = talk.add("system", "", message=None, is_root=True)
    assert link_of(note) == Link(1, MessageUuid("r1"), None, True)


@given(st.lists(st.tuples(st.none() | st.integers(0, 12), st.booleans()), max_size=12))
def test_the_walk_ends_and_goes_back_only(shape: list[tuple[int | None, bool]]) -> None:
    links = [link(at, None if parent is None else f"r{parent}", root=root) for at, (parent, root) in enumerate(shape)]
    parents = parent_positions(links)
    assert all(parent is None or parent < at for at, parent in enumerate(parents))
    active = active_positions(links)
    assert (len(links) - 1 in active) == bool(links)
