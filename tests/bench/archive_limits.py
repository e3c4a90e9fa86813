"""What the archive costs at its limit: every figure in one run, each against the raw operation or a short session.

    python tests/bench/archive_limits.py [--messages 1000000] [--repeats 15] [--folder FOLDER] [--json] [--no-peers]
                                         [--openhands PYTHON]

CPU time (all threads), medians of alternated repeats; ratios tell, absolute figures depend on the machine. An archive
of a million messages is made first, which takes some minutes, and kept in the folder for the next run. `raw` is the
operation's own SQL, recorded while it runs and run again bare on the same file, all of its rows read. `search` has two:
that, and the same with each body's JSON read, which any answer with words in it must do.
The other libraries are those of the extra `bench`, where they are installed; OpenHands' needs a Python of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench import limits_append, limits_openhands, limits_peers
from tests.bench.limits_session import Measured, by_length
from tests.bench.measuring import Times

SHORT = 1_000
FLAT = {
    "append 1 message": None,
    "micro-compaction": 4.0,
    "session-memory compaction": 2.0,
    "undo": None,
    "live context, a page": None,
    "get_context_status": None,
    "tail of 100": None,
    "original by id": None,
    "search after appends": None,
    "search, newest 20": None,
    "search, best 20": None,
    "search in one session": None,
    "extraction of what is new": None,
}
"""By length; the limits of the two that have one."""
RAW = {"micro-compaction": 3.0, "session-memory compaction": 3.0, "tail of 100": 3.0}


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the table."""

    operation: str
    against: str
    ours: float
    reference: float
    at_most: float | None
    unit: str = "ms"

    @property
    def ratio(self) -> float:
        return self.ours / self.reference

    def line(self) -> str:
        limit = "" if self.at_most is None else f"{self.at_most:g}"
        word = "" if self.at_most is None else "yes" if self.ratio <= self.at_most else "NO"
        figures = f"{self.ours:10.3f} {self.reference:10.3f} {self.unit:4} {self.ratio:7.2f} x {limit:>5} {word}"
        return f"{self.operation:28} {self.against:42} {figures}"


def appending(many: Times, one: Times) -> Iterator[Row]:
    """Rows of the two appends."""
    raw = many.median("insert") + many.median("count")
    yield Row(
        f"append {limits_append.MANY:,} messages", "executemany of the rows + tiktoken", many.median("ours"), raw, 1.4
    )
    apart = one.median("ours") - one.median("count")
    yield Row("append 1, counting apart", "a bare transaction of 5 statements", apart, one.median("raw"), 5.0)


def by_session(short: Measured, long: Measured) -> Iterator[Row]:
    """Rows of the operations on a stored session."""
    for name, most in RAW.items():
        for one in (short, long):
            yield Row(name, f"its SQL, {one.messages:,} messages", *_pair(one, name, f"{name}, raw"), most)
    reading: dict[str, float | None] = {"tail of 100, with bodies": None, "search, newest 20": 3.0}
    for name, limit in reading.items():
        yield Row(name, f"its SQL, {long.messages:,} messages", *_pair(long, name, f"{name}, raw"), None)
        yield Row(name, "its SQL, and the JSON of each body", *_pair(long, name, f"{name}, read"), limit)
    rows = long.reads["get_context_status"]
    yield Row("get_context_status", "one row", float(rows), 1.0, 1.0, "rows")
    for name, limit in FLAT.items():
        ours, theirs = long.times.median(name), short.times.median(name)
        yield Row(name, f"{long.messages:,} against {short.messages:,} messages", ours, theirs, limit)


def _pair(measured: Measured, ours: str, raw: str) -> tuple[float, float]:
    return measured.times.median(ours), measured.times.median(raw)


async def measured(options: argparse.Namespace, folder: Path, kept: Path) -> list[Row]:
    """All rows."""
    sessions = await by_length(kept, (SHORT, options.messages), options.repeats)
    many = await limits_append.append_many(folder, options.repeats)
    one = await limits_append.append_one(folder, 10 * options.repeats)
    return [*appending(many, one), *by_session(sessions[SHORT], sessions[options.messages])]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of the long session")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--folder", type=Path, help="where the large archives are kept (default: a temporary folder)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="leave the other libraries out")
    parser.add_argument("--openhands", default="", help="a Python of its own (3.12 or later) that has openhands-sdk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = options.folder or folder
        kept.mkdir(parents=True, exist_ok=True)
        rows = anyio.run(partial(measured, options, folder, kept))
        peers = _peers(options, folder) if options.peers else []
    _print(options, rows, peers)


def _peers(options: argparse.Namespace, folder: Path) -> list[Mapping[str, object]]:
    repeats = max(3, options.repeats // 3)
    return [*limits_peers.rows(folder, repeats), limits_openhands.row(options.openhands, repeats)]


def _print(options: argparse.Namespace, rows: list[Row], peers: list[Mapping[str, object]]) -> None:
    if options.json:
        told = [asdict(row) | {"ratio": round(row.ratio, 3)} for row in rows]
        print(json.dumps({"messages": options.messages, "rows": told, "peers": peers}, indent=2))
        return
    print(f"{'operation':28} {'against':42} {'ours':>10} {'reference':>10}")
    for row in rows:
        print(row.line())
    if peers:
        print("\n" + limits_peers.table(peers))


if __name__ == "__main__":
    main()
