"""A transcript that is imported again and again while it grows gives what it gives when it is imported at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from anyio import to_thread

from mcp_compact.errors import CallerError
from mcp_compact.service.service import Service
from tests.fuzz.importing import emptied, everything, look, session_ids

STEM = "growing"


def cuts(chance: Random, data: bytes) -> list[int]:
    """Where the file ends while it is imported: at lines, as clients write, or anywhere.

    Not between a client's boundary and its summary, which it writes at once: a boundary without one stands for itself.
    """
    at_lines = chance.random() < 0.5
    places, start, is_whole = [0], 0, True
    for line in data.splitlines(keepends=True):
        ends = range(start + len(line), start + len(line) + 1) if at_lines else range(start + 1, start + len(line) + 1)
        places += [end for end in ends if is_whole and (end < start + len(line) or not _is_boundary(line))]
        is_whole = not _is_boundary(line)
        start += len(line)
    return sorted(chance.choice(places) for _ in range(chance.randint(1, 3)))


def _is_boundary(line: bytes) -> bool:
    return b'"compact_boundary"' in line


async def check_growing(service: Service, data: bytes, places: Sequence[int], folder: Path) -> None:
    """Import the whole and, anew, piece by piece, into an archive that is empty. Raises AssertionError."""
    path = folder / f"{STEM}.jsonl"
    wholly = await _imported(service, path, [data])
    piece_by_piece = await _imported(service, path, [*(data[:at] for at in places), data])
    assert piece_by_piece == wholly


async def _imported(service: Service, path: Path, states: Sequence[bytes]) -> tuple[Any, ...]:
    """What is stored after the file was imported in each of its states: records, and the live contexts."""
    for state in states:
        await to_thread.run_sync(path.write_bytes, state)
        try:
            await service.import_file(path)
        except CallerError:
            # So little of it is no transcript yet.
            continue
    records = await look(service, _records)
    contexts = [await everything(service, session, "anthropic") for session in sorted(await look(service, session_ids))]
    await emptied(service)
    await to_thread.run_sync(path.unlink)
    return records, contexts


def _records(conn: sqlite3.Connection) -> list[tuple[str, str, bytes]]:
    return conn.execute(
        "SELECT s.session_id, r.uuid, r.body_hash FROM record r JOIN session s ON s.id = r.session ORDER BY s.session_id, r.seq"
    ).fetchall()
