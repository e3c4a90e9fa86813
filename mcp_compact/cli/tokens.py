"""`mcp-compact token add|list|revoke`: who may call the server over a network, each as a tenant of its own."""

from __future__ import annotations

import argparse
import secrets
import sqlite3
import time
from contextlib import closing

from mcp_compact.adapters.sqlite.operations.tokens import add_tokens, revoke_tokens, tokens
from mcp_compact.cli.archive import opened
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, iso_date, shown_line, table
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.ports.tokens import SIGNED, Token, token_hash

PREFIX = "mcpc_"
"""By which scanners of leaked keys can know ours."""
DAY_MS = 86_400_000
MAX_NAME = 100
MAX_AT_ONCE = 10_000


def add(arguments: argparse.Namespace) -> int:
    """Make tokens, and show each this once."""
    names = _names(arguments)
    now_ms = _now_ms()
    expires_ms = now_ms + arguments.days * DAY_MS if arguments.days else None
    made = [
        (PREFIX + secrets.token_urlsafe(32), Token(name, _namespace(arguments.namespace or name), now_ms, expires_ms))
        for name in names
    ]
    with closing(_archive()) as conn:
        add_tokens(conn, [(token_hash(text), token) for text, token in made])
    if arguments.json:
        print_json({"tokens": [{"token": text} | _facts(token) for text, token in made]})
        return 0
    print("\n".join(f"{shown_line(token.name)}  {text}" for text, token in made))
    until = f"until {iso_date(expires_ms)}" if expires_ms else "until revoked"
    print(f"\n{count(len(made), 'token')}, good {until}. Shown this once: only hashes are kept.")
    print("Clients send it as a header: Authorization: Bearer TOKEN")
    return 0


def show(arguments: argparse.Namespace) -> int:
    """List the tokens; not what they are, which nobody knows any more."""
    with closing(_archive()) as conn:
        known = tokens(conn)
    now_ms = _now_ms()
    if arguments.json:
        print_json({"tokens": [_facts(token) | {"good": token.is_good(now_ms)} for token in known]})
    elif known:
        rows = [(shown_line(token.name), shown_line(token.namespace), _state(token, now_ms)) for token in known]
        print("\n".join(table([("name", "tenant", "state"), *rows], right=(), columns=terminal().columns, stretch=0)))
    else:
        print("There is no token yet. `mcp-compact token add NAME` makes one.")
    return 0


def revoke(arguments: argparse.Namespace) -> int:
    """Revoke tokens: from the next request on they open nothing."""
    if bool(arguments.name) == (arguments.namespace is not None):
        raise CallerError("names_or_namespace", "Exactly one of NAME... and --namespace is needed.", "Name the tokens.")
    with closing(_archive()) as conn:
        done = revoke_tokens(conn, _now_ms(), names=arguments.name, namespace=arguments.namespace)
    if arguments.json:
        print_json({"revoked": done})
    else:
        print(f"Revoked: {', '.join(shown_line(name) for name in done)}.")
    return 0


def _names(arguments: argparse.Namespace) -> list[str]:
    """The names asked for; with `--count`, each of them numbered."""
    if arguments.count and arguments.count > MAX_AT_ONCE:
        raise CallerError("too_many", f"At most {MAX_AT_ONCE:,} tokens at once.", "Make them in parts.")
    width = len(str(arguments.count or 1))
    numbered = (
        [f"{name}-{number:0{width}}" for name in arguments.name for number in range(1, arguments.count + 1)]
        if arguments.count
        else arguments.name
    )
    for name in numbered:
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise CallerError(
                "bad_name", f"{name[:40]!r} is no name for a token.", f"1 to {MAX_NAME} printable characters."
            )
    if len(set(numbered)) < len(numbered):
        raise CallerError("bad_name", "A name was given twice.", "Each token has a name of its own.")
    return numbered


def _namespace(name: str) -> str:
    if len(name) > MAX_NAME or not name.strip() or not name.isprintable() or name.startswith(SIGNED):
        raise CallerError(
            "bad_namespace",
            f"{name[:40]!r} is no tenant for a token.",
            f"1 to {MAX_NAME} printable characters; {SIGNED!r} at the start is for those of signed tokens.",
        )
    return name


def _archive() -> sqlite3.Connection:
    return opened(load_settings())


def _facts(token: Token) -> dict[str, object]:
    return {
        "name": token.name,
        "namespace": token.namespace,
        "created_ms": token.created_ms,
        "expires_ms": token.expires_ms,
        "revoked_ms": token.revoked_ms,
    }


def _state(token: Token, now_ms: int) -> str:
    if token.revoked_ms is not None:
        return f"revoked {iso_date(token.revoked_ms)}"
    if token.expires_ms is None:
        return "good"
    return f"{'good until' if token.is_good(now_ms) else 'expired'} {iso_date(token.expires_ms)}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
