"""Codex, Gemini CLI and opencode as a person uses them: a home of its own, a model on the loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.claude import KEPT, REPOSITORY, SECONDS
from tests.e2e.clients import node_folder
from tests.e2e.endpoint import Model


@dataclass
class Box:
    """A client's program with a home, a project and a model."""

    program: Path
    base: Path
    model: Model
    env: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def database(self) -> Path:
        return self.base / "data" / "archive.db"

    def environment(self) -> dict[str, str]:
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {
            **own, "HOME": str(self.home), "PATH": f"{node_folder()}{os.pathsep}{os.environ['PATH']}",
            "MCP_COMPACT_DB": str(self.database), "PYTHONDONTWRITEBYTECODE": "1",
            "HTTPS_PROXY": self.model.url, "HTTP_PROXY": self.model.url, "NO_PROXY": "127.0.0.1,localhost",
            **self.env,
        }  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the client's own."""
        start = ["node", str(self.program)] if self.program.suffix == ".js" else [str(self.program)]
        return self._run([*start, *words], {})

    def ours(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of ours; a failure fails the test."""
        done = self._run([sys.executable, "-P", "-m", "mcp_compact", *words], {"PYTHONPATH": str(REPOSITORY)})
        assert done.returncode == 0, done.stderr
        return done

    def _run(self, words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env={**self.environment(), **env}, cwd=self.project, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
