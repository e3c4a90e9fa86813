from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.weighing import NO_INPUT, Weighed, weigh_records
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.weights import NOTHING, CountUnits, Weight, estimate_units, weigh
from mcp_compact.testing import Talk, image, tool_result
from tests.conversations import talks

CLEARED = ClearedText()
INPUTS = st.sampled_from([
    {"file_path": "/src/a.py", "offset": 11}, {"path": "\ud800"}, {"cleared": "[Old tool result content cleared]"}, None, 7
])  # fmt: skip
CONTENTS = st.sampled_from([
    "", "no\nmore", "字", "[Old tool result content cleared]", None, [], ["a"], ["a", "b"], [image()],
    [{"type": "text", "text": "a"}], [{"type": "tool_reference", "tool_name": "t"}],
])  # fmt: skip
BLOCKS = st.one_of(
    st.sampled_from(["hello", "字", " ", 7, image(), image(280), {"type": "unheard_of", "text": "x"}]),
    st.builds(
        lambda kind, given: {"type": kind, "id": "t", "name": "Read", "input": given},
        st.sampled_from(["tool_use", "server_tool_use"]),
        INPUTS,
    ),
    st.builds(
        lambda kind, content, is_error: {"type": kind, "tool_use_id": "t", "content": content, "is_error": is_error},
        st.sampled_from(["tool_result", "web_search_tool_result"]),
        CONTENTS,
        st.booleans(),
    ),
)
"""What a record may hold alone."""


def characters(texts: Sequence[str]) -> list[int]:
    """An exact counter for tests: a unit a character."""
    return [len(text) for text in texts]


def test_without_a_tokenizer_the_estimate_is_the_best_count() -> None:
    talk = Talk()
    talk.user("hello")
    (weighed,) = weigh_records(talk.records, None, CLEARED)
    assert weighed.exact_units is None
    assert weighed.best == weighed.estimate == Weight(units=estimate_units("hello"), messages=1)


def test_the_tokenizers_count_is_the_best_one_and_the_estimate_stays() -> None:
    talk = Talk()
    talk.user("hello")
    (weighed,) = weigh_records(talk.records, characters, CLEARED)
    assert weighed.exact_units == 5
    assert weighed.best == Weight(units=5, messages=1)
    assert weighed.estimate.units == estimate_units("hello")


def test_hidden_thinking_weighs_the_same_by_every_counter() -> None:
    talk = Talk()
    talk.add("assistant", [{"type": "redacted_thinking", "data": "Q" * 1000}, {"type": "text", "text": "hi"}])
    (weighed,) = weigh_records(talk.records, characters, CLEARED)
    assert weighed.exact_units == 1000 * 230 + 2


def test_what_is_no_message_weighs_nothing() -> None:
    talk = Talk()
    talk.add("system", "a long note", type="system")
    talk.add("user", "", message=None)
    assert [item.best for item in weigh_records(talk.records, characters, CLEARED)] == [NOTHING, NOTHING]


def test_each_result_has_its_own_weight_and_that_of_its_mark() -> None:
    talk = Talk()
    talk.add("user", ["note", tool_result("a", "x" * 100), tool_result("b", "no\nmore", is_error=True)])
    (weighed,) = weigh_records(talk.records, characters, CLEARED)
    assert weighed.results == (Weight(units=100, results=1), Weight(units=7, results=1))
    mark = len("[Old tool result content cleared]\n") + len(CLEARED.hint)
    assert weighed.cleared == (Weight(units=mark, results=1), Weight(units=mark + len("no\n"), results=1))
    assert weighed.best == Weight(units=4 + 100 + 7, results=2, messages=1)


def test_results_of_the_provider_itself_count_but_are_not_listed() -> None:
    talk = Talk()
    talk.add("assistant", [{"type": "web_search_tool_result", "tool_use_id": "s", "content": [image()]}])
    (weighed,) = weigh_records(talk.records, characters, CLEARED)
    assert weighed.results == weighed.cleared == ()
    assert weighed.best.results == 1
    assert [fact.part for fact in weighed.media] == [0]


def test_media_are_found_where_they_stand() -> None:
    talk = Talk()
    talk.add("user", ["see", image(), tool_result("t", "") | {"content": ["a", image(280)]}])
    (weighed,) = weigh_records(talk.records, None, CLEARED)
    places = [(fact.kind, fact.block, fact.part, fact.tokens, fact.tool_use_id) for fact in weighed.media]
    assert places == [("image", 1, None, 2000, None), ("image", 2, 1, 100, "t")]
    assert weighed.results[0].media == 100
    assert weighed.best.media == 2100


