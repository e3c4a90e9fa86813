"""The session that a person means by an id, its beginning, or a transcript's path; brought up to date first."""

from __future__ import annotations

from pathlib import Path

from mcp_compact.cli.archive import here, named_session
from mcp_compact.cli.client_folders import SUFFIX, claude_transcript, claude_transcripts, codex_transcript
from mcp_compact.cli.files import about_file, folder_error, is_folder, readable_file
from mcp_compact.errors import CallerError
from mcp_compact.service.deps import session_key
from mcp_compact.service.service import Service


async def found_session(service: Service, name: str) -> str:
    """The session's id. What its client has written since the last import is imported.

    A session of this folder that the archive does not know yet is found by its client's own file.
    Raises CallerError where nothing is meant, or several are.
    """
    if is_folder(name) and (folder := folder_error(name)) is not None:
        raise folder
    if _is_path(name):
        return await imported(service, readable_file(name))
    try:
        session_id = await named_session(service, name)
    except CallerError as error:
        found = _files(name) if error.code in ("unknown_session", "no_session_here") else []
        if not name and found:
            found = [max(found, key=lambda path: path.stat().st_mtime_ns)]
        if len(found) != 1:
            raise (folder_error(name) or error) from None
        return await imported(service, found[0])
    row = await service.deps.row(session_key(service.namespace, session_id))
    own = (claude_transcript(row.cwd, session_id) or codex_transcript(session_id)) if row.owner == "client" else None
    if own is not None:
        await imported(service, own)
    return session_id


def _files(name: str) -> list[Path]:
    """Clients' own files of a session that the archive does not know: Claude Code's of this folder, Codex's by id."""
    return claude_transcripts(Path(here()), name) or list(filter(None, [codex_transcript(name) if name else None]))


def _is_path(name: str) -> bool:
    """Is a file meant? An id may hold a slash too: a sub-agent's (`session/agent-...`)."""
    return bool(name) and (name.endswith(SUFFIX) or Path(name).expanduser().is_file())


async def imported(service: Service, path: Path) -> str:
    """Import a transcript, or what was added to it; the session's id."""
    try:
        result = await service.import_file(path)
    except CallerError as error:
        raise about_file(error, str(path)) from error
    return result.session_id
