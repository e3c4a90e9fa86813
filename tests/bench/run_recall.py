"""Runs the recall benchmark over the handed transcripts with our adapter.

    python tests/bench/run_recall.py [--halves] [options of the benchmark, default: -b llm,10000]

`--halves` prints our figures for each half of the sessions as well: parted by repository (the one with most cuts,
and all others) and by session (every second one). What is fitted to some sessions shows there as a gap.

The benchmark and its transcripts are looked for where the tests look for their data (see CONTRIBUTING.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MCP_COMPACT_SHARED") or ROOT.parent / "shared")
ADAPTER = "tests/bench/recall_adapter.py:compact"
SHOWN = ("frr_ctx", "frr_far", "instr", "novel")
Row = Mapping[str, Any]


def referee(methods: Iterable[str]) -> list[str]:
    """The benchmark's command over every session, for methods named as `file:function`. Exits where it is not there."""
    script = SHARED / "bench" / "recall.py"
    if not script.is_file():
        print(f"there is no recall benchmark at {script}; see CONTRIBUTING.md, test data", file=sys.stderr)
        raise SystemExit(2)
    files = sorted([*SHARED.glob("transcripts/recall/*.jsonl"), *SHARED.glob("transcripts/claude-code/*.jsonl")])
    return [sys.executable, str(script), *map(str, files), *(part for name in methods for part in ("-c", name))]


def main() -> int:
    """The benchmark's own exit code."""
    asked = [option for option in sys.argv[1:] if option != "--halves"] or ["-b", "llm,10000"]
    command = [*referee([ADAPTER]), *asked]
    if "--halves" not in sys.argv[1:]:
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        code = subprocess.run([*command, "--out", str(out)], cwd=ROOT, check=False).returncode
        if code == 0:
            rows = [row for row in json.loads(out.read_text())["rows"] if row["method"] == "recall_adapter.py:compact"]
            print_halves(rows, repositories(SHARED))
        return code


def repositories(shared: Path) -> dict[str, str]:
    """Which repository each transcript comes from, by its file's name."""
    found: dict[str, str] = {}
    for index in (shared / "transcripts" / "index.json", shared / "transcripts" / "recall" / "index.json"):
        if index.is_file():
            found |= {Path(item["file"]).name: item.get("source_repo", "") for item in json.loads(index.read_text())}
    return found


def print_halves(rows: list[Row], repository_of: Mapping[str, str]) -> None:
    """A table of our figures for each half."""
    of = {row["file"]: repository_of.get(row["file"]) or row["file"].split("__")[0] for row in rows}
    most = Counter(of[row["file"]] for row in rows).most_common(1)[0][0]
    second = set(sorted(of)[1::2])
    halves = {
        f"repository {most}": {file for file in of if of[file] == most},
        "other repositories": {file for file in of if of[file] != most},
        "sessions 1, 3, 5, ...": set(of) - second,
        "sessions 2, 4, 6, ...": second,
    }
    print(f"\n| half | budget | cuts | {' | '.join(SHOWN)} |\n{'|---' * (3 + len(SHOWN))}|")
    for name, files in halves.items():
        for budget in dict.fromkeys(str(row["budget"]) for row in rows):
            own = [row for row in rows if row["file"] in files and str(row["budget"]) == budget]
            print(f"| {name} | {budget} | {len(own)} | {' | '.join(mean(row[key] for row in own) for key in SHOWN)} |")


def mean(values: Iterable[float | None]) -> str:
    """The mean of those that are there."""
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.3f}" if known else ""


if __name__ == "__main__":
    raise SystemExit(main())
