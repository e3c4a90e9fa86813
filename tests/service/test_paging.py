from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.server.errors import unwritable
from mcp_compact.service.paging import joined, page, pieces, size_tokens
from mcp_compact.testing import image, tool_result

PAGE = 800


def paged(messages: list[dict[str, Any]], page_tokens: int = PAGE) -> list[list[Any]]:
    """All pages, read one after the other."""
    items = list(pieces(messages, page_tokens))
    pages: list[list[Any]] = []
    start: int | None = 0
    while start is not None:
        taken, start = page(items, start, page_tokens)
        pages.append(taken)
    return pages


def as_blocks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A content that is a string says the same as one text block."""
    return [
        m | ({"content": [{"type": "text", "text": m["content"]}]} if isinstance(m.get("content"), str) else {})
        for m in messages
    ]


def check(messages: list[dict[str, Any]], page_tokens: int = PAGE) -> list[list[Any]]:
    pages = paged(messages, page_tokens)
    assert as_blocks(joined([item for taken in pages for item in taken])) == as_blocks(messages)
    for taken in pages:
        assert sum(size_tokens(item) for item in taken) <= page_tokens
    return pages


def test_small_messages_share_a_page_and_are_the_very_same() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
    ]
    (taken,) = check(messages)
    assert taken[0] is messages[0]
    assert joined(taken) == messages


def test_no_messages_are_one_empty_page() -> None:
    assert paged([]) == [[]]


def test_a_start_behind_the_end_is_an_empty_last_page() -> None:
    assert page([{"role": "user", "content": "a"}], 5, PAGE) == ([], None)


def test_a_page_holds_one_item_at_least() -> None:
    items = [{"role": "user", "content": "x" * 90_000}]
    assert page(items, 0, 10) == (items, None)


def test_a_message_of_many_blocks_is_cut_between_them() -> None:
    blocks = [{"type": "text", "text": f"block {i} " + "word " * 60} for i in range(40)]
    items = [item for taken in check([{"role": "user", "content": blocks}]) for item in taken]
    assert [item["part"]["block"] for item in items] == list(range(40))
    assert all(item["part"] == {"block": at, "part": 1, "parts": 1} for at, item in enumerate(items))


def test_a_block_larger_than_a_page_is_split_and_every_part_says_which_it_is() -> None:
    message = {
        "role": "user",
        "uuid": "u1",
        "content": [tool_result("t1", "line of output\n" * 2000), {"type": "text", "text": "after"}],
    }
    items = [item for taken in check([message]) for item in taken]
    parts = [item["part"] for item in items if item["part"]["block"] == 0]
    assert [part["part"] for part in parts] == list(range(1, len(parts) + 1))
    assert {part["parts"] for part in parts} == {len(parts)}
    assert {item["uuid"] for item in items} == {"u1"}
    assert "".join(item["content"][0]["data"] for item in items[:-1]) == json.dumps(
        message["content"][0], separators=(",", ":")
    )


@pytest.mark.parametrize(
    "text",
    [
        "word " * 5000,
        "请把这个函数改成异步的。" * 1000,
        '"' * 20_000,
        "\\" * 20_000,
        "\n" * 20_000,
        "\u0001" * 9000,
        "😀" * 5000,
        "a" * 30_000 + "漢" * 5000,
        '{"a":"\\"' * 3000,
    ],
)
def test_every_page_is_below_its_size_whatever_the_text(text: str) -> None:
    check([{"role": "user", "content": text}, {"role": "user", "content": [tool_result("t", text), "x"]}])


def test_base64_of_a_picture_comes_in_parts_and_is_whole_again() -> None:
    picture = image()
    picture["source"]["data"] = "iVBORw0K" * 4000
    check([{"role": "user", "content": [picture, tool_result("t", "") | {"content": [picture]}]}])


def test_a_message_without_content_is_never_lost() -> None:
    contents: list[Any] = [[], None, ""]
    for content in contents:
        long = {"role": "user", "content": content, "note": "x" * 9000}
        assert joined(list(pieces([long], PAGE))) == [long]
    assert joined(list(pieces([{"type": "system", "note": "x" * 9000}], PAGE))) == [
        {"type": "system", "note": "x" * 9000}
    ]


def test_a_page_smaller_than_a_frame_still_gives_every_part_once() -> None:
    message = {"role": "user", "uuid": "u" * 300, "content": "word " * 400}
    items = list(pieces([message], 20))
    assert as_blocks(joined(items)) == as_blocks([message])
    assert len(items) < 100


def test_the_pages_of_a_huge_string_are_well_filled() -> None:
    pages = check([{"role": "user", "content": "x" * 2_000_000}], 18_000)
    assert sum(size_tokens(item) for taken in pages for item in taken) / len(pages) > 9000


CHARACTERS = st.characters(codec="utf-8")
LONG = st.builds(lambda t, n: t * n, st.text(CHARACTERS, min_size=1, max_size=6), st.sampled_from([1, 40, 900]))
BLOCKS = st.one_of(
    LONG.map(lambda t: {"type": "text", "text": t}),
    LONG.map(lambda t: tool_result("t", t)),
    LONG.map(lambda t: {"type": "novelty", "deep": [{"er": t}]}),
    LONG,
)
MESSAGES = st.lists(
    st.builds(
        lambda role, content, uuid: {"role": role, "content": content} | uuid,
        st.sampled_from(["user", "assistant"]),
        LONG | st.lists(BLOCKS, min_size=1, max_size=4),
        st.sampled_from([{}, {"uuid": "0f8fad5b-d9cb-469f-a165-70867728950e"}]),
    ),
    max_size=5,
)


@given(MESSAGES, st.sampled_from([200, 800, 5000]))
def test_the_pages_together_are_the_whole_and_each_is_below_its_size(messages: list[dict[str, Any]], size: int) -> None:
    check(messages, size)


@pytest.mark.parametrize("levels", [90, 110, 125, 400])
def test_a_block_that_is_nested_too_deeply_for_an_answer_comes_as_text(levels: int) -> None:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"a": value}}
    messages = [{"role": "assistant", "content": [{"type": "text", "text": "I call"}, call]}]
    (taken,) = check(messages, 9_000)
    kinds = [block["type"] for item in taken for block in item["content"]]
    assert kinds == (["text", "tool_use"] if levels < 120 else ["text", "json_part", "json_part"])
    assert all(unwritable({"messages": [item]}) == "" for item in taken)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "model", "parts": [{"text": "word " * 4_000}]},
        {"type": "function_call_output", "call_id": "c1", "output": "line\n" * 4_000},
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": "word " * 4_000}},
    ],
)
def test_messages_of_other_formats_are_cut_as_a_whole(message: dict[str, Any]) -> None:
    pages = check([{"role": "user", "content": "a"}, message, {"role": "user", "content": "b"}])
    assert len(pages) > 3
    assert {item["part"]["block"] for taken in pages for item in taken if "part" in item} == {-1}
