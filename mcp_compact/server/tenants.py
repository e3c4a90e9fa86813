"""Who calls over a network: bearer tokens to tenants, and what a tenant may use.

Two kinds of tokens open the server: ours, of which the archive holds the hash, and signed ones (JWT) of an
authorization server that the settings name. Each tenant is a namespace, part of every key in the archive.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import jwt
from anyio import to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings

from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.ids import SessionId
from mcp_compact.ports.store import SessionKey
from mcp_compact.ports.tokens import SIGNED, Tenants, token_hash
from mcp_compact.settings_table import HttpSettings

if TYPE_CHECKING:
    from mcp_compact.service.service import Service

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Public keys only: with a shared secret the server could sign what it accepts."""
KEYS_AGE_S = 300
KEYS_LIFE_S = 2 * KEYS_AGE_S
"""How long keys serve while newer ones cannot be had."""
KEYS_PAUSE_S = 30
"""Keys are not asked for again so soon, or forged key names would make us call the authorization server at will."""
KEYS_TIMEOUT_S = 5
CLOCKS_APART_S = 30
MAX_TOKEN_CHARS = 8_192
MAX_SUBJECT_CHARS = 200
MINUTE_S = 60
NAMESPACE = "namespace"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
USAGE_AGE_S = 2.0
"""What a tenant has stored is looked up again after so long: a limit is held to within what comes in meanwhile."""
MANY_TENANTS = 10_000
"""So many are remembered; a bound of memory, not a rule."""
STORING = (
    "append_messages",
    "import_transcript",
    "create_session",
    "fork_session",
    "update_session_memory",
    "pin_instruction",
    "submit_summary",
)
"""Tools that bring something in. What compactions write is small against what they were given."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call, as the SDK wants it."""

    verifier: Verifier
    auth: AuthSettings


def current_tenant() -> str:
    """The namespace of the request that is being answered. Raises ServerError where nobody was let in."""
    token = get_access_token()
    namespace = (token.claims or {}).get(NAMESPACE) if token else None
    if not isinstance(namespace, str) or not namespace:
        # Never a default: a call without a known tenant must not reach anybody's sessions.
        raise ServerError("no_tenant", "The call has no tenant.", "Call with a bearer token.")
    return namespace


@dataclass(slots=True)
class Verifier:
    """The SDK's `TokenVerifier` over our own tokens, and signed ones where the settings name a signer."""

    tenants: Callable[[], Tenants]
    now_ms: Callable[[], int]
    signed: SignedTokens | None = None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who bears it; None for everything that opens nothing."""
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            return None
        known = await self.tenants().token(token_hash(token))
        if known is not None:
            if not known.is_good(self.now_ms()):
                return None
            expires_s = None if known.expires_ms is None else known.expires_ms // 1000
            return _access(token, known.name, known.namespace, expires_s=expires_s)
        return await self.signed.verify(token) if self.signed else None


@dataclass(slots=True)
class SignedTokens:
    """Tokens of an authorization server: signature, issuer, audience and times are checked."""

    issuer: str
    audience: str
    keys_url: str
    clock: Callable[[], float] = time.monotonic
    _source: jwt.PyJWKClient = field(init=False)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _keys: Mapping[str, jwt.PyJWK] = field(default_factory=dict)
    _asked_s: float = float("-inf")
    _got_s: float = float("-inf")

    def __post_init__(self) -> None:
        self._source = jwt.PyJWKClient(self.keys_url, cache_jwk_set=False, timeout=KEYS_TIMEOUT_S)

    async def verify(self, token: str) -> AccessToken | None:
        """Who bears it; None where anything is wrong with it, or its key cannot be had."""
        if not token.isascii():
            return None
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = key and jwt.decode(
                token,
                key.key,
                algorithms=ALGORITHMS,
                audience=self.audience,
                issuer=self.issuer,
                leeway=CLOCKS_APART_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            logger.info("a signed token was refused: %s", type(error).__name__)
            return None
        return self._access(token, claims) if claims else None

    def _access(self, token: str, claims: dict[str, Any]) -> AccessToken | None:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS or not subject.isprintable():
            return None
        client = str(claims.get("client_id") or claims.get("azp") or subject)
        return _access(
            token, client, SIGNED + subject, expires_s=int(claims["exp"]), issuer=self.issuer, resource=self.audience
        )

    async def _key(self, name: str) -> jwt.PyJWK | None:
        async with self._lock:
            now_s = self.clock()
            is_wanted = name not in self._keys or now_s - self._got_s > KEYS_AGE_S
            if is_wanted and now_s - self._asked_s >= KEYS_PAUSE_S:
                self._asked_s = now_s
                await self._ask()
            return self._keys.get(name) if self.clock() - self._got_s <= KEYS_LIFE_S else None

    async def _ask(self) -> None:
        """Ask for the keys. Where they cannot be had those that are known serve on for a while."""
        try:
            keys = await to_thread.run_sync(self._source.get_signing_keys)
        except (jwt.PyJWTError, OSError, ValueError) as error:
            logger.warning("the keys of signed tokens could not be had: %s", type(error).__name__)
            return
        self._keys, self._got_s = {str(key.key_id): key for key in keys}, self.clock()


def _access(
    token: str,
    client: str,
    namespace: str,
    *,
    expires_s: int | None = None,
    issuer: str | None = None,
    resource: str | None = None,
) -> AccessToken:
    claims = {NAMESPACE: namespace} | ({"iss": issuer} if issuer else {})
    return AccessToken(
        token=token,
        client_id=client,
        scopes=[],
        expires_at=expires_s,
        resource=resource,
        subject=namespace,
        claims=claims,
    )


def signed_tokens(http: HttpSettings, own_url: str) -> SignedTokens | None:
    """The signer that the settings name. Raises CallerError `bad_jwt_settings` where they name half of one."""
    if not http.jwt_issuer and not http.jwt_keys_url:
        return None
    if not http.jwt_issuer or not http.jwt_keys_url:
        raise CallerError(
            "bad_jwt_settings",
            "Signed tokens need both MCP_COMPACT_JWT_ISSUER and MCP_COMPACT_JWT_KEYS_URL.",
            "Set the other one too, or neither.",
        )
    address = urlsplit(http.jwt_keys_url)
    if address.scheme != "https" and not (address.scheme == "http" and address.hostname in LOOPBACK):
        raise CallerError(
            "bad_jwt_settings", "MCP_COMPACT_JWT_KEYS_URL is no https address.", "Keys must come over https."
        )
    return SignedTokens(http.jwt_issuer, http.jwt_audience or own_url, http.jwt_keys_url)


# ---------------------------------------------------------------- limits


@dataclass(slots=True)
class Rates:
    """Requests a minute of each tenant: a bucket that holds a minute's worth and fills steadily."""

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait_s(self, tenant: str) -> float:
        """0 where the request may go on (and is counted), else the seconds until it may."""
        now = self.clock()
        left, then = self._buckets.get(tenant, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - then) * self.per_minute / MINUTE_S)
        if left < 1:
            self._buckets[tenant] = (left, now)
            return (1 - left) * MINUTE_S / self.per_minute
        self._buckets[tenant] = (left - 1, now)
        self._forget_full(now)
        return 0.0

    def _forget_full(self, now: float) -> None:
        """Buckets that have filled up again need not be remembered."""
        if len(self._buckets) > MANY_TENANTS:
            self._buckets = {name: own for name, own in self._buckets.items() if now - own[1] < MINUTE_S}


