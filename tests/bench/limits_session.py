"""Operations on a stored session, by its length and against their own SQL run bare."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.config import load_settings
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.searching import BEST, Narrowed
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service
from tests.bench.large_archive import RARE, archive
from tests.bench.measuring import Bar, Times, async_milliseconds, milliseconds
from tests.bench.recorded_sql import Recording, plain, recording

SESSION = "s"
KEY = SessionKey("local", SESSION)
RESULTS = 14
KEPT = 40
"""Newest messages that the memory does not cover."""
WORDS = "read the parser and mend the offset of line {n} in src/module_{m}.py before the next release "
MEMORY = "# Session memory\n\n## Task\n- " + "\n- ".join(WORDS.format(n=n, m=n) for n in range(120))
EVERYTHING = MicroRequest(mode=MicroMode.ALL)
BY_FORCE = CompactCall(trigger="manual", force=True)
TAIL = 100
Work = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Measured:
    """A session that is worked on again and again, and what that took: `NAME`, and `NAME, raw` of the same SQL."""

    service: Service
    conn: sqlite3.Connection
    messages: int
    numbers: count[int]
    times: Times = field(default_factory=Times)
    reads: dict[str, int] = field(default_factory=dict)
    """Rows that an operation read."""

    async def timed(self, name: str, work: Work) -> None:
        self.times.add(name, await async_milliseconds(work))

    def replayed(self, name: str, kept: Recording) -> None:
        self.times.add(f"{name}, raw", milliseconds(lambda: kept.replay(self.conn)))

    async def round(self) -> None:
        """Every operation once; the session ends as it began, some messages longer."""
        await self._append()
        await self._micro()
        await self._compact()
        for name, work in self.readings().items():
            await self._read(name, work)
        await self.timed("extraction of what is new", lambda: self.service.extract_memory(SESSION))

    async def _append(self) -> None:
        one = {"role": "user", "content": WORDS.format(n=next(self.numbers), m=3) * 3}
        await self.timed("append 1 message", lambda: self.service.append_messages([one], SESSION))

    async def _micro(self) -> None:
        for turn in ("record", "product"):
            await self.service.append_messages(self._results(), SESSION)
            if turn == "product":
                await self.timed("micro-compaction", self._cleared)
                continue
            with recording(take_back=True) as kept:
                await self._cleared()
            self.replayed("micro-compaction", kept)

    def _results(self) -> list[dict[str, object]]:
        out: list[dict[str, object]] = []
        for _ in range(RESULTS):
            number = next(self.numbers)
            said = WORDS.format(n=number, m=number % 97)
            call = {"type": "tool_use", "id": f"b{number}", "name": "Read", "input": {"file_path": f"src/{number}.py"}}
            out += [
                {"role": "assistant", "content": [call]},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": f"b{number}", "content": said * 5}],
                },
            ]
        return out

    async def _cleared(self) -> None:
        done = await self.service.microcompact(SESSION, EVERYTHING)
        assert sum(row[1] for row in done.cleared) == RESULTS, done

    async def _compact(self) -> None:
        with recording(take_back=True) as kept:
            await self._compacted()
        self.replayed("session-memory compaction", kept)
        await self.service.undo(SESSION)
        await self.timed("session-memory compaction", self._compacted)
        await self.timed("live context, a page", lambda: self.service.messages(SESSION))
        await self.timed("undo", self._undone)

    async def _compacted(self) -> None:
        done = await self.service.compact(SESSION, BY_FORCE)
        assert (done.status, done.strategy) == ("compacted", "session_memory"), done

    async def _undone(self) -> None:
        assert (await self.service.undo(SESSION)).status == "undone"

    def readings(self) -> dict[str, Work]:
        """Reading operations, which leave everything as it is."""
        middle = f"t{(self.messages // 2) // 20 * 20 + 1}"
        return {
            "get_context_status": lambda: self.service.status(SESSION),
            "tail of 100": partial(self._tail, self._newest()),
            "tail of 100, with bodies": self._bodies,
            "original by id": lambda: self.service.original(SESSION, middle),
            "search after appends": lambda: self.service.search("import", limit=20),
            "search, newest 20": lambda: self.service.search("import", limit=20),
            "search, best 20": lambda: self.service.search(RARE, limit=20, narrowed=Narrowed(order=BEST)),
            "search in one session": lambda: self.service.search(RARE, limit=20, session_id=SESSION),
        }

    async def _tail(self, down_to: int) -> None:
        """A snapshot of the newest 100, as a compaction reads them."""
        found = await self.service.deps.store.snapshot(KEY, Reach(0, 0, 0, down_to))
        assert found is not None
        # No call is parted from its result.
        assert TAIL <= len(found.tail) <= TAIL + 2

    def _newest(self) -> int:
        """Seq of the message before the hundred newest: markers have numbers too."""
        found = self.conn.execute(
            "SELECT r.seq FROM record r JOIN session s ON s.id = r.session WHERE s.session_id = ? AND r.kind = 1 "
            "AND r.active > 0 ORDER BY r.seq DESC LIMIT 1 OFFSET ?",
            (SESSION, TAIL),
        )
        return int(found.fetchone()[0])

    async def _bodies(self) -> None:
        row = await self.service.deps.row(KEY)
        found = await self.service.deps.store.records(
            KEY, after_seq=row.last_seq - TAIL, up_to_seq=row.last_seq, live_only=False
        )
        assert len(found) == TAIL

    async def _read(self, name: str, work: Work) -> None:
        await self.timed(name, work)
        with recording() as kept:
            await work()
        self.reads[name] = sum(one.rows for one in kept.reads)
        self.replayed(name, kept)
        self.times.add(f"{name}, read", milliseconds(lambda: _read_json(kept.replay(self.conn))))


def _read_json(rows: Iterable[tuple[Any, ...]]) -> None:
    """Read the bodies among some rows."""
    for row in rows:
        for value in row:
            if isinstance(value, bytes) and value.startswith(b'{"'):
                json.loads(value)


@asynccontextmanager
async def opened(folder: Path, messages: int) -> AsyncIterator[Measured]:
    """The session of so many messages, its memory up to date."""
    path = archive(folder, messages)
    settings = replace(load_settings({}), db=path, extract=False)
    async with open_service(settings) as service:
        row = await service.deps.row(KEY)
        measured = Measured(service, plain(path), messages, count(row.last_seq))
        newest = await service.deps.store.records(
            KEY, after_seq=row.last_seq - KEPT, up_to_seq=row.last_seq, live_only=False
        )
        await service.update_memory(SESSION, MEMORY, summarized_through=str(newest[0].uuid))
        # What a run that was broken off may have left behind.
        while (await service.status(SESSION)).live_messages < messages:
            assert (await service.undo(SESSION)).status == "undone"
        try:
            yield measured
        finally:
            measured.conn.close()


async def by_length(folder: Path, lengths: Sequence[int], repeats: int) -> dict[int, Measured]:
    """Rounds of every session in turn. The first one warms up and does not count."""
    bar = Bar("measuring", repeats + 1)
    async with AsyncExitStack() as stack:
        sessions = {length: await stack.enter_async_context(opened(folder, length)) for length in lengths}
        for at in range(repeats + 1):
            for session in sessions.values():
                await session.round()
                if at == 0:
                    session.times = Times()
            bar.reach(at + 1)
        return sessions
