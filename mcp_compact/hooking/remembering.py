"""The session memory brought up to the newest record. It loads the extractor, which most hooks can do without."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.config import Settings
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.weights import estimate_all
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import memory_text

READINGS = 3


def update_memory(conn: sqlite3.Connection, key: SessionKey, settings: Settings, now_ms: int) -> None:
    """Bring the session memory up to the newest record, where that is switched on and something is new."""
    if not settings.policy.session_memory:
        return
    for _ in range(READINGS):
        snapshot = operations.snapshot(conn, key, memory_text.NEWEST)
        if snapshot is None:
            return
        covered, newest = memory_text.covered_seq(snapshot), snapshot.base.last_seq
        records = operations.records(conn, key, after_seq=covered, up_to_seq=newest, live_only=True)
        text = memory_text.memory_text(snapshot, records, settings.policy.memory, estimate_all)
        if text is None or _is_written(conn, key, text, snapshot, now_ms):
            return
    raise ServerError("memory_changed", "The memory is being written by others.")


def _is_written(conn: sqlite3.Connection, key: SessionKey, text: str, snapshot: Snapshot, now_ms: int) -> bool:
    """Write the version, unless somebody else has written one since the snapshot."""
    version = snapshot.memory.version if snapshot.memory else 0
    mark = memory_text.newest_uuid(snapshot)
    try:
        operations.write_memory(conn, key, text, mark, memory_text.WRITER, now_ms, if_version=version)
    except CallerError as error:
        if error.code != "memory_changed":
            raise
        return False
    return True