@dataclass(slots=True)
class Quotas:
    """What a tenant may store: sessions, bytes, and the size of one message."""

    http: HttpSettings
    tenants: Callable[[], Tenants]
    clock: Callable[[], float] = time.monotonic
    _seen: dict[str, tuple[float, int, int]] = field(default_factory=dict)

    async def admit(self, service: Service, tool: str, arguments: Mapping[str, Any]) -> None:
        """May this call store what it brings? Raises CallerError for the limit that forbids it."""
        if tool not in STORING:
            return
        self._check_messages(arguments.get("messages"))
        sessions, body_bytes = await self._stored(service.namespace)
        if body_bytes >= self.http.max_storage_bytes:
            raise _too_much("storage_limit", f"{body_bytes:,} bytes are stored", self.http.max_storage_bytes)
        if sessions >= self.http.max_sessions and await _makes_session(service, tool, arguments):
            raise _too_much("session_limit", f"There are {sessions:,} sessions", self.http.max_sessions)

    async def _stored(self, tenant: str) -> tuple[int, int]:
        at, sessions, body_bytes = self._seen.get(tenant, (float("-inf"), 0, 0))
        if self.clock() - at > USAGE_AGE_S:
            if len(self._seen) > MANY_TENANTS:
                self._seen.clear()
            usage = await self.tenants().usage(tenant)
            sessions, body_bytes = usage.sessions, usage.body_bytes
            self._seen[tenant] = (self.clock(), sessions, body_bytes)
        return sessions, body_bytes

    def _check_messages(self, messages: object) -> None:
        """Raises CallerError `message_too_large` for a message beyond the limit."""
        limit = self.http.max_message_bytes
        if self.http.max_body_bytes <= limit:
            # Nothing that large came in: it need not be written once more to see its size.
            return
        for at, message in enumerate(messages if isinstance(messages, list) else [messages]):
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            size = len(text.encode("utf-8", "replace"))
            if size > limit:
                raise CallerError(
                    "message_too_large",
                    f"Message {at} has {size:,} bytes; {limit:,} are allowed.",
                    "Nothing was stored. Send large media smaller, or as files.",
                )


async def _makes_session(service: Service, tool: str, arguments: Mapping[str, Any]) -> bool:
    session_id = str(arguments.get("session_id") or "").strip()
    if tool == "fork_session" or not session_id:
        return True
    return await service.deps.store.session(SessionKey(service.namespace, SessionId(session_id))) is None


def _too_much(code: str, what: str, limit: int) -> CallerError:
    hint = "Nothing was stored. Delete sessions that are done with (delete_session)."
    return CallerError(code, f"{what}; {limit:,} are allowed.", hint)
