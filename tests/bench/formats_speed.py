"""Import of every format but Claude Code's against its parts, as import_speed.py does it for Claude Code's.

    python tests/bench/formats_speed.py [FORMATS]

A made-up session of at least 4 MB is written in each format. CPU seconds of importing it, and of the least that any
import must do (JSON, raw tiktoken, raw inserts), by turns in one process; the medians, their ratio, and how much
memory grew beside the size of the file.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from mcp_compact.messages.weights import countable
from tests.bench.import_speed import LEAST_BYTES, least, ours, rows_of
from tests.transcripts.foreign import WRITERS, Call, Turn, mini_swe, read

FORMS = {**WRITERS, "mini-swe": mini_swe}
"""Each format, and the form of one that is another client's."""
READ_AS = {"mini-swe": "swe-agent"}
REPEATS = 3
LARGE_BYTES = 32 << 20
STREAMED = ("copilot-cli", "pi", "codex")
"""Formats of one entry a line."""


def session(least_bytes: int) -> list[Turn]:
    """A made-up session whose texts have about so many bytes; a result has 2 kB, an answer 450 bytes, as real ones have."""
    turns: list[Turn] = []
    held = 0
    while held < least_bytes:
        number = len(turns)
        code = "\n".join(f"def step_{number}_{line}(value): return value + {line}" for line in range(number % 60 + 5))
        said = f"I read part {number % 7} and look for what step {number} does to its value. " * 6
        calls = (
            Call("read", {"path": f"src/part_{number % 7}.py"}, code),
            Call("run", {"command": "pytest"}, code.upper()),
        )
        turns.append(Turn(f"Change step {number}.", ((said, calls),)))
        held += 2 * len(code) + len(said) + 200
    return turns


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of a piece of work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(name: str, folder: Path) -> str:
    """One line of the table."""
    size = LEAST_BYTES if name != "api-log" else LEAST_BYTES // 16
    data = FORMS[name](session(size))
    path = folder / f"{name}.json"
    path.write_bytes(data)
    found = read(READ_AS.get(name, name), data)[1]
    strings = [text for item in found if item.record.is_message for text in countable(item.record.blocks)[0]]
    rows = rows_of(ours(path, folder))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    imports, parts = [], []
    for _ in range(REPEATS):
        imports.append(seconds(lambda: ours(path, folder)))
        parts.append(seconds(lambda: least(path, strings, rows, folder)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) >> 10
    own, floor = statistics.median(imports), statistics.median(parts)
    return f"{name:12} {len(data) / 1e6:6.1f} MB  import {own:6.2f} s  least {floor:6.2f} s  {own / floor:5.2f} x  grew {grown} MB"


def memory(name: str) -> str:
    """One line: the growth of this process. Nothing else may have been imported in it."""
    with tempfile.TemporaryDirectory() as place:
        small, large = Path(place, "small.jsonl"), Path(place, "large.jsonl")
        small.write_bytes(WRITERS[name](session(1 << 18)))
        part = session(1 << 18)
        with large.open("wb") as stream:
            for number in range(LARGE_BYTES >> 18):
                # Every copy with ids of its own.
                stream.write(WRITERS[name](part).replace(b"-", b"-%d-" % number))
        ours(small, Path(place))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ours(large, Path(place))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        longest = max(map(len, large.open("rb")))
        return f"{name:12} {large.stat().st_size / 1e6:6.1f} MB  longest line {longest / 1e3:.0f} kB  grew {grown} MB"


if __name__ == "__main__" and sys.argv[1:2] == ["--memory"]:
    for format_name in sys.argv[2:] or STREAMED:
        if len(sys.argv) == 3:  # one format: in this process
            print(memory(format_name), flush=True)
        else:
            subprocess.run([sys.executable, __file__, "--memory", format_name], check=True)
elif __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for format_name in sys.argv[1:] or FORMS:
            print(measure(format_name, Path(place)), flush=True)
