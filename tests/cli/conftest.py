"""Helpers for tests of the command line: run it in this process or as the real program, with an archive of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.cli.main import main

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def archive(tmp_path, monkeypatch) -> Path:
    """An archive's path that the settings name; nothing is there yet."""
    path = tmp_path / "archive" / "archive.db"
    monkeypatch.setenv("MCP_COMPACT_DB", str(path))
    return path


@pytest.fixture
def command(capfd, archive) -> Callable[..., Ended]:
    """Run a command in this process, with an archive of its own."""

    def run(*words: str) -> Ended:
        capfd.readouterr()
        code = main(words)
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return run


@pytest.fixture
def program(archive) -> Callable[..., Ended]:
    """Run the real program as a process of its own."""

    def run(*words: str, stdin: bytes = b"", env: dict[str, str] | None = None, cwd: Path | None = None) -> Ended:
        surroundings = {**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})}
        done = subprocess.run(
            [sys.executable, "-m", "mcp_compact", *words],
            input=stdin, capture_output=True, env=surroundings, cwd=cwd, timeout=120, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def transcript(tmp_path) -> Path:
    """A small Claude Code session of a made-up project."""
    path = tmp_path / "project" / "session.jsonl"
    path.parent.mkdir()
    path.write_text(as_lines(records(tmp_path / "project")), encoding="utf-8")
    return path


def as_lines(items: Sequence[Any]) -> str:
    """JSON lines."""
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def records(cwd: Path, rounds: int = 30) -> list[dict[str, Any]]:
    """Records of a session: a request, then rounds of reading a file and saying what was seen."""
    made: list[dict[str, Any]] = []

    def add(role: str, content: Any, **message: Any) -> None:
        number = len(made)
        made.append(
            {
                "type": role, "uuid": f"00000000-0000-4000-8000-{number:012d}",
                "parentUuid": made[-1]["uuid"] if made else None, "sessionId": "5e551011-0000-4000-8000-000000000001",
                "cwd": str(cwd), "version": "2.1.0", "isSidechain": False, "userType": "external",
                "timestamp": f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00.000Z",
                "message": {"role": role, "content": content, **message},
            }
        )  # fmt: skip

    add("user", "Please rename the tide gauges everywhere. Never touch the folder vendor/.")
    for at in range(rounds):
        call = f"toolu_{at:04d}"
        answer = {"id": f"msg_{at:04d}", "type": "message", "model": "claude-sonnet-4-5", "stop_reason": "tool_use"}
        use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": f"src/gauge_{at}.py"}}
        add("assistant", [{"type": "text", "text": f"Now file {at}."}, use], **answer)
        body = "\n".join(f"def gauge_reading_{at}_{line}(level): return level * {line}" for line in range(60))
        add("user", [{"type": "tool_result", "tool_use_id": call, "content": body}])
    end = {"id": "msg_end", "type": "message", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
    add("assistant", [{"type": "text", "text": "All gauges are renamed."}], **end)
    return made
