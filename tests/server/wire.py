"""A client that speaks to the server's process in raw lines, and sees everything that comes back."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

REPO = Path(__file__).resolve().parents[2]
WAIT_S = 60
"""A guard against hanging, far beyond what any answer takes."""
FOREVER_S = 3_600.0


def serving(answers_s: float = FOREVER_S, grace_s: float = FOREVER_S) -> str:
    """A program that serves over stdio and has so long to answer, and to end, after its input ended.

    With the default it is never ended by its own clock, however busy the machine: that it ends at all shows that
    every call was answered, and every thread, task and connection closed in order.
    """
    return (
        "from mcp_compact.server import stdio, transports; "
        f"stdio.LAST_ANSWERS_S, transports.GRACE_S = {answers_s}, {grace_s}; "
        "raise SystemExit(transports.serve('stdio'))"
    )


SERVE = serving()
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """A server process and its three streams."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None, program: str = SERVE) -> None:
        here = {name: value for name, value in os.environ.items() if not name.startswith("MCP_COMPACT_")}
        here |= {"PYTHONPATH": str(REPO), "MCP_COMPACT_DB": str(folder / "archive.db"), **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=here,
        )
        self.lines: list[bytes] = []
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._held: dict[object, dict[str, Any]] = {}
        self._errors: list[bytes] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()
        self._count = 0
        self.modern = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    @property
    def stderr(self) -> str:
        return b"".join(self._errors).decode("utf-8", "replace")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            try:
                self._answers.put(json.loads(line))
            except ValueError:
                # Not protocol: the tests look at `lines` and fail there.
                continue
        self._answers.put(None)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)

    def raw(self, line: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request as ASCII JSON, so that a lone surrogate goes out escaped; its id."""
        self._count += 1
        params = dict(params or {})
        if self.modern:
            params["_meta"] = ENVELOPE
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.raw(json.dumps(message).encode() + b"\n")
        return self._count

    def answer(self, name: object) -> dict[str, Any]:
        """The answer to a request; others that come first are kept."""
        while name not in self._held:
            message = self._answers.get(timeout=WAIT_S)
            if message is None:
                raise AssertionError(f"the server ended without an answer to {name}; it said: {self.stderr}")
            if "method" not in message:
                self._held[message.get("id")] = message
        return self._held.pop(name)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return self.answer(self.send(method, params))

    def handshake(self, version: str = "2025-11-25") -> dict[str, Any]:
        """Initialize with a version of the protocol; the server's result."""
        client = {"name": "raw", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})
        self.raw(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        result: dict[str, Any] = answer["result"]
        return result

    def start_call(self, tool: str, **arguments: Any) -> int:
        """Send a tool call; its id."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool call that succeeds."""
        return data_of(self.answer(self.start_call(tool, **arguments)))

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a tool call that fails."""
        result = self.answer(self.start_call(tool, **arguments))["result"]
        assert result["isError"], result
        text: str = result["content"][0]["text"]
        return text

    def leave(self) -> int:
        """Close the server's input; its exit code. Raises subprocess.TimeoutExpired if it stays."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=WAIT_S)
        for thread in self._threads:
            thread.join()
        return code

    def check_protocol(self) -> None:
        """Every line on standard output is one JSON-RPC message."""
        for line in self.lines:
            message = json.loads(line.decode("utf-8"))
            assert message["jsonrpc"] == "2.0"
            assert "result" in message or "error" in message or "method" in message


def data_of(answer: dict[str, Any]) -> dict[str, Any]:
    assert "result" in answer, answer
    assert not answer["result"].get("isError"), answer["result"]["content"]
    data: dict[str, Any] = answer["result"]["structuredContent"]
    return data
