"""Draws the bundle's icon: `python tools/icon.py`. Long lines become short ones, and what was kept stays bright."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

ICON = Path(__file__).resolve().parent.parent / "manifests" / "claude-desktop" / "mcpb" / "icon.png"
SIDE, CORNER = 512, 104
PALETTE = ((0, 0, 0, 0), (31, 41, 55, 255), (156, 163, 175, 255), (52, 211, 153, 255))
CLEAR, GROUND, LINE, KEPT = range(4)
LINES = ((112, 288, LINE), (184, 224, LINE), (256, 160, LINE), (328, 96, LINE), (400, 160, KEPT))
"""Upper edge, width and colour of each line."""
LEFT, HIGH = 112, 40


def pixels() -> list[bytes]:
    """The rows, two bits a pixel."""
    return [_packed([_colour(x, y) for x in range(SIDE)]) for y in range(SIDE)]


def _colour(x: int, y: int) -> int:
    for top, width, colour in LINES:
        if top - HIGH <= y < top and LEFT <= x < LEFT + width:
            return colour
    return GROUND if _is_inside(x, y) else CLEAR


def _is_inside(x: int, y: int) -> bool:
    """Within the square with round corners?"""
    dx, dy = (max(CORNER - value, value - (SIDE - 1 - CORNER), 0) for value in (x, y))
    return dx * dx + dy * dy <= CORNER * CORNER


def _packed(row: list[int]) -> bytes:
    return bytes(a << 6 | b << 4 | c << 2 | d for a, b, c, d in zip(*(iter(row),) * 4, strict=True))


def png() -> bytes:
    """The file."""
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 2, 3, 0, 0, 0)
    colours = b"".join(bytes(colour[:3]) for colour in PALETTE)
    clearness = bytes(colour[3] for colour in PALETTE)
    rows = zlib.compress(b"".join(b"\0" + row for row in pixels()), 9)
    parts = ((b"IHDR", header), (b"PLTE", colours), (b"tRNS", clearness), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


if __name__ == "__main__":
    ICON.write_bytes(png())
