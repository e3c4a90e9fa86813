"""Faults of hooks, kept for `mcp-compact doctor`: a hook itself must stay silent.

A small file beside the archive, one JSON object a line, since the archive may be what is broken. It says which
event failed and why, and nothing of a conversation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

NAME = "hook-notes.jsonl"
MOST_BYTES = 64 << 10
KEPT_LINES = 50
"""Of a file that has become too large."""
TOLD = {"told": True}


def place(archive: str) -> str:
    """The file of notes of an archive."""
    return os.path.join(os.path.dirname(archive), NAME)


def keep(archive: str, note: Mapping[str, object]) -> None:
    """Add a note: `at_ms`, `event`, `code`, `text`, and `off` where nothing was recorded. Raises OSError."""
    path = place(archive)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.write(handle, json.dumps(dict(note)).encode() + b"\n") and os.fstat(handle).st_size
    finally:
        os.close(handle)
    if size > MOST_BYTES:
        _shorten(path)


def kept(archive: str) -> list[dict[str, object]]:
    """The notes, old to new; lines that are none are passed over. Raises OSError, but not for a missing file."""
    try:
        with open(place(archive), "rb") as stream:
            lines = stream.read(4 * MOST_BYTES).splitlines()
    except FileNotFoundError:
        return []
    return [note for line in lines if (note := _note(line)) is not None]


def untold(archive: str) -> bool:
    """Was something not recorded since the person was last told?"""
    since: bool = False
    for note in kept(archive):
        since = False if note == TOLD else since or note.get("off") is True
    return since


def told(archive: str) -> None:
    """The person was told of what is kept so far. Raises OSError."""
    keep(archive, TOLD)


def clear(archive: str) -> None:
    """Forget the notes: what they tell of is solved. Raises OSError, but not for a missing file."""
    try:
        os.unlink(place(archive))
    except FileNotFoundError:
        return


def _note(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _shorten(path: str) -> None:
    """Keep the newest lines. Another process may write meanwhile: at worst its note is lost."""
    with open(path, "rb") as stream:
        lines = stream.read().splitlines(keepends=True)[-KEPT_LINES:]
    part = f"{path}.{os.getpid()}"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(b"".join(lines))
    os.replace(part, path)
