"""Sessions as their client keeps them: found by id, by path, or as the last one here that was compacted; read whole."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.cli.archive import ask, here, named_session, require_database
from mcp_compact.cli.client_folders import SUFFIX, claude_projects, claude_transcripts
from mcp_compact.cli.files import about_file, folder_error, is_folder, readable_file
from mcp_compact.compaction.rules import DROPPED
from mcp_compact.config import Settings, load_settings
from mcp_compact.errors import CallerError
from mcp_compact.messages.message import Record
from mcp_compact.service.deps import session_key
from mcp_compact.service.service import Service
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.registry import detect_format, reader_for
from mcp_compact.transcripts.sniffing import HEADS_BYTES

INSTRUCTION = "instruction"
"""The kind of pins that are rules."""
BOUNDARY = b"compact_boundary"
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NativeSession:
    """The records of a session's own line (no sub-agents), and what its person chose about rules."""

    session_id: str
    source: str
    """The transcript's path, or `archive`."""
    records: tuple[Record, ...]
    pinned: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def find_session(name: str, *, compacted: bool = False) -> NativeSession:
    """The session that a person means: a path, an id or its beginning, or nothing for the last one of this folder.

    `compacted`: the last one that was compacted. The client's transcript comes before the archive.
    Raises CallerError where nothing is meant, or several are.
    """
    settings = load_settings()
    path = _transcript(name, compacted=compacted)
    try:
        found = _read(path, settings) if path is not None else _from_archive(name)
    except CallerError as error:
        raise (folder_error(name) if path is None else None) or error from None
    return _with_choices(found, settings)


def _transcript(name: str, *, compacted: bool) -> Path | None:
    if is_folder(name) and (folder := folder_error(name)) is not None:
        raise folder
    if name and (name.endswith(SUFFIX) or Path(name).expanduser().is_file()):
        return readable_file(name)
    found = claude_transcripts(Path(here()), name)
    if name and not found and _is_plain(name):
        found = [path for folder in _folders() for path in folder.glob(f"{name}*{SUFFIX}")]
    found.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    found = [path for path in found if path.stem == name] or found
    if name:
        if len(found) > 1:
            some = ", ".join(path.stem for path in found[:5])
            raise CallerError(
                "ambiguous_session", f"{len(found)} sessions begin with {name[:80]!r}: {some}.", "Give more."
            )
        return found[0] if found else None
    return next((path for path in found if not compacted or _was_compacted(path)), None)


def _is_plain(name: str) -> bool:
    """Does it hold nothing that a search for files would read as a pattern or another folder?"""
    return all(char.isalnum() or char in "-_" for char in name)


def _folders() -> Sequence[Path]:
    try:
        return [path for path in claude_projects().iterdir() if path.is_dir()]
    except OSError:
        return []


def _was_compacted(path: Path) -> bool:
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(BOUNDARY) >= 0
    except (OSError, ValueError):
        return False


def _read(path: Path, settings: Settings) -> NativeSession:
    size = path.stat().st_size
    if size > settings.max_file_bytes:
        raise CallerError(
            "file_too_large",
            f"{path} is larger than {settings.max_file_bytes // 1024**2:,} MB.",
            "Raise MCP_COMPACT_MAX_FILE_MB to read it all the same.",
        )
    try:
        with path.open("rb") as stream:
            format_name = detect_format(stream.read(max(HEADS_BYTES)))
            stream.seek(0)
            reader = reader_for(format_name, path.name)
            chunks = iter(lambda: stream.read(CHUNK_BYTES), b"")
            records = tuple(parsed.record for parsed in reader.read(read_lines(chunks)) if parsed.agent_id is None)
    except CallerError as error:
        raise about_file(error, str(path)) from error
    return NativeSession(reader.facts().session_id or path.stem, str(path), records)


def _from_archive(name: str) -> NativeSession:
    async def work(service: Service) -> NativeSession:
        session_id = await named_session(service, name)
        key = session_key(service.namespace, session_id)
        row = await service.deps.row(key)
        records = await service.deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=False)
        return NativeSession(session_id, "archive", tuple(records))

    try:
        return ask(work)
    except CallerError as error:
        if error.code not in ("no_database", "no_session_here"):
            raise
        raise CallerError(
            "no_session_here",
            f"No session of this folder ({here()}) was found, neither a client's transcript nor in the archive.",
            "Name a session, or the path of a transcript.",
        ) from error


def _with_choices(found: NativeSession, settings: Settings) -> NativeSession:
    """What the archive knows of pinned and dropped rules; nothing where it does not know the session."""

    async def work(service: Service) -> NativeSession:
        items = await service.deps.store.registered(session_key(service.namespace, found.session_id))
        return NativeSession(
            found.session_id,
            found.source,
            found.records,
            tuple(item.text for item in items if item.kind == INSTRUCTION),
            tuple(item.text for item in items if item.kind == DROPPED),
        )

    try:
        require_database(settings)
    except CallerError:
        return found
    return ask(work, settings=settings)
