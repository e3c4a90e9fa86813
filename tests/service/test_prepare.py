from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.weights import estimate_all, estimate_units
from mcp_compact.service.prepare import (
    best_counter,
    content_hash,
    exact_counter,
    message_hash,
    prepare,
    readable,
)
from mcp_compact.testing import Talk, tool_result
from mcp_compact.transcripts.loop_items import MESSAGES, read_items

TEXTS = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    ["C:\\ud", "\ud83d", "\\ud83d", "\ud83d\ude00"]
)
CONTENTS = TEXTS | st.none() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2)
FIELDS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system"]), "content": CONTENTS},
    optional={"id": st.text(max_size=3), "model": st.just("m")},
)


@dataclass
class Letters:
    """A tokenizer that counts letters; it starts cold, and may turn out to be broken."""

    broken: bool = False
    name: str = "letters"
    state: str = "cold"
    reason: str = ""
    counted: list[list[str]] = field(default_factory=list)

    def warm(self) -> None:
        self.state = "failed" if self.broken else "ready"

    def count(self, texts: Sequence[str]) -> list[int]:
        self.counted.append(list(texts))
        return [len(text) for text in texts]


def test_a_cold_tokenizer_is_warmed_and_counts_in_units() -> None:
    count = exact_counter(Letters())
    assert count is not None
    assert count(["abc", ""]) == [3000, 0]


def test_a_broken_tokenizer_leaves_the_estimate() -> None:
    assert exact_counter(Letters(broken=True)) is None
    assert best_counter(Letters(broken=True)) is estimate_all
    assert best_counter(Letters())(["ab"]) == [2000]


def test_records_are_prepared_in_their_order_with_both_counts() -> None:
    talk = Talk()
    talk.user("Please never push to main.")
    talk.call("t1")
    talk.results("t1", text="x" * 50)
    prepared = prepare(talk.records, Letters(), with_content_hash=True)
    assert [item.record.uuid for item in prepared] == ["r1", "r2", "r3"]
    assert prepared[0].weight.units == estimate_units("Please never push to main.")
    assert prepared[0].exact_units == 26_000
    assert prepared[0].instructions == ("Please never push to main.",)
    assert prepared[2].result_weights[0].units == 50_000
    assert len(prepared[2].cleared_weights) == 1
    assert prepared[0].content_hash == message_hash("user", "Please never push to main.")


def test_without_a_tokenizer_and_a_hash_there_is_the_estimate_alone() -> None:
    talk = Talk()
    talk.user("hello")
    (item,) = prepare(talk.records, Letters(broken=True), with_content_hash=False)
    assert item.exact_units is None
    assert item.content_hash == b""


def test_instructions_are_the_users_own() -> None:
    talk = Talk()
    talk.user("Never do this.", is_meta=True)
    talk.assistant("Never do this.")
    talk.results("t", text="Never do this.")
    assert [item.instructions for item in prepare(talk.records, Letters(), with_content_hash=False)] == [(), (), ()]


def test_the_same_message_sent_again_has_the_same_hash() -> None:
    talk = Talk()
    one, two = talk.user("hi"), talk.user("hi")
    other, note = talk.assistant("hi"), talk.add("system", "x", message=None)
    assert content_hash(one) == content_hash(two) != content_hash(other)
    assert content_hash(note) == b""
    assert message_hash("user", "half \ud83d") == message_hash("user", "half \ufffd")


@given(FIELDS, st.booleans())
def test_what_was_appended_has_the_hash_of_its_role_and_content(item: dict[str, Any], turned: bool) -> None:
    items = [dict(reversed(item.items())) if turned else item]
    records = read_items(items, MESSAGES, lambda: str(uuid4())).records
    (prepared,) = prepare(records, None, with_content_hash=True)
    assert prepared.content_hash == content_hash(records[0])
    assert prepared.content_hash == message_hash(item["role"], item["content"])


def test_a_records_own_text_is_readable_in_one_line() -> None:
    record = Talk().add("user", ["one", tool_result("t", "no"), "two"])
    assert readable(record) == "one two"
