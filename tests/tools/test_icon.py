"""The bundle's icon is the one that is drawn, in the size that Claude Desktop shows."""

from __future__ import annotations

import struct
import zlib

from tools import icon


def test_the_icon_is_a_square_png_of_the_drawn_pixels() -> None:
    data = icon.ICON.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (icon.SIDE, icon.SIDE)
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start], "big")
    # Compressors differ, what they pack does not.
    rows = zlib.decompress(data[start + 4 : start + 4 + length])
    assert rows == b"".join(b"\0" + row for row in icon.pixels())
