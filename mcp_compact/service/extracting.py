"""Bringing the session memory up to date now, by the extractor: without a model, and without a compaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from anyio import from_thread, to_thread

from mcp_compact.compaction.extract_passages import Told
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import Deps
from mcp_compact.service.memory import get_memory
from mcp_compact.service.memory_text import NEWEST, WRITER, covered_seq, memory_text, newest_uuid
from mcp_compact.service.prepare import Progress
from mcp_compact.service.results import MemoryResult

READINGS = 3
REPORTS = 50
"""So often an extraction says how far it is."""
WHAT = "extracting the session memory"


async def extract_memory(deps: Deps, key: SessionKey, progress: Progress | None = None) -> MemoryResult:
    """Write a version that covers everything up to the newest message; none where nothing is new.

    Bodies are read of what the memory does not cover. `progress` counts records, each twice: read for lines, and
    chosen from; a call that is taken back ends the reading. Raises CallerError `extractor_off`, `unknown_session`.
    """
    await deps.row(key)
    if not deps.settings.policy.session_memory:
        raise CallerError(
            "extractor_off", "Session memory is switched off by a setting.", "update_session_memory still writes notes."
        )
    for _ in range(READINGS):
        snapshot = await deps.store.snapshot(key, NEWEST)
        if snapshot is None:
            raise ServerError("session_gone", "The session was removed while it was read.", "Call again.")
        text = await _text(deps, key, snapshot, progress)
        if text is None:
            return replace(await get_memory(deps, key), warnings=("nothing is new since the memory was written",))
        if await _is_written(deps, key, snapshot, text):
            return await get_memory(deps, key)
        # Somebody wrote notes meanwhile: they are the memory to start from.
    raise CallerError("memory_changed", "The memory is being written by others.", "Call again.")


async def _is_written(deps: Deps, key: SessionKey, snapshot: Snapshot, text: str) -> bool:
    """Write the version, unless somebody else has written one since the snapshot."""
    version, now = snapshot.memory.version if snapshot.memory else 0, deps.clock.now_ms()
    try:
        await deps.store.write_memory(key, text, newest_uuid(snapshot), WRITER, now, if_version=version)
    except CallerError as error:
        if error.code != "memory_changed":
            raise
        return False
    return True


async def _text(deps: Deps, key: SessionKey, snapshot: Snapshot, progress: Progress | None) -> str | None:
    """The memory of everything up to now; None where nothing is new."""
    covered, newest = covered_seq(snapshot), snapshot.base.last_seq
    records = await deps.store.records(key, after_seq=covered, up_to_seq=newest, live_only=True)
    around, limits = await deps.surroundings(key.session_id), deps.settings.policy.memory
    told = None if progress is None else _telling(progress, records)
    text = await to_thread.run_sync(partial(memory_text, snapshot, records, limits, around.count, told))
    if progress is not None and records:
        progress(2 * len(records), 2 * len(records), WHAT)
    return text


def _telling(progress: Progress, records: Sequence[Record]) -> Told:
    """Reports from the extractor's thread, some of the way at a time; lines are about half of the work."""
    total = len(records)
    step = max(1, total // REPORTS)

    def told(order: int) -> None:
        if order % step == 0:
            from_thread.check_cancelled()
            from_thread.run_sync(progress, order, 2 * total, WHAT)

    return told
