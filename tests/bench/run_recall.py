"""Runs the recall benchmark over the handed transcripts with our adapter.

    python tests/bench/run_recall.py [options of the benchmark, default: -b llm,10000]

The benchmark and its transcripts are looked for where the tests look for their data (see CONTRIBUTING.md).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADAPTER = "tests/bench/recall_adapter.py:compact"


def main() -> int:
    """The benchmark's own exit code."""
    shared = Path(os.environ.get("MCP_COMPACT_SHARED") or ROOT.parent / "shared")
    script = shared / "bench" / "recall.py"
    if not script.is_file():
        print(f"there is no recall benchmark at {script}; see CONTRIBUTING.md, test data", file=sys.stderr)
        return 2
    files = sorted([*shared.glob("transcripts/recall/*.jsonl"), *shared.glob("transcripts/claude-code/*.jsonl")])
    options = sys.argv[1:] or ["-b", "llm,10000"]
    command = [sys.executable, str(script), *map(str, files), "-c", ADAPTER, *options]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
