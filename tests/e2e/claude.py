"""Claude Code as a person uses it: a home of its own, a model on the loopback, one process for a whole conversation."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.endpoint import Json, Model

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = "claude-sonnet-4-5"
SERVER = "plugin:mcp-compact:mcp-compact"
TOOL = "mcp__plugin_mcp-compact_mcp-compact__"
SECONDS = 240
"""A guard against hanging, far above what a turn takes."""

ALLOWED = f"Read,{TOOL}compact_session,{TOOL}get_context_status,{TOOL}search_messages,{TOOL}pin_instruction"
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TERM")


@dataclass
class Claude:
    """The client with a home, a project and a model."""

    program: Path
    home: Path
    project: Path
    model: Model
    env: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home / ".claude"

    @property
    def database(self) -> Path:
        return Path(self.env.get("MCP_COMPACT_DB") or self.home / "data" / "archive.db")

    def environment(self) -> dict[str, str]:
        """Nothing of whoever runs the tests; whatever is not loopback is asked of our own proxy, which refuses it."""
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {
            **own, "HOME": str(self.home), "MCP_COMPACT_DB": str(self.database), "PYTHONDONTWRITEBYTECODE": "1",
            "ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1",
            "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false",
            "MCP_CONNECTION_NONBLOCKING": "false", "MCP_TIMEOUT": "120000",
            "HTTPS_PROXY": self.model.url, "HTTP_PROXY": self.model.url, "NO_PROXY": "127.0.0.1,localhost",
            **self.env,
        }  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the client's own."""
        return self._run([str(self.program), *words])

    def ours(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of ours, in the same home and project. The client is on the path, as on a person's machine."""
        env = {"PYTHONPATH": str(REPOSITORY), "PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}"}
        return self._run([sys.executable, "-P", "-m", "mcp_compact", *words], env)

    def ours_json(self, *words: str) -> Any:
        """Its answer; an error fails the test."""
        done = self.ours(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _run(self, words: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env={**self.environment(), **(env or {})}, cwd=self.project, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip

    @contextmanager
    def conversation(self, resume: str = "") -> Iterator[Conversation]:
        """A conversation in one process, as the interactive client holds it."""
        words = [
            str(self.program),
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
        ]
        words += ["--model", MODEL, "--allowedTools", ALLOWED, *(["--resume", resume] if resume else [])]
        with subprocess.Popen(
            words, env=self.environment(), cwd=self.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            guard = threading.Timer(SECONDS, process.kill)
            guard.start()
            talk = Conversation(process, self.model)
            try:
                yield talk
                _, errors = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, errors
            finally:
                guard.cancel()
                process.kill()

    def transcript(self, session: str) -> Path:
        """The session's file."""
        (found,) = (self.folder / "projects").rglob(f"{session}.jsonl")
        return found

    def messages(self, session: str) -> set[str]:
        """The uuids of the messages in the client's own transcript."""
        return {record["uuid"] for record in self.records(session) if record["type"] in ("user", "assistant")}

    def archived(self, session: str) -> list[str]:
        """The uuids that the archive holds of a session, one for each row; the archive itself is whole."""
        query = "SELECT r.uuid FROM record r JOIN session s ON s.id = r.session WHERE s.session_id = ?"
        with closing(sqlite3.connect(self.database)) as conn:
            assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return [row[0] for row in conn.execute(query, (session,))]

    def holds_all(self, session: str) -> bool:
        """Whether the archive comes to hold every message of a session: once it has ended, a hook goes on alone."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if self.messages(session) <= set(self.archived(session)):
                return True
            time.sleep(0.2)
        return False

    def records(self, session: str) -> list[Json]:
        return [json.loads(line) for line in self.transcript(session).read_text(encoding="utf-8").splitlines()]


@dataclass
class Conversation:
    """What is said to a running client, and what it says."""

    process: subprocess.Popen[str]
    model: Model
    session: str = ""
    events: list[Json] = field(default_factory=list)

    def ask(self, text: str) -> list[Json]:
        """Say something and wait for the turn's end; the requests that reached the model meanwhile."""
        before = len(self.model.requests)
        message = {"type": "user", "message": {"role": "user", "content": text}}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["type"] == "result":
                self.session = event["session_id"]
                assert not event["is_error"], event
                return self.model.requests[before:]
        assert self.process.stderr
        raise AssertionError(f"the client ended: {self.process.stderr.read()}")

    def connect(self, turns: int = 40) -> None:
        """Talk until our server is connected: the client does not wait for it before its first turn."""
        for _ in range(turns):
            self.ask("hello")
            if self.server_state() == "connected":
                return
        raise AssertionError(f"the server is {self.server_state()!r} after {turns} turns")

    def server_state(self) -> str:
        """What the client said last of our server."""
        inits = [event for event in self.events if event.get("subtype") == "init"]
        return next((s["status"] for e in reversed(inits[-1:]) for s in e["mcp_servers"] if s["name"] == SERVER), "")

    def said(self) -> str:
        """The end of the last turn."""
        return str(self.events[-1].get("result", ""))
