from __future__ import annotations

import base64
import struct

from mcp_compact.messages.blocks import parse_content
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.media_out import ALL_CHARS, IMAGE_CHARS, MANY_IMAGES, sendable_media


def png(width, height, size_bytes=64):
    """The header of a PNG; the rest is filling."""
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 2, 0, 0, 0)
    data = base64.b64encode(header + b"\0" * size_bytes).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def turn(*content):
    return Turn("user", parse_content(list(content)))


def shown(turns):
    return [block.raw for turn in turns for block in turn.blocks]


def test_media_that_an_api_takes_stay_as_they_are():
    turns = [turn(png(100, 100), {"type": "text", "text": "look"})]
    out, notes = sendable_media(turns)
    assert (out, notes) == (turns, [])
    assert out[0] is turns[0]


def test_an_image_with_too_many_pixels_becomes_a_line_that_says_why():
    out, notes = sendable_media([turn(png(9000, 20), png(8000, 20))])
    assert [block["type"] for block in shown(out)] == ["text", "image"]
    assert "9000 x 20 pixels" in shown(out)[0]["text"]
    assert notes == ["image left out: 9000 x 20 pixels, 8000 are taken"]
    assert not out[0].whole


def test_an_image_with_too_many_bytes_is_left_out_also_inside_a_result():
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [png(10, 10, IMAGE_CHARS), png(10, 10)]}
    out, notes = sendable_media([turn(result, {"type": "text", "text": "after"})])
    block, text = shown(out)
    assert block["tool_use_id"] == "t1"
    assert [part["type"] for part in block["content"]] == ["text", "image"]
    assert text == {"type": "text", "text": "after"}
    assert len(notes) == 1


def test_beside_many_images_the_sides_must_be_shorter():
    few, _ = sendable_media([turn(*[png(3000, 10)] * MANY_IMAGES)])
    many, notes = sendable_media([turn(*[png(3000, 10)] * (MANY_IMAGES + 1))])
    assert all(block["type"] == "image" for block in shown(few))
    assert all(block["type"] == "text" for block in shown(many))
    assert "of so many images" in notes[0]


def test_a_document_is_left_out_only_where_it_alone_fills_a_request():
    def document(size):
        return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A" * size}}

    out, notes = sendable_media([turn(document(1000), document(ALL_CHARS + 1)), turn({"type": "text", "text": "see"})])
    assert [block["type"] for block in shown(out)] == ["document", "text", "text"]
    assert notes == [f"document left out: {ALL_CHARS + 1:,} characters"]


def test_what_is_refused_anyway_counts_no_more_when_the_rest_is_too_much():
    sizes = [IMAGE_CHARS, *[3_900_000] * 5]
    out, notes = sendable_media([turn(*(png(10, 10, size) for size in sizes))])
    kinds = [block["type"] for block in shown(out)]
    assert kinds == ["text", "text", *["image"] * 4]
    assert len(notes) == 2


def test_of_too_much_together_the_oldest_goes_first():
    size = 4_500_000
    number = ALL_CHARS // (size * 4 // 3) + 2
    turns = [turn(*[png(10, 10, 3_900_000) for _ in range(number + 3)])]
    out, notes = sendable_media(turns)
    kinds = [block["type"] for block in shown(out)]
    assert kinds == sorted(kinds, reverse=True)
    assert kinds[-1] == "image"
    assert 0 < len(notes) < len(kinds)
    assert sum(len(b["source"]["data"]) for b in shown(out) if b["type"] == "image") <= ALL_CHARS
