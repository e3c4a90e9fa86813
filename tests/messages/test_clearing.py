from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mcp_compact.messages.blocks import CLEARED_RESULT, Block, ToolResultBlock, parse_content
from mcp_compact.messages.clearing import ERROR_LINE_CHARS, ClearedText, apply_clearings, media_mark
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.testing import tool_result

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}
TEXT = ClearedText()


def place(kind: ClearKind, block: int = 0, part: int | None = None) -> Clearing:
    return Clearing(kind, MessageUuid("r1"), block, part)


def raws(blocks: tuple[Block, ...]) -> list[Any]:
    return [block.raw for block in blocks]


def test_a_cleared_result_keeps_its_id_and_says_how_to_get_it_back() -> None:
    (block,) = apply_clearings(parse_content([tool_result("t1", "much text")]), [place(ClearKind.RESULT)], TEXT)
    assert isinstance(block, ToolResultBlock)
    assert block.tool_use_id == "t1"
    assert block.cleared
    assert block.text.split("\n") == [
        CLEARED_RESULT,
        "Call get_original with this block's tool_use_id to read it again.",
    ]


def test_where_there_is_no_server_the_mark_stands_alone() -> None:
    (block,) = apply_clearings(parse_content([tool_result("t1", "x")]), [place(ClearKind.RESULT)], ClearedText(hint=""))
    assert block.raw["content"] == CLEARED_RESULT


def test_a_cleared_error_stays_an_error_and_keeps_its_first_line() -> None:
    failed = tool_result("t1", "\nexit code 2: " + "y" * 900 + "\ntrace\ntrace", is_error=True)
    (block,) = apply_clearings(parse_content([failed]), [place(ClearKind.RESULT)], TEXT)
    assert isinstance(block, ToolResultBlock)
    first, second, *_ = block.text.split("\n")
    assert first.startswith("exit code 2: y")
    assert len(first) == ERROR_LINE_CHARS
    assert second == CLEARED_RESULT
    assert block.is_error
    assert block.cleared


def test_an_error_without_text_is_cleared_to_the_mark_alone() -> None:
    (block,) = apply_clearings(parse_content([tool_result("t", " ", is_error=True)]), [place(ClearKind.RESULT)], TEXT)
    assert block.raw["content"].startswith(CLEARED_RESULT)


def test_a_cleared_input_keeps_the_calls_name_and_id() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"content": "x" * 900}}
    (block,) = apply_clearings(parse_content([call]), [place(ClearKind.INPUT)], TEXT)
    assert block.raw == call | {"input": {"cleared": CLEARED_RESULT}}


def test_media_become_a_mark_of_their_kind() -> None:
    out = apply_clearings(parse_content([IMAGE, PDF]), [place(ClearKind.MEDIA), place(ClearKind.MEDIA, 1)], TEXT)
    assert raws(out) == [{"type": "text", "text": "[image]"}, {"type": "text", "text": "[document]"}]
    assert media_mark(parse_content("text")[0])["text"] == "[image]"


def test_media_inside_a_result_become_a_mark_and_its_text_stays() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "shot"}, IMAGE]}
    (block,) = apply_clearings(parse_content([result]), [place(ClearKind.MEDIA, 0, 1)], TEXT)
    assert block.raw["content"] == [{"type": "text", "text": "shot"}, {"type": "text", "text": "[image]"}]


def test_a_clearing_that_fits_no_block_changes_nothing() -> None:
    blocks = parse_content(["text", tool_result("t", "x")])
    wrong = [place(kind, at) for kind in ClearKind for at in (-1, 0, 2)]
    wrong += [
        place(ClearKind.INPUT, 1),
        place(ClearKind.MEDIA, 1),
        place(ClearKind.MEDIA, 1, 5),
        place(ClearKind.MEDIA, 1, 0),
    ]
    assert raws(apply_clearings(blocks, wrong, TEXT)) == raws(blocks)


def test_every_other_block_is_the_same_object() -> None:
    blocks = parse_content(["before", tool_result("t", "x"), "after"])
    out = apply_clearings(blocks, [place(ClearKind.RESULT, 1)], TEXT)
    assert (out[0], out[2]) == (blocks[0], blocks[2])
    assert out[0] is blocks[0]


PARTS = st.sampled_from([{"type": "text", "text": "line\nline"}, {"type": "text", "text": ""}, IMAGE, PDF])
RESULTS = st.builds(
    lambda content, error: {"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": error},
    st.text(max_size=60) | st.sampled_from([CLEARED_RESULT, f"err\n{CLEARED_RESULT}"]) | st.lists(PARTS, max_size=3),
    st.booleans(),
)
CALLS = st.just({"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}})
CLEARINGS = st.builds(
    Clearing, st.sampled_from(ClearKind), st.just(MessageUuid("r1")), st.integers(0, 3), st.none() | st.integers(0, 2)
)


@example([tool_result("t", "", is_error=True)], [place(ClearKind.RESULT)])
@given(st.lists(RESULTS | CALLS | PARTS, max_size=4), st.lists(CLEARINGS, max_size=4))
def test_clearing_twice_is_clearing_once(content: list[dict[str, Any]], clearings: list[Clearing]) -> None:
    once = apply_clearings(parse_content(content), clearings, TEXT)
    assert raws(apply_clearings(once, clearings, TEXT)) == raws(once)
    assert len(once) == len(content)


@given(RESULTS)
def test_what_was_cleared_is_known_as_cleared(raw: dict[str, Any]) -> None:
    (block,) = apply_clearings(parse_content([raw]), [place(ClearKind.RESULT)], TEXT)
    assert isinstance(block, ToolResultBlock)
    assert block.cleared
