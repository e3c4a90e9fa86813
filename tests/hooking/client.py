"""A client that starts hooks as real processes, and the archive that they leave."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.server.talk import jsonl, transcript

REPOSITORY = Path(__file__).resolve().parents[2]
SESSION = "5e551011-0000-4000-8000-000000000007"
RULE = "Please look into module 0; never touch config_0.yaml."


@dataclass(frozen=True, slots=True)
class Said:
    """What a hook said."""

    code: int
    out: str
    err: str

    @property
    def person(self) -> str:
        """The line for the person; empty for none."""
        return json.loads(self.out).get("systemMessage", "") if self.out else ""

    @property
    def context(self) -> str:
        """The text for the model; empty for none."""
        return json.loads(self.out).get("hookSpecificOutput", {}).get("additionalContext", "") if self.out else ""


@dataclass(slots=True)
class ClientFolder:
    """A client's own folder with its transcripts, a project, and an archive."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def archive(self) -> Path:
        return self.root / "data" / "archive.db"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def transcript(self) -> Path:
        return self.root / "client" / "projects" / "-project" / f"{SESSION}.jsonl"

    def write(self, records: list[dict[str, Any]] | bytes, *, more: bool = False) -> None:
        """Write the session's transcript, or go on with it."""
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        data = records if isinstance(records, bytes) else jsonl(records).encode()
        with self.transcript.open("ab" if more else "wb") as stream:
            stream.write(data)

    def talk(self, rounds: int) -> list[dict[str, Any]]:
        """Records of so many rounds: rules, reads and answers."""
        return transcript(SESSION, str(self.project), rounds)

    def given(self, event: str, **fields: Any) -> dict[str, Any]:
        """What the client tells a hook."""
        base = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        return base | {"hook_event_name": event} | fields

    def start(self, *words: str, held: tuple[int, ...] = (), code: str = "") -> subprocess.Popen[bytes]:
        """A hook's process, its input still open; it and its children hold these files open."""
        self.project.mkdir(exist_ok=True)
        known = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_COMPACT_", "CLAUDE"))}
        known |= {
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(self.root),
            "CLAUDE_CONFIG_DIR": str(self.root / "client"),
            "MCP_COMPACT_DB": str(self.archive),
        }
        return subprocess.Popen(
            [sys.executable, *(["-c", code] if code else ["-m", "mcp_compact.hook"]), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.project, env=known | self.env, pass_fds=held,
        )  # fmt: skip

    def raw(self, data: bytes, *words: str, code: str = "") -> Said:
        """Run a hook on these bytes, and wait for a child that it may leave behind."""
        ended, held = os.pipe()
        process = self.start(*words, held=(held,), code=code)
        os.close(held)
        out, err = process.communicate(data, timeout=120)
        # Gives nothing but the end, once nobody holds the other side any more.
        os.read(ended, 1)
        os.close(ended)
        return Said(process.returncode, out.decode(), err.decode())

    def hook(self, event: str, **fields: Any) -> Said:
        """Run a hook for an event."""
        return self.raw(json.dumps(self.given(event, **fields)).encode())

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Look into the archive."""
        conn = sqlite3.connect(self.archive)
        try:
            return conn.execute(sql, values).fetchall()
        finally:
            conn.close()

    def stored(self) -> list[str]:
        """The uuids of the session's records, in order."""
        found = self.rows(
            "SELECT r.uuid FROM record r JOIN session s ON s.id = r.session WHERE s.session_id = ? ORDER BY r.seq",
            SESSION,
        )
        return [uuid for (uuid,) in found]

    def notes(self) -> list[dict[str, Any]]:
        """The faults that were kept."""
        path = self.archive.parent / "hook-notes.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
