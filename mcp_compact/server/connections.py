"""uvicorn's HTTP/1.1 connections: an end for those that never send a request, an answer for those that just came."""

from __future__ import annotations

import asyncio  # noqa: TID251 - uvicorn's connections are asyncio's protocols
import socket
from contextlib import suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

FIRST_REQUEST_S = 1.0
"""How long a server that ends waits for the first request of a connection that it had taken."""

TURNS = 3
"""Of the event loop, from a socket taken to its transport."""


class PatientConnection(H11Protocol):
    """A connection that is closed where the headers of a request do not come in time.

    uvicorn waits for ever for a client that connects and says nothing, or half a header: enough of them, and
    nobody else gets in.
    """

    headers_s: float = 30
    is_ending: bool = False
    """Of the class: the server ends, and whoever it took already gets one answer."""
    _has_asked: bool = False
    _waiting: asyncio.TimerHandle | None = None

    # uvicorn narrows the transport's type as asyncio's own protocols do not.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.is_ending:
            self.shutdown()
        else:
            self._wait(self.headers_s)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._has_asked = True
            self._stop_waiting()
            if self.is_ending:
                super().shutdown()
        elif self._waiting is None and not self.transport.is_closing():
            # The first bytes of the next request on a kept connection, which ended uvicorn's own timer.
            self._wait(self.headers_s)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close after the answer that is being made, or that the first request is about to need.

        uvicorn closes a connection that asked nothing yet: a request that is on its way is then reset.
        """
        if not self._has_asked and not self.transport.is_closing():
            self._stop_waiting()
            self._wait(FIRST_REQUEST_S)
        else:
            super().shutdown()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self, seconds: float) -> None:
        self._waiting = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()


def patient(headers_s: float) -> type[PatientConnection]:
    """The class of connections whose headers have to come within so many seconds."""
    return type("PatientConnection", (PatientConnection,), {"headers_s": headers_s})


class GracefulServer(uvicorn.Server):
    """A server that turns nobody away whose connection it has taken."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop as uvicorn does, after the connections that were taken have become connections."""
        protocol = self.config.http_protocol_class
        if issubclass(protocol, PatientConnection):
            protocol.is_ending = True
        loop = asyncio.get_running_loop()
        # The loop of Windows has no readers: there uvicorn alone closes what it listens with.
        with suppress(NotImplementedError):
            for listener in sockets or []:
                loop.remove_reader(listener.fileno())
        # asyncio makes a transport in a task of its own, and drops the socket where the server is closed by then.
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await super().shutdown(sockets)
