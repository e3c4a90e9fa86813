"""The events that only note, or give what is ready: they load next to nothing, for they come often."""

from __future__ import annotations

import json
import sqlite3

from mcp_compact import ancestors, places
from mcp_compact.adapters.sqlite import hook_rows
from mcp_compact.hooking import notes
from mcp_compact.hooking.given import Given

NAMESPACE = "local"
LIMIT_CHARS = 9_500
"""A client shows only the beginning of a context above 10,000 characters."""
OFF = "mcp-compact: OFF, run mcp-compact doctor"


def bind(conn: sqlite3.Connection, given: Given, now_ms: int) -> None:
    """Note that the client that started this hook is at this session, unless that is known."""
    client = ancestors.client(places.stated_client())
    at = (given.transcript if places.may_be_read(given.transcript) else "", given.cwd)
    if given.session_id and hook_rows.bound(conn, client) != (NAMESPACE, given.session_id, *at):
        hook_rows.bind(conn, client, (NAMESPACE, given.session_id), at, now_ms)


def is_followed(conn: sqlite3.Connection) -> bool:
    """Does a running server follow the transcript of what this hook's client is at?"""
    client = ancestors.client(places.stated_client())
    return ancestors.is_alive(hook_rows.follower(conn, client))


def started(conn: sqlite3.Connection, given: Given, archive: str) -> str:
    """One line to the person at a start; it does not reach the model. Once after a fault it says so."""
    if notes.untold(archive):
        notes.told(archive)
        return said(OFF)
    rules = hook_rows.rules_kept(conn, NAMESPACE, given.session_id)
    return said(f"mcp-compact: recording{_rules(rules)}")


def said(text: str) -> str:
    """A line for the person, in the form that clients show."""
    return json.dumps({"systemMessage": text})


def context(event: str, text: str) -> str:
    """Text for the model, in the form that clients add to its context; empty for none."""
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text[:LIMIT_CHARS]}})


def _rules(number: int) -> str:
    return "" if number == 0 else f", {number} rule{'' if number == 1 else 's'} kept"
