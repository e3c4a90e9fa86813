"""Answers as JSON, and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from mcp_compact.errors import CallerError


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
    path = path.resolve()
    folder = path.parent
    if path.is_dir():
        raise CallerError("output_is_folder", f"{path} is a folder.", "Name a file to write to.")
    if path.exists() and not path.is_file():
        # A device or a pipe is not to be replaced by a file.
        path.write_bytes(content)
        return
    if not folder.is_dir():
        raise CallerError("no_output_folder", f"The folder {folder} does not exist.", "Make it, or name another.")
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
    except PermissionError as error:
        raise CallerError("output_refused", f"The folder {folder} may not be written to.", "Name another.") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
