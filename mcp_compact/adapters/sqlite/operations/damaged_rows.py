"""Rows out of the pages of a damaged file: along its trees as far as they hold, then from pages that no tree reaches.

The form is that of SQLite's published file format: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcp_compact.adapters.sqlite.operations.damaged_pages import HEADER_BYTES, Pages

INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
INNER = (INDEX_INNER, TABLE_INNER)
KINDS = (INDEX_INNER, TABLE_INNER, INDEX_LEAF, TABLE_LEAF)
MOST_PAYLOAD = 1_000_000_000
"""As SQLite allows it."""
_INT_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_FIRST_BLOB, _FIRST_TEXT = 12, 13

Value = int | float | str | bytes | None


class DamagedRowError(Exception):
    """A row that cannot be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it is stored; `rowid` is 0 in tables and indexes without one."""

    rowid: int
    values: tuple[Value, ...]


@dataclass(slots=True)
class Walk:
    """What was met on the way."""

    pages: set[int] = field(default_factory=set)
    damaged_pages: int = 0
    """Pages that a tree needs and that are none of it."""
    damaged_rows: int = 0
    """Rows on readable pages that could not be read."""

    @property
    def is_damaged(self) -> bool:
        return bool(self.damaged_pages or self.damaged_rows)


def walk(pages: Pages, root: int, seen: Walk) -> Iterator[Row]:
    """The rows of a tree of a table or an index, as far as it holds."""
    waiting = [root]
    while waiting:
        number = waiting.pop()
        page = pages.page(number)
        if number in seen.pages or not _is_tree_page(page, number):
            seen.damaged_pages += 1
            continue
        seen.pages.add(number)
        kind, cells = _cells(page, number)
        if kind in INNER:
            start = HEADER_BYTES if number == 1 else 0
            waiting.append(int.from_bytes(page[start + 8 : start + 12], "big"))
            waiting += [int.from_bytes(page[at : at + 4], "big") for at in cells]
        if kind != TABLE_INNER:
            yield from _rows(pages, page, kind, cells, seen)


def strays(pages: Pages, reached: set[int], seen: Walk) -> Iterator[Row]:
    """The rows of pages that no tree reached, and of older versions of pages; the same row may come several times."""
    free = pages.free()
    for number in range(1, pages.count + 1):
        versions = []
        if number not in reached and number not in free:
            versions.append(pages.page(number))
        if number in pages.newer:
            versions.append(pages.older(number))
        for page in versions:
            if _is_tree_page(page, number) and page[HEADER_BYTES if number == 1 else 0] != TABLE_INNER:
                kind, cells = _cells(page, number)
                yield from _rows(pages, page, kind, cells, seen)


def _is_tree_page(page: bytes, number: int) -> bool:
    if not page:
        return False
    start = HEADER_BYTES if number == 1 else 0
    kind, cells = page[start], int.from_bytes(page[start + 3 : start + 5], "big")
    pointers = start + (12 if kind in INNER else 8)
    return kind in KINDS and pointers + 2 * cells <= len(page)


def _cells(page: bytes, number: int) -> tuple[int, list[int]]:
    """The kind of a page, and where its cells are; cells that lie outside of it are left out."""
    start = HEADER_BYTES if number == 1 else 0
    kind, count = page[start], int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + (12 if kind in INNER else 8)
    places = struct.unpack_from(f">{count}H", page, first)
    return kind, [at for at in places if first + 2 * count <= at < len(page) - 3]


def _rows(pages: Pages, page: bytes, kind: int, cells: list[int], seen: Walk) -> Iterator[Row]:
    for at in cells:
        try:
            yield _row(pages, page, kind, at)
        except (DamagedRowError, IndexError, ValueError, struct.error):
            seen.damaged_rows += 1


def _row(pages: Pages, page: bytes, kind: int, at: int) -> Row:
    if kind == INDEX_INNER:
        at += 4
    size, at = _varint(page, at)
    rowid = 0
    if kind == TABLE_LEAF:
        rowid, at = _varint(page, at)
    if not 0 < size <= MOST_PAYLOAD:
        raise DamagedRowError
    return Row(_signed(rowid), _values(_payload(pages, page, at, size, is_table=kind == TABLE_LEAF)))


def _payload(pages: Pages, page: bytes, at: int, size: int, *, is_table: bool) -> bytes:
    """The bytes of a row, with those on overflow pages."""
    usable = pages.usable
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return page[at : at + size]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts, left = [page[at : at + local]], size - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while left > 0:
        more = pages.page(following)
        if not more:
            raise DamagedRowError
        parts.append(more[4 : 4 + min(left, usable - 4)])
        left -= usable - 4
        following = int.from_bytes(more[:4], "big")
    return b"".join(parts)


def _values(payload: bytes) -> tuple[Value, ...]:
    """The columns of a row."""
    end, at = _varint(payload, 0)
    if not at <= end <= len(payload):
        raise DamagedRowError
    values: list[Value] = []
    body = end
    while at < end:
        kind, at = _varint(payload, at)
        value, width = _value(payload, body, kind)
        values.append(value)
        body += width
    if body != len(payload):
        raise DamagedRowError
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _INT_BYTES:
        width = _INT_BYTES[kind]
        return int.from_bytes(payload[at : at + width], "big", signed=True), width
    if kind >= _FIRST_BLOB:
        width = (kind - _FIRST_BLOB) // 2
        data = payload[at : at + width]
        if len(data) != width:
            raise DamagedRowError
        return (data.decode() if kind % 2 else data), width
    match kind:
        case 0:
            return None, 0
        case 7:
            return struct.unpack_from(">d", payload, at)[0], 8
        case 8 | 9:
            return kind - 8, 0
    raise DamagedRowError


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(8):
        byte = data[at + step]
        if byte < 0x80:  # noqa: PLR2004 - seven bits a byte
            return value << 7 | byte, at + step + 1
        value = value << 7 | byte & 0x7F
    return value << 8 | data[at + 8], at + 9


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
