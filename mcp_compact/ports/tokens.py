"""Who may call over a network, and as which tenant."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

SIGNED = "signed:"
"""Tenants of tokens that another server signed are named with this before their subject."""


def token_hash(token: str) -> bytes:
    """What is kept of a token. It is 32 random bytes, so its plain SHA-256 cannot be guessed back."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token as it is known; the token itself is not."""

    name: str
    namespace: str
    """Whose sessions its bearer sees."""
    created_ms: int
    expires_ms: int | None = None
    """None: never."""
    revoked_ms: int | None = None

    def is_good(self, now_ms: int) -> bool:
        """Neither revoked nor past its time."""
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tenant has stored."""

    sessions: int
    body_bytes: int


class Tenants(Protocol):
    async def token(self, hashed: bytes) -> Token | None:
        """The token of this hash, revoked and expired ones too; None where there is none."""
        ...

    async def has_tokens(self) -> bool:
        """Was ever one made, revoked ones too? A server that is started then serves nobody without."""
        ...

    async def active(self, since_ms: int) -> list[str]:
        """The tenants with a session that was written to since then, by name."""
        ...

    async def usage(self, namespace: str) -> Usage:
        """What the tenant has stored; reads a narrow row of each of its sessions."""
        ...
