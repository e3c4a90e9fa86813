"""The size of an image comes from its header, whatever the rest and the label are."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.image_header import MAX_HEADER_BYTES, MAX_SIDE, image_size

# Whole images of 37 x 21 pixels in one colour, written by an image library.
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAACUAAAAVCAIAAABOhrD5AAAAJklEQVR4nGM8wcXFQEfARE/LRu0btW/UvlH7Ru0btW/UvlH7qAAArt4BBscTq5gA"
    "AAAASUVORK5CYII="
)
GIF = "R0lGODdhJQAVAIEAAMgKCgAAAAAAAAAAACwAAAAAJQAVAEAILwABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzatzIsaPHjyBDihxJsqRJkgEBADs="
PROGRESSIVE_JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////////////////////"
    "////2wBDAVVaWnhpeOuCguv/////////////////////////////////////////////////////////////////////////wgARCAAVACUDASIAAhEB"
    "AxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAWAQEBAQAAAAAAAAAAAAAAAAAAAgP/2gAMAwEAAhADEAAAAYE6AAAAAf/EABQQAQAAAAAAAAAAAAAA"
    "AAAAADD/2gAIAQEAAQUCf//EABQRAQAAAAAAAAAAAAAAAAAAACD/2gAIAQMBAT8BX//EABQRAQAAAAAAAAAAAAAAAAAAACD/2gAIAQIBAT8BX//EABQQ"
    "AQAAAAAAAAAAAAAAAAAAADD/2gAIAQEABj8Cf//EABQQAQAAAAAAAAAAAAAAAAAAADD/2gAIAQEAAT8hf//aAAwDAQACAAMAAAAQDDDDDD//xAAUEQEA"
    "AAAAAAAAAAAAAAAAAAAg/9oACAEDAQE/EF//xAAUEQEAAAAAAAAAAAAAAAAAAAAg/9oACAECAQE/EF//xAAUEAEAAAAAAAAAAAAAAAAAAAAw/9oACAEB"
    "AAE/EH//2Q=="
)
WEBP_LOSSY = "UklGRkYAAABXRUJQVlA4IDoAAAAwAwCdASolABUAP3G202G0ryqmJWgCkC4JZwDOOA8KeFAAAP7kAXsFKQ3/yS9SflYMYsA8KLZAAAAA"
WEBP_LOSSLESS = "UklGRh4AAABXRUJQVlA4TBEAAAAvJAAFAAdQhSJXof+BiOh/AAA="
WEBP_ALPHA = (
    "UklGRmoAAABXRUJQVlA4WAoAAAAQAAAAJAAAFAAAQUxQSAoAAAABB1DAiAhERP8DVlA4IDoAAAAwAwCdASolABUAP3G202G0ryqmJWgCkC4JZwDOOA8K"
    "eFAAAP7kAXsFKQ3/yS9SflYMYsA8KLZAAAAA"
)
IMAGES = {
    "png": PNG,
    "gif": GIF,
    "jpeg": PROGRESSIVE_JPEG,
    "webp lossy": WEBP_LOSSY,
    "webp lossless": WEBP_LOSSLESS,
    "webp alpha": WEBP_ALPHA,
}
every_image = pytest.mark.parametrize("data", IMAGES.values(), ids=IMAGES.keys())


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def png(width: int, height: int) -> str:
    return encoded(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\x00\x00\x00")


def jpeg(width: int, height: int, before: bytes = b"", frame: int = 0xC0) -> str:
    header = struct.pack(">BBHBHHB", 0xFF, frame, 17, 8, height, width, 3) + b"\x01\x22\x00\x02\x11\x01\x03\x11\x01"
    return encoded(b"\xff\xd8" + before + header + b"\xff\xda\x00\x02pixels")


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


@every_image
def test_a_real_image_has_its_size(data):
    assert image_size(data, "image/png") == (37, 21)


@every_image
def test_the_label_does_not_decide_but_a_label_of_no_image_does(data):
    assert image_size(data, "image/x-unheard-of") == (37, 21)
    assert image_size(data, " IMAGE/JPEG ") == (37, 21)
    assert image_size(data, None) == image_size(data, "") == (37, 21)
    assert image_size(data, "application/pdf") is None


@every_image
def test_a_data_url_line_breaks_the_url_alphabet_and_lost_padding_are_read(data):
    wrapped = "\r\n".join(data[start : start + 64] for start in range(0, len(data), 64))
    for form in (f"data:image/png;base64,{data}", wrapped, data.replace("+", "-").replace("/", "_"), data.rstrip("=")):
        assert image_size(form, "image/png") == (37, 21)


@every_image
def test_only_the_header_is_needed_and_what_follows_is_not_looked_at(data):
    header = data[:264] if data is PROGRESSIVE_JPEG else data[:40]
    assert len(header) < len(data)
    assert image_size(header, "image/png") == (37, 21)
    assert image_size(f"{header}{'A' * 500_000}=== no base64", "image/png") == (37, 21)


@given(st.integers(1, MAX_SIDE), st.integers(1, MAX_SIDE))
def test_a_png_has_the_size_that_its_header_names(width, height):
    assert image_size(png(width, height), "image/png") == (width, height)


@given(
    st.integers(1, 65_535), st.integers(1, 65_535), st.integers(0, 65_533), st.sampled_from([0xC0, 0xC1, 0xC2, 0xCF])
)
def test_a_jpeg_has_its_size_whatever_camera_data_stands_before(width, height, camera_bytes, frame):
    before = segment(0xE1, bytes(camera_bytes)) + b"\xff\xff\xff\x01" + segment(0xC4, b"\xff\xc0" * 9)
    assert image_size(jpeg(width, height, before, frame), "image/jpeg") == (width, height)


def test_a_jpeg_is_read_no_further_than_the_limit():
    profile = segment(0xE2, bytes(65_000))
    assert image_size(jpeg(640, 480, profile * 4), "image/jpeg") == (640, 480)
    assert len(profile) * 5 > MAX_HEADER_BYTES
    assert image_size(jpeg(640, 480, profile * 5), "image/jpeg") is None


def test_a_jpeg_whose_pixels_come_first_or_that_has_no_size_has_none():
    assert image_size(encoded(b"\xff\xd8\xff\xda\x00\x02" + bytes(50)), "image/jpeg") is None
    assert image_size(jpeg(640, 0), "image/jpeg") is None
    assert image_size(encoded(b"\xff\xd8\xff\xe0\x00\x00" + bytes(50)), "image/jpeg") is None


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (MAX_SIDE + 1, 5), (5, 2**32 - 1)])
def test_an_impossible_size_is_none(size):
    assert image_size(png(*size), "image/png") is None


@pytest.mark.parametrize(
    "data", ["", "=", "====", "AAAA", "no base64!", "data:", "data:image/png", "中文" * 50, "\ud800" * 99]
)
def test_what_is_no_image_has_no_size(data):
    assert image_size(data, "image/png") is None


@every_image
def test_an_image_that_ends_within_its_header_has_no_size(data):
    # The least that names a size is the 10 bytes of a GIF.
    for size_bytes in range(10):
        assert image_size(encoded(base64.b64decode(data)[:size_bytes]), "image/png") is None


@pytest.mark.parametrize("size_bytes", range(16, 24))
def test_a_png_that_ends_within_its_size_has_none(size_bytes):
    assert image_size(encoded(base64.b64decode(PNG)[:size_bytes]), "image/png") is None


@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(encoded)))
def test_no_text_raises(data):
    size = image_size(data, "image/png")
    assert size is None or all(0 < side <= MAX_SIDE for side in size)


@given(st.sampled_from(sorted(IMAGES.values())), st.data())
def test_a_cut_or_changed_image_raises_nothing(data, draw):
    content = bytearray(base64.b64decode(data))[: draw.draw(st.integers(0, 200))]
    for at in draw.draw(st.lists(st.integers(0, 199), max_size=6)):
        if at < len(content):
            content[at] = draw.draw(st.integers(0, 255))
    size = image_size(encoded(bytes(content)), "image/png")
    assert size is None or all(0 < side <= MAX_SIDE for side in size)
