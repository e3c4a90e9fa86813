"""What a client's hooks cost, in CPU: against the bare start of Python, and against the least that a catch-up must do.

    python tests/bench/hook_speed.py [TRANSCRIPTS; default: the larger ones of the test data]

Prints three tables. Hooks as processes: those that only note are to cost at most 6 starts of Python (`python -c pass`,
with the same options), one that gives what is ready at most 12; one that has to pick up a prompt stands beside them,
without a limit. Catching up, in this process: at most 1.5 times json.loads of every line, raw executemany of the rows
that it wrote and one pass of the estimate over the texts that are counted; the extractor is told apart. And that it is linear: the same bytes in one go and in ten pieces.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact import ancestors
from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.config import Settings, load_settings
from mcp_compact.hooking import catching_up, compacting, notes
from mcp_compact.hooking.given import Given
from mcp_compact.messages.weights import estimate_all
from tests.bench.import_speed import cpu, enlarged, rows_of, strings_of

REPEATS = 9
OPTIONS = ("-S", "-E")
"""Of the Python that is measured: without the site's own start-up code, which differs from place to place."""
LEAST_BYTES = 300_000


def process_cpu(arguments: list[str], given: bytes, env: dict[str, str]) -> float:
    """CPU of a process, from its start to its end."""
    read, write = os.pipe()
    os.write(write, given)
    os.close(write)
    process = subprocess.Popen(arguments, stdin=read, stdout=subprocess.DEVNULL, env=env)
    os.close(read)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def processes(folder: Path, transcript: Path) -> None:
    """The hooks that come often, each as its client starts it."""
    projects = folder / "client" / "projects" / "p"
    projects.mkdir(parents=True)
    path = projects / "session.jsonl"
    path.write_bytes(transcript.read_bytes())
    archive = folder / "archive.db"
    env = os.environ | {"CLAUDE_CONFIG_DIR": str(folder / "client"), "MCP_COMPACT_DB": str(archive)}
    # The package is found beside the script that is run, as it is where it is installed.
    start = [sys.executable, *OPTIONS]
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from mcp_compact.hook import main; raise SystemExit(main())"
    hook = [*start, "-c", code]

    def given(event: str, **more: str) -> bytes:
        base = {"session_id": "session", "transcript_path": str(path), "cwd": str(folder), "hook_event_name": event}
        return json.dumps(base | more).encode()

    announced = given("PreCompact", trigger="auto")
    process_cpu(hook, announced, env)
    conn = hook_rows.open_known(str(archive))
    assert conn is not None
    # A hook that fails is silent, and would be measured as a quick one.
    assert not notes.kept(str(archive)), notes.kept(str(archive))
    [(injection,)] = conn.execute("SELECT injection FROM hook_state").fetchall()

    def ready() -> None:
        conn.execute("UPDATE hook_state SET injection = ?", (injection,))

    def followed() -> None:
        hook_rows.follow(conn, ancestors.own(), ancestors.own(), time.time_ns() // 1_000_000)

    def alone() -> None:
        conn.execute("DELETE FROM follower")
        said = {"role": "user", "content": "The parser fails at line 12, look into it."}
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"type": "user", "uuid": str(uuid.uuid4()), "message": said}) + "\n")

    cases: list[tuple[str, bytes, Callable[[], object], int]] = [
        ("SessionStart, resume", given("SessionStart", source="resume"), int, 6),
        ("UserPromptSubmit", given("UserPromptSubmit", prompt="go on"), int, 6),
        ("Stop, a server follows", given("Stop"), followed, 6),
        ("SessionStart, compact", given("SessionStart", source="compact"), ready, 12),
        ("Stop, no server: a prompt", given("Stop"), alone, 0),
    ]
    base: list[float] = []
    found: dict[str, list[float]] = {name: [] for name, *_ in cases}
    for _ in range(REPEATS):
        base.append(process_cpu([*start, "-c", "pass"], b"", env))
        for name, data, before, _ in cases:
            before()
            found[name].append(process_cpu(hook, data, env))
    conn.close()
    assert not notes.kept(str(archive)), notes.kept(str(archive))
    bare = statistics.median(base)
    print(f"python -c pass: {bare * 1000:.0f} ms CPU")
    for name, _, _, limit in cases:
        own = statistics.median(found[name])
        told = f" (at most {limit})" if limit else ", everything loaded"
        print(f"{name:26} {own * 1000:4.0f} ms  {own / bare:4.1f} x python -c pass{told}")


