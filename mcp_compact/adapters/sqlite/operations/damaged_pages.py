"""The pages of an SQLite file that may be damaged, read without SQLite, which would refuse it.

Each page is read by itself, so that none is lost for another's damage. The form is that of SQLite's published file
format: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

HEADER_BYTES = 100
USUAL_PAGE = 4096
WAL_HEADER, FRAME_HEADER = 32, 24
JOURNAL_MAGIC, JOURNAL_HEADER = bytes.fromhex("d9d505f920a163d7"), 28
COUNT_UNKNOWN = 0xFFFFFFFF
_PAGE_SIZES = {1 << power for power in range(9, 17)}


class Pages:
    """The pages of a database by their numbers from 1, with what its WAL brings. Closed by its `close`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._beside: BinaryIO | None = None
        head = self._file.read(HEADER_BYTES)
        self.size = _page_size(head)
        self.usable = self.size - (head[20] if len(head) == HEADER_BYTES and head[20] <= 32 else 0)  # noqa: PLR2004 - more is damage
        self.newer: dict[int, int] = {}
        """Where in the file beside it the version of a page is that counts: in the WAL, or in a rollback journal that
        a killed process left."""
        length = path.stat().st_size
        for suffix, places in (("-wal", _frames), ("-journal", _originals)):
            beside = path.with_name(path.name + suffix)
            if not self.newer and beside.is_file():
                self.close_beside()
                self._beside = beside.open("rb")
                self.newer = places(self._beside, beside.stat().st_size, self.size)
        self.in_file = -(-length // self.size)
        self.count = max([self.in_file, *self.newer])
        self.schema = int.from_bytes((self.page(1) or head)[60:64], "big")

    def close(self) -> None:
        """Give the files back."""
        self._file.close()
        self.close_beside()

    def close_beside(self) -> None:
        """Give the file beside it back."""
        if self._beside is not None:
            self._beside.close()

    def page(self, number: int) -> bytes:
        """A page as it was written last; empty where it is missing, short or cannot be read."""
        at = self.newer.get(number)
        if at is None or self._beside is None:
            return self.older(number)
        return _read(self._beside, at, self.size)

    def older(self, number: int) -> bytes:
        """The page as the file itself has it, whatever WAL or journal say."""
        return _read(self._file, (number - 1) * self.size, self.size) if 0 < number <= self.in_file else b""

    def free(self) -> set[int]:
        """Pages that the file has given up: what they hold was removed."""
        found: set[int] = set()
        trunk = int.from_bytes(self.page(1)[32:36], "big")
        while trunk and trunk not in found and trunk <= self.count:
            found.add(trunk)
            page = self.page(trunk)
            number = min(int.from_bytes(page[4:8], "big"), self.usable // 4 - 2)
            found.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * number, 4))
            trunk = int.from_bytes(page[:4], "big")
        return found


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    try:
        file.seek(at)
        page = file.read(size)
    except OSError:
        # A sector of the disk that cannot be read is damage like any other.
        return b""
    return page if len(page) == size else b""


def _page_size(head: bytes) -> int:
    size = int.from_bytes(head[16:18], "big")
    size = 1 << 16 if size == 1 else size
    return size if size in _PAGE_SIZES else USUAL_PAGE


def _frames(wal: BinaryIO, length: int, size: int) -> dict[int, int]:
    """The newest frame of each page up to the last commit; those of an earlier use of the file are told by their salt.

    Checksums run through all frames, so one damaged frame spoils those after it: they are not asked.
    """
    heads = list(_heads(wal, length, size))
    wal.seek(16)
    salts = [wal.read(8), *(head[8:16] for _, head in heads)]
    # The header's, or where that is damaged the first one that stands twice.
    salt = next((item for item in salts if any(item) and salts.count(item) > 1), salts[0])
    newest: dict[int, int] = {}
    waiting: dict[int, int] = {}
    for at, head in heads:
        number = int.from_bytes(head[:4], "big")
        if head[8:16] != salt or not number:
            continue
        waiting[number] = at + FRAME_HEADER
        if any(head[4:8]):
            newest.update(waiting)
            waiting.clear()
    return newest


def _heads(wal: BinaryIO, length: int, size: int) -> Iterator[tuple[int, bytes]]:
    for at in range(WAL_HEADER, length - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        wal.seek(at)
        yield at, wal.read(FRAME_HEADER)


def _originals(journal: BinaryIO, length: int, size: int) -> dict[int, int]:
    """The pages as they were before a transaction that nobody ended; SQLite would put them back."""
    found: dict[int, int] = {}
    at, width = 0, 4 + size + 4
    while at + JOURNAL_HEADER <= length:
        journal.seek(at)
        head = journal.read(JOURNAL_HEADER)
        sector = int.from_bytes(head[20:24], "big")
        if not head.startswith(JOURNAL_MAGIC) or not JOURNAL_HEADER <= sector <= 1 << 16:
            break
        first = at + sector
        room = (length - first) // width
        count = int.from_bytes(head[8:12], "big")
        count = room if count == COUNT_UNKNOWN else min(count, room)
        for place in range(first, first + count * width, width):
            journal.seek(place)
            found.setdefault(int.from_bytes(journal.read(4), "big"), place + 4)
        if count <= 0:
            break
        at = -(-(first + count * width) // sector) * sector
    return found
