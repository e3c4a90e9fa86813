"""`/metrics`: what the server counted, for those who may know of every tenant."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from mcp_compact.errors import CompactError
from mcp_compact.messages.codec import format_time
from mcp_compact.ports.tokens import Tenants
from mcp_compact.server.metrics import METRICS
from mcp_compact.server.tenants import LOOPBACK, NAMESPACE
from mcp_compact.service.service import LOCAL, Service

FORMAT = "text/plain; version=0.0.4; charset=utf-8"
OWNER = LOCAL
"""The tenant of whoever runs the server: it alone may see figures of all."""
PAGE = 100
DAY_MS = 86_400_000
AGE_S = 15.0
"""Sessions are counted again after so long: whoever asks often costs no more than that."""
PROXIED = ("forwarded", "x-forwarded-for")


@dataclass(slots=True)
class Sessions:
    """Sessions that were active within a day, by level."""

    service: Callable[[], Service]
    tenants: Callable[[], Tenants]
    clock: Callable[[], float] = time.monotonic
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _counted: Counter[str] = field(default_factory=Counter)
    _at_s: float = float("-inf")

    async def by_level(self) -> Mapping[str, int]:
        """How many there are of each level."""
        async with self._lock:
            if self.clock() - self._at_s > AGE_S:
                self._counted = await self._count()
                self._at_s = self.clock()
        return self._counted

    async def _count(self) -> Counter[str]:
        service = self.service()
        since_ms = service.deps.clock.now_ms() - DAY_MS
        since = format_time(since_ms)
        counted: Counter[str] = Counter()
        for namespace in await self.tenants().active(since_ms):
            own, cursor, goes_on = replace(service, namespace=namespace), "", True
            while goes_on:
                page = await own.sessions_page(limit=PAGE, cursor=cursor)
                recent = [line.level for line in page.sessions if line.updated >= since]
                counted.update(recent)
                cursor = page.next_cursor
                goes_on = bool(cursor) and len(recent) == len(page.sessions)
        return counted


def metrics_answer(sessions: Sessions, *, must_authorize: bool) -> Callable[[Request], Awaitable[Response]]:
    """The route's function. With tokens the owner's tenant may read it; without, whoever is on this machine."""

    async def answer(request: Request) -> Response:
        refused = _refused(request, must_authorize=must_authorize)
        if refused is not None:
            return refused
        try:
            levels = await sessions.by_level()
        except (CompactError, IndexError):
            return PlainTextResponse("The archive does not answer.", status_code=503)
        return PlainTextResponse(METRICS.text(levels), headers={"Content-Type": FORMAT})

    return answer


def _refused(request: Request, *, must_authorize: bool) -> Response | None:
    if must_authorize:
        user = request.scope.get("user")
        if not isinstance(user, AuthenticatedUser):
            return PlainTextResponse("A token is needed.", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        if (user.access_token.claims or {}).get(NAMESPACE) == OWNER:
            return None
        return PlainTextResponse(f"Only the tenant {OWNER} may read this.", status_code=403)
    client = request.client
    if client is None or client.host not in LOOPBACK or any(name in request.headers for name in PROXIED):
        return PlainTextResponse("Only this machine may read this.", status_code=403)
    return None
