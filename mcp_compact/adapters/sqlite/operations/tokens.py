"""Bearer tokens of the server on a network: made, listed, revoked, found by their hash; and what a tenant stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mcp_compact.adapters.sqlite.connection import reading, writing
from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.errors import CallerError
from mcp_compact.ports.tokens import Token, Usage

_COLUMNS = "name, namespace, created_ms, expires_ms, revoked_ms"


def add_tokens(conn: sqlite3.Connection, tokens: Sequence[tuple[bytes, Token]]) -> None:
    """Remember tokens by their hashes: all of them, or none. Raises CallerError `token_exists`."""
    rows = [
        (hashed, safe_id(token.name), safe_id(token.namespace), token.created_ms, token.expires_ms)
        for hashed, token in tokens
    ]
    with writing(conn):
        for row in rows:
            try:
                conn.execute(
                    "INSERT INTO token (hash, name, namespace, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?)", row
                )
            except sqlite3.IntegrityError as error:
                raise CallerError(
                    "token_exists",
                    f"There is a token of the name {row[1][:80]!r} already.",
                    "Nothing was added. Revoke it first, or take another name.",
                ) from error


def tokens(conn: sqlite3.Connection) -> list[Token]:
    """Every token that was made, revoked ones too, the oldest first."""
    with reading(conn):
        rows = conn.execute(f"SELECT {_COLUMNS} FROM token ORDER BY created_ms, name")  # noqa: S608 - our own columns
        return [Token(*row) for row in rows]


def token(conn: sqlite3.Connection, hashed: bytes) -> Token | None:
    """The token of this hash, revoked and expired ones too."""
    with reading(conn):
        row = conn.execute(f"SELECT {_COLUMNS} FROM token WHERE hash = ?", (hashed,)).fetchone()  # noqa: S608 - the same
        return None if row is None else Token(*row)


def has_tokens(conn: sqlite3.Connection) -> bool:
    """Was ever a token made?"""
    with reading(conn):
        return conn.execute("SELECT 1 FROM token LIMIT 1").fetchone() is not None


def revoke_tokens(
    conn: sqlite3.Connection, now_ms: int, *, names: Sequence[str] = (), namespace: str | None = None
) -> list[str]:
    """Revoke those of these names, or all of a tenant: all, or none. The names that were revoked.

    Raises CallerError `unknown_token` for a name that no good token has.
    """
    with writing(conn):
        if namespace is not None:
            where, values = "namespace = ?", [(safe_id(namespace),)]
        else:
            where, values = "name = ?", [(safe_id(name),) for name in dict.fromkeys(names)]
        found: list[str] = []
        for value in values:
            rows = conn.execute(
                f"SELECT name FROM token WHERE {where} AND revoked_ms IS NULL ORDER BY name",  # noqa: S608 - see above
                value,
            ).fetchall()
            if not rows:
                raise CallerError(
                    "unknown_token",
                    f"There is no token of {value[0][:80]!r} to revoke.",
                    "Nothing was revoked. `mcp-compact token list` shows what there is.",
                )
            conn.execute(f"UPDATE token SET revoked_ms = ? WHERE {where} AND revoked_ms IS NULL", (now_ms, *value))  # noqa: S608
            found += [row[0] for row in rows]
        return found


def active(conn: sqlite3.Connection, since_ms: int) -> list[str]:
    """The tenants with a session that was written to since then, by name."""
    with reading(conn):
        rows = conn.execute(
            "SELECT namespace FROM session WHERE updated_ms >= ? GROUP BY namespace ORDER BY namespace", (since_ms,)
        )
        return [row[0] for row in rows]


def usage(conn: sqlite3.Connection, namespace: str) -> Usage:
    """How many sessions a tenant has, and the bytes of their messages."""
    with reading(conn):
        row = conn.execute(
            "SELECT count(*), coalesce(sum(body_bytes), 0) FROM session WHERE namespace = ?", (safe_id(namespace),)
        ).fetchone()
        return Usage(*row)
