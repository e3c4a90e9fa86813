"""Width and height of an image, read from the first bytes of its base64.

Only headers are read, never pixels: a PNG, GIF or WebP needs 30 bytes, a JPEG as much as
stands before its frame header (camera data and colour profiles), up to 256 KiB.
The bytes decide what the image is, since media types are often wrong.
"""

from __future__ import annotations

import base64
import struct

MAX_HEADER_BYTES = 256 * 1024
"""A JPEG whose frame header stands later than this has an unknown size."""
MAX_SIDE = 1_000_000
"""Pixels; a longer side is a damaged or hostile header (libpng's own limit)."""

_FIRST_LOOK_BYTES = 48
_READ_STEPS_BYTES = (4 * 1024, 32 * 1024, MAX_HEADER_BYTES)
_WRAPPING = str.maketrans("-_", "+/", " \t\r\n")
"""Line breaks go, the URL alphabet becomes the usual one."""

_JPEG_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_JPEG_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_NO_FRAME_AFTER = frozenset({0xD9, 0xDA})

Size = tuple[int, int]


def image_size(data_base64: str, media_type: str | None) -> Size | None:
    """(width, height) in pixels of a PNG, JPEG, GIF or WebP; None where they cannot be told.

    `data_base64` may be a data URL, wrapped, or cut off after the header. A media type that
    is no image's gives None; otherwise it is ignored. Never raises.
    """
    if media_type and not media_type.strip().lower().startswith("image/"):
        return None
    start = _payload_start(data_base64)
    head = _decode(data_base64, start, _FIRST_LOOK_BYTES)
    size = _jpeg_size(data_base64, start) if head.startswith(b"\xff\xd8\xff") else _fixed_size(head)
    if size is None or not all(0 < side <= MAX_SIDE for side in size):
        return None
    return size


def _payload_start(data_base64: str) -> int:
    """Where the base64 begins: after the comma of a data URL."""
    if data_base64[:5].lower() != "data:":
        return 0
    return data_base64.find(",", 0, 256) + 1


def _decode(data_base64: str, start: int, size_bytes: int) -> bytes:
    """About the first `size_bytes` bytes (a quarter more base64 is read for line breaks); b"" if it is no base64."""
    chars = data_base64[start : start + size_bytes * 5 // 3].translate(_WRAPPING)
    try:
        return base64.b64decode(chars[: len(chars) // 4 * 4], validate=True)[:size_bytes]
    except ValueError:
        return b""


def _fixed_size(head: bytes) -> Size | None:
    """Size from a header whose fields stand at fixed places."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
            return _pair(struct.unpack_from(">II", head, 16))
        if head.startswith((b"GIF87a", b"GIF89a")):
            return _pair(struct.unpack_from("<HH", head, 6))
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _webp_size(head)
    except struct.error:
        return None
    return None


def _webp_size(head: bytes) -> Size | None:
    """The three WebP forms: lossy, lossless, and extended (alpha, animation, metadata)."""
    match head[12:16]:
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L" if head[20:21] == b"\x2f":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X" if len(head) >= 30:
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case _:
            return None


def _jpeg_size(data_base64: str, start: int) -> Size | None:
    """Walks the segments over ever more of the file, since most frame headers come early."""
    for size_bytes in _READ_STEPS_BYTES:
        data = _decode(data_base64, start, size_bytes)
        size = _jpeg_frame(data)
        if size is not None or len(data) < size_bytes:
            return size
    return None


def _jpeg_frame(data: bytes) -> Size | None:
    """Size from the first frame header in `data`; None if it is not there, or the pixels begin before it."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_STANDALONE:
            at += 2
        elif marker in _JPEG_NO_FRAME_AFTER:
            return None
        elif marker in _JPEG_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


def _pair(values: tuple[int, ...]) -> Size:
    width, height = values
    return width, height
