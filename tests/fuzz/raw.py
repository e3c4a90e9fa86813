"""What must hold of any file that says it is an export of whole sessions: refused, or taken whole and sound."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.raw_reading import read_export
from mcp_compact.adapters.sqlite.operations.raw_rows import HASH_BYTES, export_lines
from mcp_compact.adapters.sqlite.operations.raw_storing import Taken, take_sessions
from mcp_compact.errors import CallerError
from tests.adapters.sqlite.released_archives import KEYS, fill
from tests.fuzz.importing import sizes
from tests.fuzz.mutations import mutated_bytes, mutated_value


@cache
def lines() -> tuple[bytes, ...]:
    """An export of an archive with something in every table."""
    with closing(operations.connect(":memory:")) as conn:
        fill(conn)
        return tuple(b"".join(export_lines(conn, KEYS, "0")).splitlines(keepends=True))


def mutant(chance: Random) -> bytes:
    """Changed lines with a hash that fits again, or changed bytes."""
    if chance.random() < 0.25:
        return mutated_bytes(chance, b"".join(lines()), b"".join(lines()))
    kept: list[Any] = [json.loads(line) for line in lines()[:-1]]
    for _ in range(chance.randint(1, 3)):
        at = chance.choice((0, *range(len(kept)), *range(len(kept))))
        match chance.choice(("value", "value", "value", "value", "drop", "double", "swap")):
            case "value":
                kept[at] = mutated_value(chance, kept[at], kept)
            case "drop":
                del kept[at]
            case "double":
                kept.insert(at, kept[at])
            case _:
                other = chance.randrange(len(kept))
                kept[at], kept[other] = kept[other], kept[at]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in kept)
    digest = blake2b(data, digest_size=HASH_BYTES).hexdigest()
    return data + json.dumps(["end", len(kept), digest]).encode() + b"\n"


def check_raw(data: bytes, folder: Path) -> str:
    """Take it into a new archive, as the command line does. The code of the refusal, empty where it was taken.

    Raises AssertionError for what must not be, and whatever a defect raises.
    """
    staged = folder / "staged.db"
    staged.unlink(missing_ok=True)
    with closing(operations.connect(":memory:")) as conn:
        taken = _tried(conn, data, staged)
        if isinstance(taken, CallerError):
            assert not any(sizes(conn).values()), f"{taken.code}, and yet something is stored"
            return taken.code
        health = operations.check(conn, bodies=True)
        assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
        assert sizes(conn)["record"] == taken.records
        for key in operations.sessions(conn, "local", cwd=None, limit=100, before_ms=None):
            page = operations.live(conn, key.key, after=0, limit=1_000, max_bytes=1 << 30)
            assert page is not None
    return ""


def _tried(conn: sqlite3.Connection, data: bytes, staged: Path) -> Taken | CallerError:
    try:
        with closing(sqlite3.connect(staged, isolation_level=None)) as own:
            read_export(io.BytesIO(data), len(data), own, lambda *_: None)
        return take_sessions(conn, staged, "local", {})
    except CallerError as error:
        return error
