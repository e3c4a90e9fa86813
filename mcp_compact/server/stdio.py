"""Standard input and output around the SDK's streams: what would end the server, or leave a request unanswered.

The SDK drops a line that its parser refuses, an escaped lone surrogate being enough; a message that cannot be
written as UTF-8 takes the whole server down; and calls are cut off when input ends, which `requests | server` meets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from mcp_compact.messages.codec import clean
from mcp_compact.server.errors import unwritable

Incoming: TypeAlias = SessionMessage | Exception

NEVER_ENDS = "subscriptions/listen"
LAST_ANSWERS_S = 3.5
"""How long requests that were read may still be answered after the end of input."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Unanswered:
    """Requests that were read and have no answer yet."""

    ids: set[str | int] = field(default_factory=set)
    changed: anyio.Event = field(default_factory=anyio.Event)

    def read(self, message: object) -> None:
        """A message came in: a request opens, a cancellation closes one."""
        if isinstance(message, JSONRPCRequest) and message.method != NEVER_ENDS:
            self.ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close((message.params or {}).get("requestId"))

    def written(self, message: object) -> None:
        """A message goes out: an answer closes its request."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    async def none_left(self) -> None:
        """Wait until every request has its answer."""
        while self.ids:
            await self.changed.wait()

    def _close(self, name: object) -> None:
        self.ids = {known for known in self.ids if known != name}
        self.changed.set()
        self.changed = anyio.Event()


class _Closing:
    """What both streams share: closing the SDK's own."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - the SDK's class of streams is private
        self._inner = inner

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Answers(_Closing):
    """The outgoing stream: every message is one that can be written, and the first one sets things off."""

    def __init__(self, inner: Any, on_first: Callable[[], None]) -> None:  # noqa: ANN401
        super().__init__(inner)
        self.unanswered = Unanswered()
        self._on_first: Callable[[], None] | None = on_first

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message, or an error in its place if it cannot be written."""
        await self._inner.send(writable(item))
        self.unanswered.written(item.message)
        if self._on_first is not None:
            self._on_first()
            self._on_first = None


class Requests(_Closing):
    """The incoming stream: lines that the SDK refused are mended or answered here; its end is told."""

    def __init__(self, inner: Any, answers: Answers, on_end: Callable[[], None]) -> None:  # noqa: ANN401
        super().__init__(inner)
        self._answers = answers
        self._on_end = on_end

    @property
    def last_context(self) -> Any:  # noqa: ANN401
        """The sender's context variables, which the SDK asks for."""
        return self._inner.last_context

    async def receive(self) -> Incoming:
        """The next message. Raises anyio.EndOfStream at the end, once what was read is answered or time is up."""
        while True:
            try:
                item: Incoming = await self._inner.receive()
            except anyio.EndOfStream:
                self._on_end()
                with anyio.move_on_after(LAST_ANSWERS_S):
                    await self._answers.unanswered.none_left()
                raise
            found = mended(item) if isinstance(item, ValidationError) else item
            if isinstance(found, SessionMessage) and isinstance(found.message, JSONRPCError) and found is not item:
                await self._answers.send(found)
                continue
            if isinstance(found, SessionMessage):
                self._answers.unanswered.read(found.message)
            return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def mended(refused: ValidationError) -> SessionMessage:
    """The message that a refused line means once its texts are well formed, else the error that answers it."""
    given = refused.errors(include_url=False, include_context=False)[0]["input"]
    try:
        value = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "This line is no JSON, or it is nested too deeply.")
    name = value.get("id") if isinstance(value, dict) else None
    known = name if isinstance(name, str | int) and not isinstance(name, bool) else None
    if fault := unwritable(value):
        return _error(known, INVALID_REQUEST, f"The message holds {fault}.")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(clean(value), by_name=False))
    except ValidationError:
        return _error(known, INVALID_REQUEST, "This is no JSON-RPC 2.0 message.")


def writable(item: SessionMessage) -> SessionMessage:
    """The message, or an error in its place that can be written as JSON."""
    try:
        item.message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:
        logger.exception("a message could not be written as JSON")
    else:
        return item
    name = item.message.id if isinstance(item.message, JSONRPCResponse | JSONRPCError) else None
    return _error(name, INTERNAL_ERROR, "The answer cannot be written as JSON.")


def _error(name: str | int | None, code: int, message: str) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=name, error=ErrorData(code=code, message=message)))
