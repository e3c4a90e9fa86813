"""uvicorn's HTTP/1.1 connections, with an end for those that never send a request."""

from __future__ import annotations

import asyncio  # noqa: TID251 - uvicorn's connections are asyncio's protocols

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientConnection(H11Protocol):
    """A connection that is closed where the headers of a request do not come in time.

    uvicorn waits for ever for a client that connects and says nothing, or half a header: enough of them, and
    nobody else gets in.
    """

    headers_s: float = 30
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        elif self._waiting is None and not self.transport.is_closing():
            # The first bytes of the next request on a kept connection, which ended uvicorn's own timer.
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.headers_s, self._give_up)

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