def caught_up(path: Path, folder: Path, settings: Settings, pieces: int = 1) -> tuple[Path, float]:
    """Catch up with a transcript that comes in so many pieces; the archive, and the CPU of that alone."""
    db, growing = folder / "ours.db", folder / "client" / "projects" / "p" / "growing.jsonl"
    for old in folder.glob("ours.db*"):
        old.unlink()
    growing.write_bytes(b"")
    lines = path.read_bytes().splitlines(keepends=True)
    given = Given({"session_id": "growing", "transcript_path": str(growing), "cwd": str(folder)}, "Stop")
    conn, spent = operations.connect(db), 0.0
    for at in range(pieces):
        with growing.open("ab") as stream:
            stream.writelines(lines[len(lines) * at // pieces : len(lines) * (at + 1) // pieces])
        spent += cpu(lambda: catching_up.catch_up(conn, given, settings, 1))
    conn.close()
    return db, spent


def least(
    path: Path, strings: list[str], rows: dict[str, tuple[list[str], list[tuple[object, ...]]]], folder: Path
) -> None:
    """What any catch-up must do."""
    for line in path.read_bytes().splitlines():
        if line.strip():
            try:
                json.loads(line)
            except ValueError:
                continue
    estimate_all(strings)
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


def announced(db: Path, path: Path, settings: Settings) -> float:
    """CPU of the rest of a PreCompact hook: memory, must-keep lines, what is given back."""
    given = Given({"session_id": "growing", "transcript_path": str(path)}, "PreCompact")
    conn = operations.connect(db)
    spent = cpu(lambda: compacting.announced(conn, given, settings, 2))
    conn.close()
    return spent


def catching_up_table(folder: Path, files: list[Path]) -> None:
    """Each file repeated to 4 MB: ours, the least, their ratio, in ten pieces, and the extractor."""
    settings = replace(load_settings({}), db=folder / "ours.db")
    worst = 0.0
    for path in files:
        large = enlarged(path, folder)
        rows, strings = rows_of(caught_up(large, folder, settings)[0]), strings_of(large)
        pairs = []
        for _ in range(REPEATS // 2 + 1):
            mine = caught_up(large, folder, settings)[1]
            pairs.append((mine, cpu(lambda: least(large, strings, rows, folder))))
        pieces = statistics.median(caught_up(large, folder, settings, 10)[1] for _ in range(3))
        mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        worst = max(worst, ratio)
        rest = announced(caught_up(large, folder, settings)[0], folder / "client/projects/p/growing.jsonl", settings)
        print(
            f"{path.name[-40:]:40} {large.stat().st_size >> 20:3} MB  ours {mine:5.2f} s  least {other:5.2f} s  "
            f"ratio {ratio:4.2f}  ten pieces {pieces / mine:4.2f} x  then memory and texts {rest:5.2f} s"
        )
        large.unlink()
    print(f"worst ratio {worst:.2f} (at most 1.5)")


def main() -> None:
    shared = Path(os.environ.get("MCP_COMPACT_SHARED") or ROOT.parent / "shared") / "transcripts"
    everything = sorted([*shared.glob("recall/*.jsonl"), *shared.glob("claude-code/*.jsonl")])
    files = [Path(name) for name in sys.argv[1:]] or [p for p in everything if p.stat().st_size > LEAST_BYTES]
    if not files:
        raise SystemExit("no transcripts; see CONTRIBUTING.md, test data")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CLAUDE_CONFIG_DIR"] = str(folder / "client")
        processes(folder, files[0])
        catching_up_table(folder, files)


if __name__ == "__main__":
    main()
