"""What the rows of a record need, as it is found before the lock is taken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite.operations.placing import Placed, placed_of
from mcp_compact.service.prepare import prepare
from mcp_compact.testing import Talk, image

IDS = st.sampled_from(["t1", "字", "a\0b", "\ud800"])
BLOCKS = st.one_of(
    st.sampled_from(["hello", "", " \n", image(), {"type": "thinking", "thinking": "hm", "signature": "S"}, 7]),
    st.builds(
        lambda kind, own, name: {"type": kind, "id": own, "name": name, "input": {}},
        st.sampled_from(["tool_use", "server_tool_use"]),
        IDS,
        IDS,
    ),
    st.builds(
        lambda kind, own, is_error: {"type": kind, "tool_use_id": own, "content": "said", "is_error": is_error},
        st.sampled_from(["tool_result", "web_search_tool_result"]),
        IDS,
        st.booleans(),
    ),
)


def placed(role: str, content: list[object], *, is_meta: bool) -> Placed:
    talk = Talk()
    talk.add(role, content, is_meta=is_meta)
    (prepared,) = prepare(talk.records, None, with_content_hash=False)
    return placed_of(prepared)


@given(st.sampled_from(["user", "assistant", "system"]), BLOCKS, st.booleans())
def test_a_block_alone_is_found_as_it_is_beside_one_that_nobody_knows(role: str, block: object, is_meta: bool) -> None:
    """Most records hold one block, and of those it is found in a shorter way."""
    alone, beside = (placed(role, content, is_meta=is_meta) for content in ([block], [block, {"type": "unheard_of"}]))
    assert [*alone.calls] == [*beside.calls]
    assert [*alone.results] == [*beside.results]
    told = [(own.kind, own.text_holding, own.has_thinking) for own in (alone, beside)]
    assert told[0] == told[1]
