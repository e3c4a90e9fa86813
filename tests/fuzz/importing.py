"""What must hold of any bytes that are imported: refused clearly with nothing stored, or stored, valid and readable."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import anyio

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.store import SqliteStore
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.paging import joined
from mcp_compact.service.results import ImportResult
from mcp_compact.service.service import Service
from mcp_compact.service.validating import validation
from mcp_compact.transcripts.outs import OUTS, Out
from mcp_compact.wiring import open_service
from tests.fuzz import shapes

LONGEST_S = 60.0
"""A guard against hanging: no mutant takes a hundredth of it."""
TABLES = ("session", "record", "body", "call", "result", "marker", "member", "conflict", "memory", "source", "ledger")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an import ended, for the account of a run."""

    code: str
    """Of the refusal; empty where something was stored."""
    records: int = 0


@asynccontextmanager
async def opened() -> AsyncIterator[Service]:
    """A service over an archive in memory."""
    settings = replace(load_settings({}), db=Path(":memory:"), hook_entry_points=False, max_file_bytes=1 << 30)
    async with open_service(settings) as service:
        yield service


async def look(service: Service, operation: Any, *given: Any) -> Any:
    """Run something on the archive's own connection."""
    store = service.deps.store
    assert isinstance(store, SqliteStore)
    return await store.run(operation, *given)


def sizes(conn: sqlite3.Connection) -> dict[str, int]:
    return {table: conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def session_ids(conn: sqlite3.Connection) -> list[str]:
    return [row[0] for row in conn.execute("SELECT session_id FROM session ORDER BY id")]


async def check_import(service: Service, data: bytes, chance: Random, *, format_name: str = "") -> Outcome:
    """Import it into an empty archive, look at what is there, and empty the archive again.

    Raises AssertionError for what must not be, TimeoutError where it hangs, and whatever a defect raises.
    """
    with anyio.fail_after(LONGEST_S):
        content = data.decode("utf-8", "surrogateescape" if chance.random() < 0.1 else "replace")
        done = await _tried(service, content, format_name)
        if isinstance(done, CallerError):
            assert done.code
            assert done.message
            assert await look(service, session_ids) == [], f"{done.code}, and yet something is stored"
            return Outcome(done.code)
        await _stored_once(service, content, format_name, done)
        for session in await look(service, session_ids):
            await _sound(service, session, chance)
        await emptied(service)
        return Outcome("", done.records)


async def _tried(service: Service, content: str, format_name: str) -> ImportResult | CallerError:
    try:
        return await service.import_content(content, format_name=format_name)
    except CallerError as error:
        return error


async def _stored_once(service: Service, content: str, format_name: str, done: ImportResult) -> None:
    """What is stored is what was counted, byte for byte; the same again stores nothing."""
    json.dumps([done.problems, done.warnings, done.not_understood], ensure_ascii=False).encode()
    assert done.stored <= done.records
    health = await look(service, lambda conn: operations.check(conn, bodies=True))
    assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    before = await look(service, sizes)
    assert before["record"] == done.stored
    again = await service.import_content(content, format_name=format_name)
    assert (again.session_id, again.stored) == (done.session_id, 0), "the same transcript is stored twice"
    assert await look(service, sizes) == before


async def everything(service: Service, session: str, format_name: str) -> list[dict[str, Any]]:
    """The whole live context, page by page, as strict JSON."""
    pages: list[Any] = []
    cursor = ""
    while True:
        page = await service.messages(session, format_name=format_name, cursor=cursor)
        pages += page.messages
        cursor = page.next_cursor
        if not cursor:
            json.dumps(pages, ensure_ascii=False, allow_nan=False).encode()
            return joined(pages)


async def _sound(service: Service, session: str, chance: Random) -> None:
    """Valid in every format, also after a compaction and a clearing; an undo gives the same context back."""
    valid = await everything(service, session, "anthropic")
    shapes.check(valid)
    for out in OUTS.values():
        await everything(service, session, out.name)
        await _export(service, session, out, whole=chance.random() < 0.5)
    await service.picture(session)
    await service.search(chance.choice(("main", "it's", '"', "a.py", "\0", "*")), session_id=session)
    before = await service.status(session, detail=True)
    call = CompactCall(trigger="manual", force=True, target_tokens=chance.choice((60, 300, 2_000)))
    result = await service.compact(session, call)
    shapes.check(await everything(service, session, "anthropic"))
    if result.boundary_uuid:
        assert (await service.undo(session)).live_hash == before.live_hash
        assert await everything(service, session, "anthropic") == valid
    memory = (await service.extract_memory(session)).content
    memory.encode()


async def _export(service: Service, session: str, out: Out, *, whole: bool) -> None:
    """Valid by the rules of the format's provider."""
    try:
        exported = await service.export(session, out.name, whole=whole)
    except CallerError as error:
        if error.code == "nothing_to_export":
            return
        raise
    json.dumps(exported.messages, ensure_ascii=False, allow_nan=False).encode()
    if out.provider and exported.messages:
        shapes.check_refused(validation(out.provider, exported.messages))


async def emptied(service: Service) -> None:
    """Delete every session; nothing is left then."""
    for session in await look(service, session_ids):
        await look(service, operations.delete_session, SessionKey(service.namespace, session))
    left = {table: size for table, size in (await look(service, sizes)).items() if size}
    assert left == {}, "a deleted session leaves rows"
