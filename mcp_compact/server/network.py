"""Streamable HTTP and SSE: one process, one archive, many clients.

The archive is opened once, however many lifespans the SDK runs over it (SSE runs one a connection).
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import uvicorn
from anyio import to_thread
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mcp_compact.config import Settings
from mcp_compact.errors import CallerError, CompactError
from mcp_compact.ports.tokens import Tenants
from mcp_compact.server.app import CompactServer, build_server
from mcp_compact.server.backend import Place, settle
from mcp_compact.server.connections import GracefulServer, patient
from mcp_compact.server.guards import NOT_CHECKED, WILDCARDS, HostGuard, RateGuard, WholeBodies, security
from mcp_compact.server.housekeeping import Housekeeping
from mcp_compact.server.metrics_route import Sessions, metrics_answer
from mcp_compact.server.state_key import state_key
from mcp_compact.server.tenants import LOOPBACK, Access, Quotas, Rates, Verifier, current_tenant, signed_tokens
from mcp_compact.service.service import Service
from mcp_compact.settings_table import HttpSettings
from mcp_compact.wiring import open_service, open_tenants, system_clock, tokens_exist

HTTP, SSE = "http", "sse"
HTTP_PATH, SSE_PATH, MESSAGES_PATH, HEALTH_PATH, METRICS_PATH = "/mcp", "/sse", "/messages/", "/health", "/metrics"
KEEP_ALIVE_S = 65
"""Longer than clients keep a connection: who closes first may meet the other's next request."""
GRACE_S = 5
"""How long answers that are being made may take once the server is told to stop."""
BACKLOG = 2048
LOOK_S = 1.0
"""How often a server that asks for no token looks whether one was made."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Network:
    """How a server stands on the network."""

    transport: str = HTTP
    profile: str = "core"
    is_stateless: bool = False
    """Keeps no MCP sessions: any process behind a balancer can answer any request."""
    must_authorize: bool = False


@dataclass(slots=True)
class _Opened:
    """What all connections share, from start to stop."""

    services: list[Service] = field(default_factory=list)
    tenants: list[Tenants] = field(default_factory=list)


def serve_network(settings: Settings, transport: str, *, profile: str, is_stateless: bool) -> int:
    """Serve until told to stop; the exit code. Raises CallerError where it may not, or cannot, listen as asked."""
    http = settings.http
    must_authorize = bool(http.jwt_issuer or http.jwt_keys_url) or tokens_exist(settings)
    if http.host not in LOOPBACK and not must_authorize:
        raise CallerError(
            "needs_auth",
            f"{http.host} can be reached from other machines, and no token is known.",
            "Make one first: `mcp-compact token add NAME`; or listen at 127.0.0.1.",
        )
    stopped: list[int] = []
    # uvicorn stops gracefully, and then raises the signal again for whoever was there before it.
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    with _listening(http.host, http.port) as listener:
        while not stopped and _served(settings, Network(transport, profile, is_stateless, must_authorize), listener):
            must_authorize = True
    return 0


def _served(settings: Settings, network: Network, listener: socket.socket) -> bool:
    """Serve until told to stop; True where it has to go on with tokens, since the first one was made meanwhile."""
    port = listener.getsockname()[1]
    servers: list[uvicorn.Server] = []
    first_token: list[bool] = []

    def stop() -> None:
        first_token.append(True)
        for server in servers:
            server.should_exit = True

    config = uvicorn.Config(
        network_app(settings, network, port=port, on_first_token=stop),
        http=patient(settings.http.receive_timeout_s),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        reset_contextvars=True,
        backlog=BACKLOG,
    )
    sys.stderr.write(f"mcp-compact: {_said(settings.http, network, port)}\n")
    sys.stderr.flush()
    servers.append(GracefulServer(config))
    # uvicorn closes what it listens with; those who come meanwhile wait at the socket that stays.
    anyio.run(servers[0].serve, [listener.dup()])
    return bool(first_token)


def _said(http: HttpSettings, network: Network, port: int) -> str:
    path = HTTP_PATH if network.transport == HTTP else SSE_PATH
    who = "with a bearer token" if network.must_authorize else "for this machine only, without a token"
    if http.host not in LOOPBACK:
        who += f", listening at {http.host} for other machines too"
    named = f" ({http.public_url}{path})" if http.public_url else ""
    return f"MCP at {_local_url(http.host, port)}{path}{named}, {who}."


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there, or CallerError `cannot_listen`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # From here on clients wait for their turn, until everything is open.
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise CallerError(
            "cannot_listen", f"{host[:80]} port {port} cannot be listened at: {error}.", "Choose another --port."
        ) from error
    return listener


def _own_url(http: HttpSettings, port: int) -> str:
    return http.public_url or _local_url(http.host, port)


def _local_url(host: str, port: int) -> str:
    named = "127.0.0.1" if host in WILDCARDS else host
    return f"http://{f'[{named}]' if ':' in named else named}:{port}"


def network_app(
    settings: Settings, network: Network, *, port: int, on_first_token: Callable[[], None] | None = None
) -> Starlette:
    """The ASGI application: MCP at one path, `/health` beside it, guards around both.

    `on_first_token` is called where it asks nobody for a token and one is made.
    """
    opened = _Opened()
    http = settings.http
    own_url = _own_url(http, port)
    access = _access(settings, own_url, opened) if network.must_authorize else None

    @asynccontextmanager
    async def factory() -> AsyncIterator[Service]:
        yield opened.services[0]

    server = build_server(
        settings,
        profile=network.profile,
        place=Place(
            project_only=False,
            tenant=current_tenant if network.must_authorize else None,
            quotas=Quotas(http, lambda: opened.tenants[0]),
            state_key=state_key(settings.db),
        ),
        factory=factory,
        access=access,
    )
    guard = security(http, http.host, port)
    if network.transport == SSE:
        app = server.sse_app(
            sse_path=SSE_PATH,
            message_path=MESSAGES_PATH,
            max_request_body_size=http.max_body_bytes,
            transport_security=NOT_CHECKED,
        )
    else:
        app = server.streamable_http_app(
            streamable_http_path=HTTP_PATH,
            stateless_http=network.is_stateless,
            max_request_body_size=http.max_body_bytes,
            session_idle_timeout=http.idle_s,
            max_sessions=http.max_connections,
            transport_security=NOT_CHECKED,
        )
    app.router.routes.append(Route(HEALTH_PATH, _health(opened), methods=["GET"]))
    figures = Sessions(lambda: opened.services[0], lambda: opened.tenants[0])
    may_read = metrics_answer(figures, must_authorize=network.must_authorize)
    app.router.routes.append(Route(METRICS_PATH, may_read, methods=["GET"]))
    app.user_middleware.insert(0, Middleware(HostGuard, settings=guard))
    # These stand inside of the authentication, which names the tenant.
    whole = {"max_bytes": http.max_body_bytes, "limit_s": http.receive_timeout_s}
    app.user_middleware += [
        Middleware(RateGuard, rates=Rates(http.calls_per_minute)),
        Middleware(WholeBodies, **whole, must_authorize=network.must_authorize),
    ]
    told = None if network.must_authorize else on_first_token
    _open_once(app, settings, opened, server, told)
    return app


def _access(settings: Settings, own_url: str, opened: _Opened) -> Access:
    signed = signed_tokens(settings.http, f"{own_url}{HTTP_PATH}")
    try:
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(settings.http.jwt_issuer or own_url),
            # Without an authorization server there is no metadata that could lead a client to it.
            resource_server_url=AnyHttpUrl(f"{own_url}{HTTP_PATH}") if signed else None,
            # The verifier of signed tokens checks whom they are meant for; ours are meant for this server.
            validate_token_resource=False,
        )
    except ValidationError as error:
        raise CallerError(
            "bad_jwt_settings",
            "MCP_COMPACT_JWT_ISSUER or MCP_COMPACT_HTTP_PUBLIC_URL is no http address.",
            "Write it whole, e.g. https://auth.example.",
        ) from error
    return Access(Verifier(lambda: opened.tenants[0], system_clock().now_ms, signed), auth)


async def _get_ready(server: CompactServer, service: Service) -> None:
    """Load what the first call would wait for; from then on look what can be given back."""
    try:
        await server.load_tools()
        await to_thread.run_sync(service.deps.tokenizer.warm)
    except Exception:
        # The call that needs it meets the same fault and answers for it.
        logger.exception("tools or tokenizer could not be loaded ahead of their use")
    settle()
    await Housekeeping(service.deps).run()


async def _watch_tokens(tenants: Tenants, told: Callable[[], None]) -> None:
    """Tell once a token was made."""
    is_made = False
    while not is_made:
        await anyio.sleep(LOOK_S)
        with suppress(CompactError):
            is_made = await tenants.has_tokens()
    logger.warning("a token was made: from now on every call needs one")
    told()


def _open_once(
    app: Starlette,
    settings: Settings,
    opened: _Opened,
    server: CompactServer,
    on_first_token: Callable[[], None] | None,
) -> None:
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(own: Starlette) -> AsyncIterator[None]:
        async with (
            anyio.create_task_group() as tasks,
            open_tenants(settings) as tenants,
            open_service(settings, tasks=tasks) as service,
        ):
            opened.tenants.append(tenants)
            opened.services.append(service)
            async with inner(own), anyio.create_task_group() as watching:
                watching.start_soon(_get_ready, server, service)
                if on_first_token is not None:
                    watching.start_soon(_watch_tokens, tenants, on_first_token)
                yield
                watching.cancel_scope.cancel()
            opened.services.clear()

    app.router.lifespan_context = lifespan


def _health(opened: _Opened) -> Callable[[Request], Awaitable[Response]]:
    async def health(_: Request) -> Response:
        """Is the archive answering? Says nothing else, since anybody may ask."""
        try:
            await opened.tenants[0].has_tokens()
        except (CompactError, IndexError):
            return JSONResponse({"status": "failing"}, status_code=503)
        return JSONResponse({"status": "ok"})

    return health
