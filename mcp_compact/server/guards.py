"""What stands before the SDK's HTTP application: Host and Origin of every route, whole bodies, requests a minute."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_compact.server.tenants import LOOPBACK, NAMESPACE, Rates
from mcp_compact.settings_table import HttpSettings

WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - named to tell that they are no host's name
OPEN_PATHS = ("/health",)
"""Counted for nobody."""
HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[\w.\-]+)(?::\d{1,5})?")
"""A name or address and a port. The SDK takes whatever follows the colon. The port is not compared: where one is
forwarded (a tunnel, a container) clients name another than ours, and no web page can have this machine's name."""
REMEMBERED = 1_000
"""Pairs of Host and Origin: any port of this machine is let in, so that there may be many."""
NOT_CHECKED = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""For the SDK's routes, which would check once more what `HostGuard` has let in."""


def security(http: HttpSettings, host: str, port: int) -> TransportSecuritySettings:
    """Which Host and Origin headers are answered: this machine's own names, where it listens, and what the owner adds.

    Checked whatever the address that is listened at, so that no web page can reach the server by a name of its own.
    """
    names = [*LOOPBACK[:2], "[::1]"]
    if host not in (*WILDCARDS, *LOOPBACK):
        names.append(f"[{host}]" if ":" in host else host)
    own = [name for name in (*names, _host_of(http.public_url)) if name]
    hosts = [variant for name in own for variant in (name, f"{name}:*")]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    given = [
        variant for name in http.allowed_hosts for variant in ((name,) if _has_port(name) else (name, f"{name}:*"))
    ]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(dict.fromkeys([*hosts, f"{host}:{port}", *given])),
        allowed_origins=list(dict.fromkeys([*origins, *http.allowed_origins])),
    )


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0] if "://" in url else ""


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")


@dataclass(slots=True)
class HostGuard:
    """Host and Origin are checked on every route, also on those that the SDK leaves alone."""

    app: ASGIApp
    settings: TransportSecuritySettings
    _good: set[tuple[tuple[bytes, bytes], ...]] = field(default_factory=set)
    """Headers that were let in before: clients send the same again and again."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            told = tuple(header for header in scope["headers"] if header[0] in (b"host", b"origin"))
            if told not in self._good:
                request = Request(scope)
                refused = await TransportSecurityMiddleware(self.settings).validate_request(request)
                if refused is None and not HOST.fullmatch(request.headers.get("host", "")):
                    refused = PlainTextResponse("Invalid Host header", status_code=421)
                if refused is not None:
                    await refused(scope, receive, send)
                    return
                if len(self._good) < REMEMBERED:
                    self._good.add(told)
        await self.app(scope, receive, send)


@dataclass(slots=True)
class WholeBodies:
    """A request is handed on when its body is there: within the size and the time that bodies may have.

    What vanishes, dawdles or swells ends here, before anything was made for it and without a line in the log.
    Where callers need a token nothing is held in memory for one without: it is refused by its headers alone.
    """

    app: ASGIApp
    max_bytes: int
    limit_s: float
    must_authorize: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_stranger = self.must_authorize and not isinstance(scope.get("user"), AuthenticatedUser)
        if scope["type"] != "http" or scope["method"] not in ("POST", "PUT", "PATCH") or is_stranger:
            await self.app(scope, receive, send)
            return
        body, refused = await self._whole(scope, receive)
        if body is None:
            if refused:
                # The connection ends with it, since the rest of the body would be read as the next request.
                answer = PlainTextResponse(refused[1], status_code=refused[0], headers={"Connection": "close"})
                await answer(scope, receive, send)
            return
        handed = False

        async def once() -> Message:
            nonlocal handed
            if handed:
                # What comes now is the client's leaving, which may take as long as the answer does.
                return await receive()
            handed = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, once, send)

    async def _whole(self, scope: Scope, receive: Receive) -> tuple[bytearray | None, tuple[int, str] | None]:
        """The body; or None with the refusal, or without one where the client has left."""
        too_large = (413, "The request is too large.")
        told = Headers(scope=scope).get("content-length", "")
        if told.isdigit() and int(told) > self.max_bytes:
            return None, too_large
        body = bytearray()
        with anyio.move_on_after(self.limit_s):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None, None
                body += message.get("body", b"")
                if len(body) > self.max_bytes:
                    return None, too_large
                if not message.get("more_body", False):
                    return body, None
        return None, (408, "The request did not come in time.")


@dataclass(slots=True)
class RateGuard:
    """Requests a minute of each tenant. Stands inside of the authentication, which names the tenant."""

    app: ASGIApp
    rates: Rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            wait_s = self.rates.wait_s(_tenant(scope))
            if wait_s > 0:
                body = {"error": "too many requests", "retry_after_s": math.ceil(wait_s)}
                answer = JSONResponse(body, status_code=429, headers={"Retry-After": str(math.ceil(wait_s))})
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _tenant(scope: Scope) -> str:
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"tenant {(user.access_token.claims or {}).get(NAMESPACE)}"
    client = scope.get("client")
    return f"address {client[0]}" if client else ""
