"""Following the transcript of the session that this server's client is at: what is new goes into the archive.

The client's hooks note which file that is. A look costs a query and a `stat`. Where the file has changed, only what
was appended is read of formats of one entry a line; a file that is one value is read whole again, and what the archive
knows is passed over. It is quiet: a look that fails is made again by the next.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from mcp_compact import ancestors, places
from mcp_compact.errors import CallerError, CompactError
from mcp_compact.ports.bindings import Bound

if TYPE_CHECKING:
    from mcp_compact.service.service import Service

LAST_LOOK_S = 2.0
"""How long what came last may take once the client has left."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Follower:
    """Follows for one client. `look` may be called at any time, `run` calls it every few seconds."""

    service: Callable[[], Awaitable[Service]]
    client: str
    archive: str
    seconds: float = 2.0
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _seen: tuple[str, int, int] = ("", 0, 0)
    """File, size and time of its last change, as they were read last."""
    _placed: str = ""
    """The session whose folder was noted last."""
    _is_noted: bool = False
    _told: type[Exception] | None = None
    """The kind of defect that was logged last."""

    async def run(self) -> None:
        """Look again and again; never ends by itself, and raises nothing."""
        while True:
            await self.look()
            await anyio.sleep(self.seconds)

    async def last_look(self) -> None:
        """Take what came last, as the server ends."""
        with anyio.move_on_after(LAST_LOOK_S, shield=True):
            await self.look()

    async def look(self) -> Bound | None:
        """Bring the archive up to date with the transcript; what the client is at, None where that is not known."""
        try:
            async with self._lock:
                return await self._look()
        except CompactError as error:
            logger.debug("the transcript was not followed: %s", error)
        except Exception as error:
            # A defect must not take the server down, nor the call that wanted to be up to date. It is told once.
            if self._told is not type(error):
                logger.exception("the transcript could not be followed")
                self._told = type(error)
        return None

    async def _look(self) -> Bound | None:
        service = await self.service()
        bound = await service.bound(self.client)
        if bound is None or bound.namespace != service.namespace:
            return None
        if places.is_off(bound.cwd, self.archive):
            return bound
        if not self._is_noted:
            await service.follow(self.client, ancestors.own())
            self._is_noted = True
        now = await to_thread.run_sync(_state_of, bound.transcript)
        if now[0] and now != self._seen:
            await self._take(service, bound, now)
        return bound

    async def _take(self, service: Service, bound: Bound, now: tuple[str, int, int]) -> None:
        try:
            await service.import_file(Path(now[0]), session_id=bound.session_id)
            if bound.cwd and self._placed != bound.session_id:
                await service.note_folder(bound.session_id, bound.cwd)
                self._placed = bound.session_id
        except CallerError as error:
            # Nothing that can be read yet; it is looked at again when it has grown.
            logger.debug("the transcript was not read: %s", error)
        self._seen = now


def _state_of(transcript: str) -> tuple[str, int, int]:
    """The file's real place, size and time of change; no place where it is not there or may not be read."""
    path = places.readable_transcript(transcript)
    try:
        found = Path(path).stat() if path else None
    except OSError:
        found = None
    return (path, found.st_size, found.st_mtime_ns) if found else ("", 0, 0)
