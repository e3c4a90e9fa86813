"""Signed tokens (JWT) of an authorization server: what is accepted, and everything that is not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from mcp_compact.errors import CallerError
from mcp_compact.server.tenants import KEYS_AGE_S, KEYS_PAUSE_S, NAMESPACE, SignedTokens, signed_tokens
from mcp_compact.settings_table import HttpSettings
from tests.server.web import web

ISSUER, AUDIENCE = "https://auth.example", "https://compact.example/mcp"


@dataclass
class Signer:
    """An authorization server: it publishes one key, and signs with it or with another."""

    url: str
    key: rsa.RSAPrivateKey
    other: rsa.RSAPrivateKey
    asked: list[str]
    answers: list[bytes]
    """What it says next instead of its keys."""

    def token(self, *, kid: str = "main", key: Any = None, algorithm: str = "RS256", **claims: Any) -> str:
        now = int(time.time())
        known = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600} | claims
        known = {name: value for name, value in known.items() if value is not None}
        return jwt.encode(known, self.key if key is None else key, algorithm, headers={"kid": kid})


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    key, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    published = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "main", "use": "sig", "alg": "RS256"}
    asked: list[str] = []
    answers: list[bytes] = []

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = answers.pop() if answers else json.dumps({"keys": [published]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Keys)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Signer(f"http://127.0.0.1:{server.server_port}/keys", key, other, asked, answers)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def verifier(signer: Signer) -> SignedTokens:
    return SignedTokens(ISSUER, AUDIENCE, signer.url)


async def test_a_good_token_names_its_tenant(signer: Signer, verifier: SignedTokens) -> None:
    found = await verifier.verify(signer.token())
    assert found is not None
    assert (found.claims or {})[NAMESPACE] == "signed:ann"


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": 1_000},
        {"exp": None},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "https://another.example/mcp"},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 300},
        {"sub": "a\nb"},
        {"nbf": 4_000_000_000},
    ],
    ids=str,
)
async def test_a_token_with_anything_wrong_opens_nothing(
    signer: Signer, verifier: SignedTokens, wrong: dict[str, Any]
) -> None:
    assert await verifier.verify(signer.token(**wrong)) is None


async def test_another_key_a_shared_secret_and_no_signature_open_nothing(
    signer: Signer, verifier: SignedTokens
) -> None:
    assert await verifier.verify(signer.token(key=signer.other)) is None
    assert await verifier.verify(signer.token(key="s" * 64, algorithm="HS256")) is None
    assert await verifier.verify(signer.token(key="", algorithm="none")) is None
    for text in ("", "a.b.c", "\udce4.b.c", "." * 50, "x" * 9_000):
        assert await verifier.verify(text) is None


async def test_forged_key_names_do_not_make_us_ask_again_and_again(signer: Signer, verifier: SignedTokens) -> None:
    assert await verifier.verify(signer.token()) is not None
    before = len(signer.asked)
    for number in range(20):
        assert await verifier.verify(signer.token(kid=f"forged-{number}", key=signer.other)) is None
    assert len(signer.asked) == before
    assert await verifier.verify(signer.token()) is not None


async def test_keys_that_cannot_be_had_open_nothing() -> None:
    verifier = SignedTokens(ISSUER, AUDIENCE, "http://127.0.0.1:9/keys")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    token = jwt.encode({"sub": "ann"}, key, "RS256", headers={"kid": "main"})
    assert await verifier.verify(token) is None


@pytest.mark.parametrize("answer", [b"<html>maintenance</html>", b"[]", b"{}", b'{"keys": [{"kty": "?"}]}', b"\xff"])
async def test_nonsense_in_place_of_keys_opens_nothing_and_is_asked_for_once(signer: Signer, answer: bytes) -> None:
    verifier, before = SignedTokens(ISSUER, AUDIENCE, signer.url), len(signer.asked)
    signer.answers.append(answer)
    for _ in range(5):
        assert await verifier.verify(signer.token()) is None
    assert len(signer.asked) == before + 1


async def test_known_keys_serve_on_while_newer_ones_cannot_be_had_but_not_for_ever(signer: Signer) -> None:
    clock = [1_000.0]
    verifier = SignedTokens(ISSUER, AUDIENCE, signer.url, lambda: clock[0])
    assert await verifier.verify(signer.token()) is not None
    clock[0] += KEYS_AGE_S + 1
    signer.answers.append(b"no keys")
    before = len(signer.asked)
    for _ in range(5):
        assert await verifier.verify(signer.token()) is not None
    assert len(signer.asked) == before + 1
    clock[0] += KEYS_AGE_S
    signer.answers.append(b"no keys")
    assert await verifier.verify(signer.token()) is None
    clock[0] += KEYS_PAUSE_S
    assert await verifier.verify(signer.token()) is not None


@pytest.mark.parametrize(
    "http",
    [
        HttpSettings(jwt_issuer=ISSUER),
        HttpSettings(jwt_keys_url="https://auth.example/keys"),
        HttpSettings(jwt_issuer=ISSUER, jwt_keys_url="http://auth.example/keys"),
        HttpSettings(jwt_issuer=ISSUER, jwt_keys_url="file:///etc/passwd"),
    ],
    ids=["no keys", "no issuer", "keys in the clear", "keys from a file"],
)
def test_half_a_signer_is_refused_at_the_start(http: HttpSettings) -> None:
    with pytest.raises(CallerError, match="MCP_COMPACT_JWT"):
        signed_tokens(http, "http://127.0.0.1:1/mcp")


def test_the_server_takes_them_and_says_where_to_get_one(tmp_path: Path, signer: Signer) -> None:
    env = {
        "MCP_COMPACT_JWT_ISSUER": ISSUER,
        "MCP_COMPACT_JWT_KEYS_URL": signer.url,
        "MCP_COMPACT_HTTP_PUBLIC_URL": "https://compact.example",
    }
    with web(tmp_path, "--transport", "http", env=env) as running:
        refused = running.post(b"{}")
        assert refused.status == 401
        assert "https://compact.example/.well-known/oauth-protected-resource/mcp" in refused.headers["www-authenticate"]
        told = json.loads(running.get("/.well-known/oauth-protected-resource/mcp").body)
        assert told["authorization_servers"][0].rstrip("/") == ISSUER
        messages = [{"role": "user", "content": "hello"}]
        good = {"Authorization": f"Bearer {signer.token()}"}
        stored = running.call("append_messages", {"messages": messages, "session_id": "a"}, good)
        assert stored.status == 200
        assert b'"stored":1' in stored.body.replace(b" ", b"")
        bad = {"Authorization": f"Bearer {signer.token(aud='https://another.example')}"}
        assert running.call("append_messages", {"messages": messages, "session_id": "a"}, bad).status == 401
