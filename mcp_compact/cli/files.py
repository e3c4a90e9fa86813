"""Files that a person names: what can be wrong with them, said clearly."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mcp_compact.errors import CallerError


def readable_file(name: str) -> Path:
    """The file of this name. Raises CallerError where it is missing, a folder, no plain file, unreadable or empty."""
    try:
        path = Path(name).expanduser()
        facts = path.stat()
    except FileNotFoundError:
        raise CallerError("missing_file", f"There is no file {name!r}.", "Check the path.") from None
    except (OSError, RuntimeError, ValueError) as error:
        # The system's own words; the whole error would name the path once more, however long it is.
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise CallerError("bad_path", f"{name[:200]!r} cannot be looked at: {why}.", "Check the path.") from None
    if stat.S_ISDIR(facts.st_mode):
        raise CallerError("is_folder", f"{name!r} is a folder.", "Name one transcript file in it.")
    if not stat.S_ISREG(facts.st_mode):
        raise CallerError(
            "no_plain_file", f"{name!r} is no plain file.", "Name a transcript file, or pipe it to `compact -`."
        )
    if not os.access(path, os.R_OK):
        raise CallerError("unreadable_file", f"{name!r} may not be read.", "Check its permissions.")
    if facts.st_size == 0:
        raise CallerError("empty_transcript", f"{name!r} is empty.", "Check that the transcript was written.")
    return path.resolve()


def is_folder(name: str) -> bool:
    """Is a folder meant where a session is asked for? Of a bare name that may be an id as well, see `folder_error`."""
    return bool(name) and (os.sep in name or name[0] in ".~") and Path(name).expanduser().is_dir()


def folder_error(name: str) -> CallerError | None:
    """What to say of a name that no session has, where it is a folder's; None where it is not."""
    try:
        found = bool(name) and Path(name).expanduser().is_dir()
    except (OSError, RuntimeError, ValueError):
        return None
    if not found:
        return None
    return CallerError(
        "is_folder",
        f"{name!r} is a folder, and no session.",
        "Name a session (`mcp-compact sessions` lists them) or one transcript file. Without a name it is the last "
        "session of the folder that you are in.",
    )


def about_file(error: CallerError, name: str) -> CallerError:
    """The same error with the file's name before it, where it does not name it."""
    if name in error.message:
        return error
    return CallerError(error.code, f"{name}: {error.message}", error.hint)


def known_format(name: str) -> str:
    """An input format that can be read, or empty (told from the content). Raises CallerError `unknown_format`."""
    from mcp_compact.transcripts.registry import FORMATS

    if name and name not in FORMATS:
        raise CallerError("unknown_format", f"The format {name[:40]!r} is unknown.", f"There is {', '.join(FORMATS)}.")
    return name
