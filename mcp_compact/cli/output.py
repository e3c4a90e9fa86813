"""Answers as JSON, and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mcp_compact.errors import CallerError

PREFIX_CHARS = 40
"""Of the name that a part of a file has: the whole could be too long with what is added."""
MOST_NAMED = 300
FULL = (errno.ENOSPC, errno.EDQUOT)
ROOM = "Free some space, or name a file on another disk."
NO_ROOM = "Name a file in a folder that you may write to."


def plain(value: object) -> Any:  # noqa: ANN401
    """A value of ours as JSON values: dataclasses become objects, tuples lists, paths texts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def print_json(value: object) -> None:
    """One JSON object on stdout."""
    from mcp_compact.messages.codec import clean

    json.dump(clean(plain(value)), sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file for its owner's eyes only (0600): all of it, or nothing. Raises CallerError."""
    named = path
    try:
        path = path.resolve()
        if path.is_dir():
            raise CallerError("output_is_folder", f"{path} is a folder.", "Name a file to write to.")
        if path.exists() and not path.is_file():
            # A device or a pipe is not to be replaced by a file.
            path.write_bytes(content)
            return
        with replacing(path) as stream:
            stream.write(content)
    except BrokenPipeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise refused_output(named, error) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` (0600) once all of it is written. Raises CallerError, OSError."""
    if not path.parent.is_dir():
        raise CallerError("no_output_folder", f"The folder {path.parent} does not exist.", "Make it, or name another.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:PREFIX_CHARS]}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def refused_output(named: Path, error: Exception) -> CallerError:
    """What a person named to be written, why the system refused it, and what helps."""
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    hint = ROOM if isinstance(error, OSError) and error.errno in FULL else NO_ROOM
    return CallerError("output_refused", f"{str(named)[:MOST_NAMED]} cannot be written: {why}.", hint)
