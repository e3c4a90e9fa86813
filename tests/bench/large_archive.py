"""Archives of a given length for the benchmarks, written by the archive's own operations and kept for the next run.

A session is work on some files as agents do it: a prompt, then calls with their results, now and then an answer.
Old results are cleared on the way; there is no boundary. Everything is in the full-text index.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact.adapters.sqlite import migrations, operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection, check_point
from mcp_compact.adapters.sqlite.operations import indexing
from mcp_compact.compaction.micro import MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.weighing import weigh_records
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Batch, Prepared, SessionFacts, Stamp
from tests.adapters.sqlite.builders import KEY, answer, record, text, use
from tests.bench.measuring import Bar

BLOCK = 10_000
INDEXED_AT_ONCE = 2_000
SHAPE = 1
"""Grows with every change of what is generated: an older archive is not used again."""
MODEL = "claude-sonnet-4-5"
STEP_MS = 1_000
START_MS = 1_700_000_000_000
ALL = MicroRequest(mode=MicroMode.ALL)
RARE = "needle_of_a_thousand"
"""Stands in every thousandth message."""


@cache
def _pool() -> tuple[str, ...]:
    """Paragraphs of real source text: of modules that every Python has."""
    import argparse
    import asyncio.base_events
    import dataclasses
    import typing

    whole = "\n".join(inspect.getsource(m) for m in (argparse, asyncio.base_events, dataclasses, typing))
    lines = whole.splitlines()
    return tuple("\n".join(lines[at : at + 8]) for at in range(0, len(lines) - 8, 8))


def paragraph(number: int) -> str:
    """Some lines of source text."""
    return random.Random(-1 - number).choice(_pool())


def dialogue(number: int, start: int) -> Iterator[Record]:
    """Messages `start` and following of a session without end, about 0.7 KB each."""
    pool = _pool()
    for at in range(start, start + number):
        rng = random.Random(at)
        time_ms = START_MS + at * STEP_MS
        said = rng.choice(pool)
        said += f"\n{RARE} {at}" if at % 1000 == 7 else ""
        match at % 20:
            case 0:
                yield record(f"r{at}", "user", f"please do step {at}: {said[:200]}", at_ms=time_ms)
            case 19:
                yield record(f"r{at}", "assistant", [text(f"step {at}: {said}")], message_id=f"m{at}", at_ms=time_ms)
            case odd if odd % 2:
                block = use(f"t{at}", file_path=f"/src/file{at % 97}.py", offset=at % 900, limit=40)
                yield record(f"r{at}", "assistant", [block], message_id=f"m{at}", at_ms=time_ms)
            case _:
                yield record(f"r{at}", "user", [answer(f"t{at - 1}", said + rng.choice(pool))], at_ms=time_ms)


def batch_of(number: int, start: int) -> Batch:
    """A batch of the session, counted by estimate."""
    records = list(dialogue(number, start))
    weighed = weigh_records(records, None, ClearedText())
    items = [
        Prepared(item, own.estimate, None, own.results, own.cleared, media=own.media, inputs=own.inputs)
        for item, own in zip(records, weighed, strict=True)
    ]
    return Batch(tuple(items), SessionFacts(model=MODEL, cwd="/srv/project", owner="loop"))


def clear_old_results(conn: ArchiveConnection, number: int) -> None:
    """Read, plan and write, as the service does."""
    live = operations.clearable(conn, KEY)
    assert live is not None
    plan = plan_clearing(live, ALL, MicroPolicy())
    assert operations.commit(conn, KEY, plan, Stamp(START_MS, (f"clearing{number}",))).marker is not None


def archive(folder: Path, messages: int) -> Path:
    """The file of an archive with a session of so many messages; made where it is not there yet."""
    version = migrations.schema_versions()[-1][0]
    path = folder / f"archive-{messages}-schema{version}-{SHAPE}.db"
    if path.is_file():
        return path
    making = path.with_suffix(".part")
    making.unlink(missing_ok=True)
    conn = operations.connect(making)
    # Nobody needs the file if this process dies meanwhile.
    conn.execute("PRAGMA synchronous=OFF")
    bar = Bar(f"archive of {messages:,} messages", 2 * messages)
    for start in range(0, messages, BLOCK):
        operations.append(conn, KEY, batch_of(min(BLOCK, messages - start), start), START_MS + start * STEP_MS)
        clear_old_results(conn, start)
        bar.reach(start)
    while left := indexing.waiting(conn):
        indexing.index_batch(conn, INDEXED_AT_ONCE)
        bar.reach(max(messages, 2 * messages - left))
    bar.reach(2 * messages)
    check_point(conn, "TRUNCATE")
    conn.close()
    making.rename(path)
    return path
