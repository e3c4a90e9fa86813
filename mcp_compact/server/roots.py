"""Which files may be read by path: those inside of the roots, links and `..` followed first."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISDIR, S_ISREG

from mcp_compact.errors import CallerError
from mcp_compact.transcripts.project_folder import project_slug

NAMED_IN_ERRORS = 5
SHOWN_CHARS = 300


def default_roots(cwd: Path) -> tuple[Path, ...]:
    """The working directory, and where Claude Code keeps the transcripts of that project.

    A desktop client may start its servers in `/` or in the home directory: no project is there, and everything else.
    """
    try:
        home = Path.home()
    except RuntimeError:
        return () if _is_top(cwd) else (cwd,)
    transcripts = home / ".claude" / "projects" / project_slug(cwd)
    return (transcripts,) if _is_top(cwd) or cwd == home else (cwd, transcripts)


def _is_top(cwd: Path) -> bool:
    return cwd == Path(cwd.anchor)


def readable_path(text: str, roots: tuple[Path, ...], cwd: Path | None) -> Path:
    """The real path of a file that may be read. Whether it exists outside of the roots is not told."""
    if not roots or cwd is None:
        raise CallerError("no_roots", "This server reads no files by path.", "Pass the transcript's text as content.")
    try:
        path = (cwd / Path(text).expanduser()).resolve()
        real_roots = [root.resolve() for root in roots]
    except (OSError, RuntimeError, ValueError) as error:
        raise CallerError("bad_path", f"{text[:SHOWN_CHARS]!r} is no usable path.", "Pass a path to a file.") from error
    if not any(path.is_relative_to(root) for root in real_roots):
        named = ", ".join(str(root) for root in roots[:NAMED_IN_ERRORS])
        raise CallerError(
            "outside_roots",
            f"{text[:SHOWN_CHARS]!r} lies outside of the folders that may be read ({named}).",
            "Name its folder in the setting MCP_COMPACT_ROOTS, or pass the transcript's text as content.",
        )
    _check_kind(path, text)
    return path


def _check_kind(path: Path, text: str) -> None:
    """Raises CallerError for what is neither a file nor a folder; what is missing is told by the import."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        message = f"{text[:SHOWN_CHARS]!r} cannot be looked at: {error.strerror}."
        raise CallerError("bad_path", message, "Pass a path to a file.") from error
    if not (S_ISREG(mode) or S_ISDIR(mode)):
        raise CallerError("not_a_file", f"{text[:SHOWN_CHARS]!r} is a device or a pipe.", "Pass a path to a file.")