def test_the_mark_of_a_medium_weighs_by_the_counter_of_the_texts_around_it() -> None:
    talk = Talk()
    talk.add("user", ["see", image(), {"type": "document", "source": {"type": "url", "url": "https://example.org/a"}}])
    talk.add("user", [tool_result("t", "") | {"content": [image()]}])
    exact = weigh_records(talk.records, characters, CLEARED)
    assert [fact.mark_units for own in exact for fact in own.media] == [
        len("[image]"),
        len("[document]"),
        len("[image]"),
    ]
    estimated = weigh_records(talk.records, None, CLEARED)
    assert [fact.mark_units for fact in estimated[0].media] == [estimate_units("[image]"), estimate_units("[document]")]


def test_each_call_has_the_facts_of_its_input() -> None:
    talk = Talk()
    given = {"file_path": "/src/a.py", "offset": 11, "limit": 5, "note": "x" * 50}
    talk.add("assistant", [
        {"type": "text", "text": "look"},
        {"type": "tool_use", "id": "a", "name": "Read", "input": given},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "tool_use", "id": "b", "name": "Read", "input": {"file_path": "/src/a.py", "offset": 11, "limit": 5}},
    ])  # fmt: skip
    talk.call("c", name="Read")
    talk.add("assistant", [{"type": "tool_use", "id": "d", "name": "Edit", "input": given}])
    facts = [fact for own in weigh_records(talk.records, characters, CLEARED) for fact in own.inputs]
    mark = len('{"cleared":"[Old tool result content cleared]"}')
    assert facts[0].freed_units == len(json.dumps(given, separators=(",", ":"))) - mark
    assert [(fact.path, fact.lines) for fact in facts] == [
        ("/src/a.py", None),
        ("/src/a.py", (11, 16)),
        ("c.py", (1, 2001)),
        ("/src/a.py", None),
    ]
    assert facts[0].hash == facts[3].hash
    assert len({fact.hash for fact in facts[:3]}) == 3


def test_of_an_input_that_came_cleared_nothing_is_known() -> None:
    talk = Talk()
    blocks = [
        {"type": "tool_use", "id": name, "name": "Read", "input": {"cleared": "[Old tool result content cleared]"}}
        for name in ("a", "b")
    ]
    talk.add("assistant", blocks)
    (own,) = weigh_records(talk.records, characters, CLEARED)
    assert own.inputs == (NO_INPUT, NO_INPUT)


def test_inputs_of_any_shape_have_facts() -> None:
    talk = Talk()
    odd: list[object] = [None, [], "text", 7, {"file_path": 7}, {"file_path": "\ud800"}, {"path": "x" * 5000}]
    blocks = [{"type": "tool_use", "id": f"t{at}", "name": "Read", "input": given} for at, given in enumerate(odd)]
    talk.add("assistant", blocks)
    (own,) = weigh_records(talk.records, None, CLEARED)
    assert [fact.path for fact in own.inputs] == ["", "", "", "", "", "\ud800", ""]
    assert len({fact.hash for fact in own.inputs}) == len(odd)


@given(talks(most=6))
def test_a_record_weighs_what_its_blocks_weigh_and_its_results_are_part_of_it(talk: Talk) -> None:
    for record, own in zip(talk.records, weigh_records(talk.records, None, CLEARED), strict=True):
        assert own.best == weigh([record.blocks])[0]
        rest = own.best - sum(own.results, NOTHING)
        assert min(rest.units, rest.media, rest.results) >= 0
        assert len(own.results) == len(own.cleared) == len(record.results)
        assert sum(fact.tokens for fact in own.media) == own.best.media


@given(st.lists(BLOCKS, min_size=1, max_size=6), st.sampled_from([None, characters]))
def test_a_block_alone_weighs_as_it_does_beside_an_empty_text(blocks: list[object], exact: CountUnits | None) -> None:
    """One block, as most records hold, is weighed in a shorter way than several."""
    alone, beside = Talk(), Talk()
    for block in blocks:
        alone.add("user", [block])
        beside.add("user", [block, ""])
    own, other = (weigh_records(talk.records, exact, CLEARED) for talk in (alone, beside))
    assert [_unnamed(item) for item in own] == [_unnamed(item) for item in other]


def _unnamed(weighed: Weighed) -> Weighed:
    return replace(weighed, media=tuple([replace(fact, uuid=MessageUuid("")) for fact in weighed.media]))


def test_all_texts_of_a_batch_are_counted_at_once() -> None:
    talk = Talk()
    talk.user("one")
    talk.results("t", text="two")
    asked: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        asked.append(len(texts))
        return characters(texts)

    weigh_records([*talk.records, replace(talk.records[0], message=None)], count, CLEARED)
    assert asked == [3]
    assert weigh_records([], count, CLEARED) == []
