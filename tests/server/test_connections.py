"""The end of a server: on every loop, and for whoever it has taken."""

from __future__ import annotations

import asyncio
import socket
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest
import uvicorn

from mcp_compact.server.connections import GracefulServer, patient


class WithoutReaders(asyncio.SelectorEventLoop):
    """As the loop of Windows, which has no readers."""

    def remove_reader(self, fd: Any) -> bool:
        raise NotImplementedError


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, WithoutReaders])
def test_a_server_ends_on_every_loop_and_answers_whom_it_has_taken(loop: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = uvicorn.Config(application, http=patient(30), ws="none", lifespan="off", log_config=None)
    server = GracefulServer(config)

    def serve() -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(server.serve([listener]))

    thread = Thread(target=serve, daemon=True)
    thread.start()
    first, taken = (HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(2))
    first.request("GET", "/")
    assert first.getresponse().read() == b"ok"
    taken.connect()
    first.request("GET", "/")
    assert first.getresponse().read() == b"ok", "the other one is taken by now"
    server.should_exit = True
    taken.request("GET", "/")
    answer = taken.getresponse()
    assert (answer.status, answer.read()) == (200, b"ok")
    thread.join(30)
    assert not thread.is_alive()
    first.close()
    taken.close()
