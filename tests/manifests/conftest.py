"""A person's home with no client in it, and the command over it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.cli.install_program import this_program
from mcp_compact.cli.main import main

PROGRAM = cache(this_program)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a space in its name; the working directory is a project in it."""
    folder = tmp_path / "a person's home"
    project = folder / "project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)
    return folder


@pytest.fixture
def manifest(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """`mcp-compact manifest` in this process. How the program is started is looked up once: it takes a process."""
    monkeypatch.setattr("mcp_compact.cli.manifest.this_program", PROGRAM)

    def run(*words: str) -> Ended:
        capsys.readouterr()
        code = main(["manifest", *words])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run


def read_yaml(text: str) -> dict[str, Any]:
    """Mappings in block style whose values are JSON or plain words: what the writer may write, read independently."""
    top: dict[str, Any] = {}
    stack: list[tuple[int, dict[str, Any]]] = [(-1, top)]
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        key, colon, rest = line.strip().partition(":")
        assert colon, line
        while stack[-1][0] >= depth:
            stack.pop()
        if rest.strip():
            try:
                value = json.loads(rest)
            except ValueError:
                value = rest.strip()
            stack[-1][1][key] = value
        else:
            made: dict[str, Any] = {}
            stack[-1][1][key] = made
            stack.append((depth, made))
    return top
