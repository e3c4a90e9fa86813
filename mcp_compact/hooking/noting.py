"""The events that only note, or give what is ready: they load next to nothing, for they come often."""

from __future__ import annotations

import json
import sqlite3

from mcp_compact import ancestors, places
from mcp_compact.adapters.sqlite import hook_rows
from mcp_compact.hooking import notes
from mcp_compact.hooking.given import Given

NAMESPACE = "local"
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


def started(conn: sqlite3.Connection, given: Given, archive: str, text: str = "") -> str:
    """One line to the person at a start, which does not reach the model; once after a fault it says so.

    `text` is for the model: a brief that waits for a fresh conversation.
    """
    if notes.untold(archive):
        notes.told(archive)
        return answer(given.own_event, OFF, text)
    rules = hook_rows.rules_kept(conn, NAMESPACE, given.session_id)
    return answer(given.own_event, f"mcp-compact: recording{_rules(rules)}", text)


def answer(event: str, to_person: str = "", to_model: str = "") -> str:
    """A line that the client shows and text that it adds to the context, in its own form; empty for neither."""
    said: dict[str, object] = {"systemMessage": to_person} if to_person else {}
    if to_model:
        said["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": to_model}
    return json.dumps(said) if said else ""


def stopped(reason: str) -> str:
    """The answer that keeps Codex from going on."""
    return json.dumps({"continue": False, "stopReason": reason})


def _rules(number: int) -> str:
    return "" if number == 0 else f", {number} rule{'' if number == 1 else 's'} kept"
