from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.service.asking import Waiting, waiting_of, waiting_text

TEXTS = st.text(max_size=20)
DECLINED = st.builds(Declined, TEXTS, TEXTS, TEXTS)
REQUESTS = st.builds(
    CompactRequest,
    trigger=st.sampled_from(("agent", "manual", "auto", "reactive")),
    custom_instructions=TEXTS,
    target_tokens=st.none() | st.integers(1, 10**9),
    must_keep=TEXTS,
    hook_context=TEXTS,
    overrun=st.none() | st.builds(Overrun, st.none() | st.integers(0, 10**9), st.none() | st.integers(0, 10**9)),
    force=st.booleans(),
    keep_tail=st.booleans(),
)
WAITING = st.builds(
    Waiting,
    REQUESTS,
    st.lists(DECLINED, max_size=3).map(tuple),
    st.lists(TEXTS, max_size=3).map(tuple),
    st.integers(0, 3_600),
)


@given(WAITING)
def test_a_waiting_compaction_comes_back_as_it_was_and_is_not_held_back_again(waiting: Waiting) -> None:
    assert waiting_of(waiting_text(waiting)) == replace(waiting, request=replace(waiting.request, force=True))
