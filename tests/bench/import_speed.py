"""Import against its parts: CPU seconds of importing a transcript, and of the least that any import must do.

    python tests/bench/import_speed.py [FILES]

The least: json.loads of every line, raw tiktoken of the strings that are counted, raw executemany of
the rows that the import wrote, into the same tables. Files are repeated (with new uuids and ids) until they have 4 MB; both sides
run alternately in one process, the medians and their ratio are printed, and how much memory grew.
"""

from __future__ import annotations

import json
import re
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact.adapters.tokenizers.ranks import load_encoding
from mcp_compact.config import load_settings
from mcp_compact.messages.weights import countable
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.wiring import open_service

LEAST_BYTES = 4 << 20
REPEATS = 5
UUID = re.compile(rb'"uuid":"([^"]+)"')
ID = re.compile(rb"(?<=[\"_-])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:toolu|msg)_\w+)")


def renamed(data: bytes, suffix: bytes) -> bytes:
    """The data with its ids ending in `suffix`."""
    return ID.sub(lambda match: match[0][: -len(suffix)] + suffix, data)


def enlarged(path: Path, folder: Path) -> Path:
    """The file repeated until it is large enough, every copy with ids of its own, going on from the copy before."""
    data = path.read_bytes()
    data = data if data.endswith(b"\n") else data + b"\n"
    out = folder / path.name
    with out.open("wb") as stream:
        copy, part = 0, data
        while stream.tell() < LEAST_BYTES:
            stream.write(part)
            copy += 1
            last = UUID.findall(part)[-1]
            # A root in the middle would be a conversation that was taken back to its start a hundred times.
            part = renamed(data, b"%03d" % copy).replace(b'"parentUuid":null', b'"parentUuid":"%s"' % last, 1)
    return out


def ours(path: Path, folder: Path) -> Path:
    """Import into a new archive; the archive's file."""
    db = folder / "ours.db"
    for old in folder.glob("ours.db*"):
        old.unlink()

    async def run() -> None:
        async with open_service(replace(load_settings({}), db=db)) as service:
            await service.import_file(path)

    anyio.run(run)
    return db


def strings_of(path: Path) -> list[str]:
    """The strings that an import counts."""
    with path.open("rb") as stream:
        records = [
            parsed.record for parsed in ClaudeCodeReader("x").read(read_lines(iter(lambda: stream.read(1 << 20), b"")))
        ]
    return [text for record in records if record.is_message for text in countable(record.blocks)[0]]


def rows_of(db: Path) -> dict[str, tuple[list[str], list[tuple[object, ...]]]]:
    """Each table's DDL with its indexes, and its rows as the import left them."""
    connection = sqlite3.connect(db)
    query = "SELECT name, sql, tbl_name FROM sqlite_schema WHERE type = ? AND sql NOT NULL"
    indexes: dict[str, list[str]] = {}
    for _, sql, table in connection.execute(query, ("index",)):
        indexes.setdefault(table, []).append(sql)
    tables = [
        (name, [sql, *indexes.get(name, [])])
        for name, sql, _ in connection.execute(query, ("table",))
        if "fts" not in name and not name.startswith("sqlite_") and "VIRTUAL" not in sql
    ]
    return {name: (sql, connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name, sql in tables}


def least(
    path: Path, strings: list[str], rows: dict[str, tuple[list[str], list[tuple[object, ...]]]], folder: Path
) -> None:
    """What any import must do."""
    encode = load_encoding().encode_ordinary
    with path.open("rb") as stream:
        for line in stream:
            if line.strip():
                try:
                    json.loads(line)
                except ValueError:
                    continue
    for text in strings:
        encode(text)
    for old in folder.glob("least.db*"):
        old.unlink()
    connection = sqlite3.connect(folder / "least.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    for name, (statements, values) in rows.items():
        for statement in statements:
            connection.execute(statement)
        if values:
            marks = ",".join("?" * len(values[0]))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)
    connection.execute("COMMIT")
    connection.close()


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this process, all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print a line a file, and the worst ratio."""
    shared = ROOT.parent / "shared" / "transcripts"
    files = [Path(name) for name in sys.argv[1:]] or sorted(
        [*shared.glob("claude-code/*.jsonl"), *shared.glob("recall/*.jsonl")]
    )
    load_encoding()
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in files:
            large = enlarged(path, folder)
            rows, strings = rows_of(ours(large, folder)), strings_of(large)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            pairs = []
            for _ in range(REPEATS):
                mine = cpu(lambda: ours(large, folder))
                pairs.append((mine, cpu(lambda: least(large, strings, rows, folder))))
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            worst = max(worst, ratio)
            print(
                f"{path.name[-44:]:44} {large.stat().st_size >> 20:3} MB  ours {mine:6.3f} s  least {other:6.3f} s  ratio {ratio:4.2f}  memory +{grown >> 10} MB"
            )
            large.unlink()
    print(f"worst ratio {worst:.2f}")


if __name__ == "__main__":
    main()
