"""Draw the two pictures of the session as PNG, with bytes that never vary.

zlib implementations differ in the bytes they emit for the same data, so the deflate
stream is made here: one block of fixed Huffman codes with matches at two distances.
"""

# ruff: noqa: PLR2004  (the numbers are those of the deflate format, RFC 1951)

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable

PALETTE = ((255, 255, 255), (216, 222, 228), (60, 64, 67), (31, 111, 178))
WHITE, GRID, AXIS, BLUE = range(4)
_LENGTHS = (
    tuple((3 + i, 0) for i in range(8))
    + tuple((11 + (i << 1), 1) for i in range(4))
    + tuple((19 + (i << 2), 2) for i in range(4))
    + tuple((35 + (i << 3), 3) for i in range(4))
    + tuple((67 + (i << 4), 4) for i in range(4))
    + tuple((131 + (i << 5), 5) for i in range(4))
)


class _Bits:
    def __init__(self) -> None:
        self.out = bytearray()
        self.hold = 0
        self.count = 0

    def put(self, value: int, width: int) -> None:
        self.hold |= value << self.count
        self.count += width
        while self.count >= 8:
            self.out.append(self.hold & 255)
            self.hold >>= 8
            self.count -= 8

    def code(self, value: int, width: int) -> None:
        self.put(int(f"{value:0{width}b}"[::-1], 2), width)


def _literal(bits: _Bits, symbol: int) -> None:
    if symbol < 144:
        bits.code(0x30 + symbol, 8)
    elif symbol < 256:
        bits.code(0x190 + symbol - 144, 9)
    elif symbol < 280:
        bits.code(symbol - 256, 7)
    else:
        bits.code(0xC0 + symbol - 280, 8)


def _match(bits: _Bits, length: int, distance: int) -> None:
    if length == 258:
        _literal(bits, 285)
    else:
        index = max(i for i, (base, _) in enumerate(_LENGTHS) if base <= length)
        base, extra = _LENGTHS[index]
        _literal(bits, 257 + index)
        bits.put(length - base, extra)
    code, base, extra = 0, 1, 0
    while distance >= base + (1 << extra):
        base += 1 << extra
        code += 1
        extra = max(0, code // 2 - 1)
    bits.code(code, 5)
    bits.put(distance - base, extra)


def deflate(data: bytes, row: int) -> bytes:
    """Compress ``data`` to a zlib stream, looking back one byte and one ``row`` of bytes."""
    bits = _Bits()
    bits.put(0b011, 3)
    at = 0
    while at < len(data):
        best, far = 0, 0
        for distance in (1, row):
            run = 0
            while at >= distance and run < 258 and at + run < len(data) and data[at + run] == data[at + run - distance]:
                run += 1
            if run > best:
                best, far = run, distance
        if best >= 3:
            _match(bits, best, far)
            at += best
        else:
            _literal(bits, data[at])
            at += 1
    _literal(bits, 256)
    bits.put(0, 7)
    return b"\x78\x01" + bytes(bits.out) + struct.pack(">I", zlib.adler32(data))


def png(pixels: list[bytearray]) -> bytes:
    """Encode rows of palette numbers (an even count each) as a 4-bit palette PNG."""
    width, height = len(pixels[0]), len(pixels)
    raw = bytearray()
    for line in pixels:
        raw.append(0)
        raw.extend((line[x] << 4) | line[x + 1] for x in range(0, width, 2))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 4, 3, 0, 0, 0))
        + chunk(b"PLTE", bytes(v for colour in PALETTE for v in colour))
        + chunk(b"IDAT", deflate(bytes(raw), width // 2 + 1))
        + chunk(b"IEND", b"")
    )


def chart(shift_hours: float, width: int = 640, height: int = 400) -> bytes:
    """A day's tide curve with three-hour marks drawn ``shift_hours`` to the right."""
    pixels = [bytearray([WHITE]) * width for _ in range(height)]
    left, right, top, bottom = 48, width - 16, 24, height - 40
    curve = _curve(top, bottom)
    for mark in range(9):
        x = round(left + (right - left) * (mark * 3 + shift_hours) / 24)
        if x < width:
            for y in range(top, bottom + 8):
                pixels[y][x] = GRID if y < bottom else AXIS
    for y in range(top, bottom, 56):
        pixels[y][left:right] = bytearray([GRID]) * (right - left)
    for x in range(left, right):
        y, following = (curve((at - left) / (right - left)) for at in (x, x + 1))
        for spot in range(min(y, following), max(y, following) + 2):
            pixels[spot][x] = BLUE
        pixels[bottom][x] = AXIS
    for y in range(top, bottom):
        pixels[y][left] = AXIS
    return png(pixels)


def _curve(top: int, bottom: int) -> Callable[[float], int]:
    middle, reach = (top + bottom) / 2, (bottom - top) / 2 - 12

    def at(part: float) -> int:
        return round(middle - reach * math.cos(2 * math.pi * (part * 24 - 11.53) / 12.42))

    return at
