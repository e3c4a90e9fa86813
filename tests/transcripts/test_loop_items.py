"""Items that loops append, as records."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.codec import canonical
from mcp_compact.messages.message import Record
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.loop_items import MESSAGES, read_items

CONTENTS = st.one_of(
    st.text(max_size=20),
    st.none(),
    st.just([{"type": "text", "text": "hello"}]),
    st.just([{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}}]),
    st.just([{"type": "tool_result", "tool_use_id": "t1", "content": "said"}]),
    st.just([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://example.org/a"}}]),
    st.sampled_from([[], ["hello"], {"type": "text", "text": "hello"}, 7]),
)
ITEMS = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "assistant", "system", "developer", "tool", "somebody")), "content": CONTENTS},
    optional={
        "timestamp": st.sampled_from(("2026-01-01T00:00:00Z", 1_700_000_000, "never")),
        "isMeta": st.booleans(),
        "isCompactSummary": st.booleans(),
        "isSidechain": st.booleans(),
        "tool_call_id": st.just("t1"),
        "id": st.just("m1"),
    },
)


def read(items: list[dict[str, object]]) -> list[Record]:
    numbers = count()
    return read_items(items, MESSAGES, lambda: f"u{next(numbers)}").records


@given(st.lists(ITEMS, max_size=5))
def test_a_message_without_an_envelope_is_read_as_the_reader_of_transcripts_reads_it(items: list[dict[str, object]]):
    reader = ClaudeCodeReader("append")
    whole = [reader.feed(item, canonical(item), at)[0].record for at, item in enumerate(items, 1)]
    for own, its in zip(read(items), whole, strict=True):
        told = [
            (r.type, r.body, r.message, r.parent_uuid, r.is_root, r.at_ms, r.subtype, r.is_meta, r.is_summary)
            for r in (own, its)
        ]
        assert told[0] == told[1]
        assert own.agent_id is None


@pytest.mark.parametrize("item", [{"role": "somebody", "content": "x"}, {"role": 7, "parts": 3}])
def test_what_is_no_message_is_told(item: dict[str, object]):
    assert [*read_items([item], MESSAGES, lambda: "u").unknown] == ["message 1: 'unknown' is not understood"]
