"""Gemini CLI's own compactions, found in its chat file: no hook of it tells of one that took place.

`PreCompress` comes at every request, whether or not anything is compacted. What is compacted is seen behind it: the
file goes on with a line that sets the history anew, and its first words are the snapshot that stands for the rest.
How far a file was looked through is kept, so that a prompt costs one query and the bytes that are new.
"""

from __future__ import annotations

import json
import sqlite3
from hashlib import blake2b

from mcp_compact import places
from mcp_compact.adapters.sqlite import hook_rows
from mcp_compact.hooking.given import Given

SET, SNAPSHOT = b'"$set"', b"<state_snapshot>"
TEXT = SNAPSHOT.decode()
MOST_BYTES = 64 << 20
"""Of what is new; of more than that the newest is looked at."""


class Found:
    """The newest snapshot behind the last look: its text, empty for none, and where the file ends now."""

    __slots__ = ("end", "mark", "text")

    def __init__(self, text: str, end: int, mark: str) -> None:
        self.text, self.end, self.mark = text, end, mark


def source_of(given: Given) -> str:
    """The name under which the place is kept."""
    return f"{given.session_id}|snapshots"


def newest(conn: sqlite3.Connection, given: Given, path: str, namespace: str) -> Found:
    """Look at what is new in a chat. A snapshot that is known (a resumed session writes it again) is none.

    Raises OSError where the file cannot be read.
    """
    offset, mark = hook_rows.place_read(conn, namespace, source_of(given))
    with open(path, "rb") as stream:
        end = stream.seek(0, 2)
        stream.seek(max(offset if offset <= end else 0, end - MOST_BYTES))
        data = stream.read()
    # A line that is still being written is looked at again.
    whole = data.rpartition(b"\n")[0]
    text = ""
    for line in whole.splitlines() if SNAPSHOT in whole else ():
        if SNAPSHOT in line and SET in line[:40]:
            text = _snapshot(line) or text
    own = blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest() if text else ""
    known = not own or own == mark
    return Found("" if known else text, end - (len(data) - len(whole)), mark if known else own)


def look_through(conn: sqlite3.Connection, given: Given, namespace: str) -> None:
    """Note how far a chat holds no compaction that was not answered, so that the next prompt reads on from there."""
    path = places.readable_transcript(given.transcript)
    found = newest(conn, given, path, namespace) if path else None
    if found is not None and not found.text:
        hook_rows.note_place(conn, (namespace, given.session_id), source_of(given), (found.end, found.mark))


def _snapshot(line: bytes) -> str:
    try:
        messages = json.loads(line)["$set"]["messages"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    for message in reversed(messages) if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("type") == "user" and TEXT in (text := _words(message)):
            return text
    return ""


def _words(message: dict[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
