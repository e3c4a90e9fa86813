"""A brief that waits for the next fresh conversation of a project: given once, within an hour, and only if asked for.

A file beside the archive, one a project. A client's hook takes it, so this file stands on small modules alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from binascii import crc32

FOLDER = "handoff"
LIFE_MS = 3_600_000
MOST_CHARS = 9_500
"""Claude Code shows only a preview of a hook's context above 10,000 characters."""
MOST_BYTES = 100_000
_NAME_CHARS = 100


def put(archive: str, cwd: str, text: str, now_ms: int) -> str:
    """Leave a brief for the project of this folder (0600; it replaces the last one); the file's path.

    `archive`: the archive's file. Raises ValueError where the text is longer than a client takes, OSError
    where the file cannot be written.
    """
    if len(text) > MOST_CHARS:
        raise ValueError(f"a brief of {len(text)} characters: {MOST_CHARS} are taken")
    path = _path(archive, cwd)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        json.dump({"cwd": os.path.realpath(cwd), "at_ms": now_ms, "text": text}, stream)
    os.replace(fresh, path)
    return path


def take(archive: str, cwd: str, now_ms: int) -> str:
    """The brief that waits for the project of this folder, which then waits no more; empty where none does.

    Of two that ask at once one gets it. Raises nothing: a file that cannot be read is none.
    """
    path = _path(archive, cwd)
    mine = f"{path}.{os.getpid()}.taken"
    try:
        os.rename(path, mine)
    except OSError:
        return ""
    try:
        with open(mine, encoding="utf-8") as stream:
            note = json.loads(stream.read(MOST_BYTES))
    except (OSError, ValueError):
        return ""
    finally:
        with contextlib.suppress(OSError):
            os.unlink(mine)
    if not isinstance(note, dict) or note.get("cwd") != os.path.realpath(cwd):
        return ""
    at_ms, text = note.get("at_ms"), note.get("text")
    is_fresh = isinstance(at_ms, int) and 0 <= now_ms - at_ms <= LIFE_MS
    return text if is_fresh and isinstance(text, str) and len(text) <= MOST_CHARS else ""


def forget(archive: str, cwd: str) -> bool:
    """Remove the brief that waits for a project; False where there is none."""
    try:
        os.unlink(_path(archive, cwd))
    except OSError:
        return False
    return True


def _path(archive: str, cwd: str) -> str:
    real = os.path.realpath(cwd)
    name = re.sub(r"[^A-Za-z0-9]", "-", real)[-_NAME_CHARS:]
    number = crc32(real.encode("utf-8", "surrogatepass"))
    return os.path.join(os.path.dirname(archive), FOLDER, f"{name.strip('-')}-{number:08x}.json")
