"""A provider on the loopback interface that does what a script says, one reply a request, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GUARD_S = 60
"""So long a stalled request is held at most; only a client that never leaves sees it end."""


@dataclass(frozen=True)
class Reply:
    """What one request is answered with."""

    body: object = None
    """Sent as JSON; bytes as they are."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "application/json"
    stalls: bool = False
    """Sends nothing until the client has gone."""
    cut: bool = False
    """Closes the connection in the middle of the body."""

    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Scripted:
    """The running server: its address, the requests so far, and whether a client left a stalled one."""

    address: str
    script: list[Reply]
    seen: list[Seen] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def next_reply(self, request: Seen) -> Reply:
        self.seen.append(request)
        at = len(self.seen) - 1
        return self.script[at] if at < len(self.script) else Reply({"error": "the script is at its end"}, 418)


@contextmanager
def scripted(replies: Sequence[Reply]) -> Iterator[Scripted]:
    """A server that gives these replies in turn."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = False
    state = Scripted(f"http://127.0.0.1:{server.server_address[1]}", list(replies))
    server.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    timeout = GUARD_S

    def do_POST(self) -> None:
        state: Scripted = self.server.state  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = state.next_reply(Seen(self.path, headers, json.loads(body)))
        state.asked.set()
        if reply.stalls:
            # Nothing more is sent by the client: reading ends when it closes the connection.
            if self.rfile.read(1) == b"":
                state.left.set()
            return
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        data = reply.data()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if reply.cut else data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests read what was seen."""
