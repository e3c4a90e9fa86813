"""The server's process on a port of this machine, and what a test asks of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

REPO = Path(__file__).resolve().parents[2]
READY = re.compile(rb"MCP at http://([^/]+?):(\d+)(/\w+)[^,]*, (.*)\.")
WAIT_S = 120
"""A guard against hanging."""


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class Web:
    """A server process."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process, self.folder = process, folder
        self.port, self.path, self.who = 0, "", ""
        self.stderr = b""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line
            if found := READY.search(line):
                self.port, self.path, self.who = int(found[2]), found[3].decode(), found[4].decode()
                self._ready.set()
        self._ready.set()

    def wait(self) -> None:
        """Until it answers. Fails where it ended instead."""
        assert self._ready.wait(WAIT_S)
        assert self.port, self.stderr.decode()
        assert self.get("/health").status == 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return self.request("GET", path, None, headers)

    def call(self, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Reply:
        """A tool call of the newest protocol as one raw request."""
        envelope = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": envelope},
        }
        return self.post(json.dumps(body).encode(), {"mcp-method": "tools/call", "mcp-name": name, **(headers or {})})

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        own = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
        }
        return self.request("POST", self.path, body, own | dict(headers or {}))

    def request(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    @asynccontextmanager
    async def client(self, mode: str = "auto", token: str = "") -> AsyncIterator[Client]:
        """The SDK's client."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if self.path == "/sse":
            async with Client(sse_client(self.url, headers=headers), mode=mode) as client:
                yield client
            return
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    def stop(self) -> int:
        """As a service manager stops it; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)


def environment(folder: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    here = {name: value for name, value in os.environ.items() if not name.startswith("MCP_COMPACT_")}
    return here | {"PYTHONPATH": str(REPO), "MCP_COMPACT_DB": str(folder / "archive.db"), **(env or {})}


def command(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command line over the same archive."""
    return subprocess.run(
        [sys.executable, "-m", "mcp_compact", *arguments],
        cwd=folder,
        env=environment(folder, env),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def new_token(folder: Path, name: str, *more: str) -> str:
    """A token as `mcp-compact token add` gives it."""
    made = command(folder, "token", "add", name, "--json", *more)
    assert made.returncode == 0, made.stderr
    token: str = json.loads(made.stdout)["tokens"][0]["token"]
    return token


@contextmanager
def web(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Web]:
    """`mcp-compact serve` on a free port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_compact", "serve", "--port", "0", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(folder, env),
    )
    server = Web(process, folder)
    try:
        server.wait()
        yield server
    finally:
        process.kill()
        process.wait()
        server._thread.join()
        if process.stderr:
            process.stderr.close()
