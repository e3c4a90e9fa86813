"""CPU from spawning the server to its answer to `initialize`, against that of `import mcp`.

    python tests/bench/startup.py [REPEATS]

Prints the median of alternated repeats and the ratio of the two, which is to be at most 1.3.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
SERVE = "from mcp_compact.server import serve; raise SystemExit(serve('stdio'))"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
TICKS = os.sysconf("SC_CLK_TCK")


def import_cpu_s() -> float:
    """CPU of a process that imports mcp and ends at once."""
    process = subprocess.Popen([sys.executable, "-c", "import mcp, os; os._exit(0)"])
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


def initialize_cpu_s(folder: str) -> float:
    """CPU of a server's process when its answer to `initialize` has arrived."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPO), "MCP_COMPACT_DB": str(Path(folder) / "archive.db")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    used = spent_s(process.pid)
    assert answer["result"]["serverInfo"]["name"] == "mcp-compact"
    process.stdin.close()
    process.stdout.close()
    assert process.wait() == 0
    return used


def spent_s(pid: int) -> float:
    """CPU that a running process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    imports: list[float] = []
    servers: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            imports.append(import_cpu_s())
            servers.append(initialize_cpu_s(folder))
    base, ours = statistics.median(imports), statistics.median(servers)
    print(f"import mcp {base:.2f} s CPU; spawn to initialize {ours:.2f} s CPU; ratio {ours / base:.2f} (at most 1.3)")


if __name__ == "__main__":
    main()
