"""The archive brought up to date from the client's transcript: only what is behind the last known place is read.

The same batches, preparation and storage operations as in an import, one after the other. Twice is once, and
several may do so at the same time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path

from mcp_compact import places
from mcp_compact.adapters.sqlite import operations
from mcp_compact.config import Settings
from mcp_compact.errors import CallerError
from mcp_compact.hooking.given import Given
from mcp_compact.hooking.noting import NAMESPACE
from mcp_compact.ports.store import Batch, SessionFacts, SessionKey
from mcp_compact.service import import_batches
from mcp_compact.service.import_batches import Head, ImportWork, ReadBatch
from mcp_compact.service.keys import session_key
from mcp_compact.service.prepare import prepare
from mcp_compact.transcripts.registry import detect_format


def catch_up(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> SessionKey | None:
    """Store what the transcript has that the archive has not; the session, None where there is none yet.

    Raises CallerError `transcript_elsewhere` for a file that may not be read, and what an import raises.
    """
    key = session_key(NAMESPACE, given.session_id)
    if given.transcript and not places.may_be_read(given.transcript):
        raise CallerError(
            "transcript_elsewhere",
            f"The client's transcript lies in {os.path.dirname(given.transcript)!r}, which may not be read.",
            "Name that folder in MCP_COMPACT_ROOTS, in the environment that the client is started with.",
        )
    path = places.readable_transcript(given.transcript)
    if given.document is not None:
        _import_document(conn, given, given.document, key, now_ms)
    elif path and Path(path).stat().st_size:
        _import(conn, given, Path(path), key, settings, now_ms)
    row = operations.session(conn, key)
    if row is not None and not row.cwd and os.path.isabs(given.cwd):
        # A server that follows was faster with everything, and the transcript does not tell its folder.
        operations.append(conn, key, Batch((), SessionFacts(cwd=given.cwd), create=False), now_ms)
    return key if row is not None else None


def _import(
    conn: sqlite3.Connection, given: Given, path: Path, key: SessionKey, settings: Settings, now_ms: int
) -> None:
    head = import_batches.head_of(path, settings.max_file_bytes, format_name="", session_id=key.session_id)
    position = operations.position(conn, NAMESPACE, head.source)
    work = import_batches.work_at(head, path.stem, key.session_id, position)
    with import_batches.open_file(path) as stream, import_batches.uncollected():
        stream.seek(work.offset)
        for read in import_batches.batches(work, import_batches.chunks(stream)):
            for item in import_batches.ready(work, NAMESPACE, path.stem, read):
                _store(conn, given, work, item, now_ms)


def _import_document(
    conn: sqlite3.Connection, given: Given, document: dict[str, object], key: SessionKey, now_ms: int
) -> None:
    """Store what a session holds that was handed over whole. It has no place where a reading could go on."""
    data = json.dumps(document, separators=(",", ":")).encode()
    named = detect_format(data[: import_batches.HEAD_BYTES])
    work = import_batches.work_at(Head(named, len(data), "", ""), key.session_id, key.session_id, None)
    with import_batches.uncollected():
        for read in import_batches.batches(work, (data,)):
            for item in import_batches.ready(work, NAMESPACE, key.session_id, read):
                _store(conn, given, work, item, now_ms)


def _store(conn: sqlite3.Connection, given: Given, work: ImportWork, read: ReadBatch, now_ms: int) -> None:
    # Without a tokenizer: its vocabulary takes longer to load than a transcript to be read.
    prepared = prepare([item.record for item in read.parsed], None, with_content_hash=False)
    key, stored = work.session(), []
    if import_batches.needs_stored(read) and (row := operations.session(conn, key)) is not None:
        stored = operations.records(conn, key, after_seq=0, up_to_seq=row.last_seq, live_only=True)
    for own, batch in import_batches.parted(work, read, prepared, stored):
        if batch.facts.cwd is None and os.path.isabs(given.cwd):
            # Not every transcript tells its folder; the client does.
            batch = replace(batch, facts=replace(batch.facts, cwd=given.cwd))  # noqa: PLW2901 - as it is stored
        work.took(operations.append(conn, own, batch, now_ms))
