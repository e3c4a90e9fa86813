"""The key that seals a question's state, shared by every process that serves an archive on a network.

What a client is asked within a call (for a summary by its model) comes back with the call that it makes again. With
the key beside the archive that call may reach another process, or the same one after a restart.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from pathlib import Path

SUFFIX = "-state-key"
KEY_BYTES = 32
TRIES = 3

logger = logging.getLogger(__name__)


def state_key(archive: Path) -> bytes:
    """The key beside this archive, made by the first process that asks; only its owner can read it.

    Where none can be kept there (no file, nothing can be written) it is this process's own.
    """
    path = archive.with_name(archive.name + SUFFIX)
    try:
        for _ in range(TRIES):
            key = _kept(path)
            if key is not None and len(key) == KEY_BYTES:
                return key
            # Whoever is second finds the first one's key at the next look.
            _make(path, is_bad=key is not None)
    except OSError as error:
        logger.warning("no key can be kept beside the archive (%s): questions end with this process", error.strerror)
    return secrets.token_bytes(KEY_BYTES)


def _kept(path: Path) -> bytes | None:
    """What is kept, None where there is no file; empty where others could read it too."""
    try:
        return b"" if os.name == "posix" and path.stat().st_mode & 0o077 else path.read_bytes()
    except FileNotFoundError:
        return None


def _make(path: Path, *, is_bad: bool) -> None:
    """Put a whole key there in one step, unless somebody else has."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
        if is_bad or not hasattr(os, "link"):
            made.replace(path)
            return
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
    finally:
        made.unlink(missing_ok=True)
