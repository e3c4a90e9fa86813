"""A server follows the transcript of the session that its client is at, as the client's hooks noted it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

from mcp_compact import ancestors, places
from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.config import Settings
from mcp_compact.server.app import build_server, local_place
from mcp_compact.server.follow import Follower
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service
from tests.server.talk import call, jsonl, refused, transcript, user
from tests.server.wire import Wire

ME = ancestors.client()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the client keeps the project's transcripts."""
    made = tmp_path / "client" / "projects" / "-project"
    made.mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    return made


@pytest.fixture
def conn(settings: Settings) -> Iterator[ArchiveConnection]:
    """What hooks write with."""
    opened = operations.connect(settings.db)
    yield opened
    opened.close()


def bind(conn: ArchiveConnection, path: Path, cwd: Path, client: str = ME) -> None:
    hook_rows.bind(conn, client, ("local", path.stem), (str(path), str(cwd)), 1)


async def test_a_session_whose_transcript_tells_no_folder_stands_in_that_of_its_client(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection
):
    records = transcript("at-work", str(project), 2)
    for item in records:
        item.pop("cwd")
    path = folder / "at-work.jsonl"
    path.write_text(jsonl(records))
    bind(conn, path, project)
    async with open_service(settings) as service:

        async def opened() -> Service:
            return service

        await Follower(opened, ME, str(settings.db)).look()
        assert [line.session_id for line in await service.sessions(cwd=str(project))] == ["at-work"]


async def test_a_call_without_an_id_means_what_the_client_is_at_and_is_up_to_date(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection, era: str
):
    records = transcript("at-work", str(project), 2)
    path = folder / "at-work.jsonl"
    path.write_text(jsonl(records[:4]))
    bind(conn, path, project)
    async with Client(build_server(settings, place=local_place(settings, project)), mode=era) as client:
        for name in ("one", "two"):
            await call(client, "append_messages", session_id=name, messages=[user("hi")])
        status = await call(client, "get_context_status")
        assert (status["session_id"], status["live_messages"]) == ("at-work", 4)
        path.write_text(jsonl(records))
        assert (await call(client, "get_context_status"))["live_messages"] == 8
        assert (await call(client, "get_context_status", session_id="one"))["live_messages"] == 1


async def test_another_session_of_the_same_client_takes_its_place(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection
):
    first, second = folder / "first.jsonl", folder / "second.jsonl"
    for path in (first, second):
        path.write_text(jsonl(transcript(path.stem, str(project), 1)))
    async with Client(build_server(settings, place=local_place(settings, project))) as client:
        for path in (first, second):
            bind(conn, path, project)
            assert (await call(client, "get_context_status"))["session_id"] == path.stem


async def test_what_another_client_is_at_is_not_meant(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection
):
    path = folder / "theirs.jsonl"
    path.write_text(jsonl(transcript("theirs", str(project), 1)))
    bind(conn, path, project, client="999999:1")
    async with Client(build_server(settings, place=local_place(settings, project))) as client:
        assert "No session is known" in await refused(client, "get_context_status")


@asynccontextmanager
async def following(settings: Settings) -> AsyncIterator[tuple[Follower, Service]]:
    async with open_service(settings) as service:

        async def given() -> Service:
            return service

        yield Follower(given, ME, str(settings.db)), service


async def test_only_a_file_that_has_changed_is_read(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection
):
    path = folder / "s.jsonl"
    path.write_text(jsonl(transcript("s", str(project), 1)))
    bind(conn, path, project)
    async with following(settings) as (follower, service):
        await follower.look()
        assert (await service.status("s")).archived_records == 4
        conn.execute("DELETE FROM source")
        await follower.look()
        assert conn.execute("SELECT count(*) FROM source").fetchone() == (0,)
        with path.open("a") as stream:
            stream.write("\n")
        await follower.look()
        assert conn.execute("SELECT count(*) FROM source").fetchone() == (1,)


async def test_the_hooks_are_told_that_it_follows(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection
):
    async with following(settings) as (follower, _):
        assert await follower.look() is None
        assert hook_rows.follower(conn, ME) == ""
        bind(conn, folder / "s.jsonl", project)
        await follower.look()
        assert hook_rows.follower(conn, ME) == ancestors.name_of(os.getpid())


@pytest.mark.parametrize("content", ["", '{"type":"mode","mode":"default"}\n', "no transcript at all\n", None])
async def test_a_file_with_nothing_to_read_is_quiet(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection, content: str | None, caplog
):
    path = folder / "s.jsonl"
    if content is not None:
        path.write_text(content)
    bind(conn, path, project)
    async with following(settings) as (follower, service):
        assert await follower.look() is not None
        assert await service.sessions() == []
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


async def test_a_file_outside_of_the_clients_folders_is_never_read(
    settings: Settings, project: Path, folder: Path, tmp_path: Path, conn: ArchiveConnection
):
    secret = tmp_path / "secret.jsonl"
    secret.write_text(jsonl(transcript("secret", str(project), 1)))
    link = folder / "link.jsonl"
    link.symlink_to(secret)
    async with following(settings) as (follower, service):
        for path in (secret, link, folder / ".." / ".." / ".." / "secret.jsonl", folder):
            bind(conn, path, project)
            await follower.look()
        assert await service.sessions() == []


async def test_a_switch_file_is_obeyed_at_once(
    settings: Settings, project: Path, folder: Path, conn: ArchiveConnection
):
    path = folder / "s.jsonl"
    path.write_text(jsonl(transcript("s", str(project), 1)))
    bind(conn, path, project)
    switch = project / places.SWITCH
    switch.touch()
    async with following(settings) as (follower, service):
        await follower.look()
        assert await service.sessions() == []
        switch.unlink()
        await follower.look()
        assert [line.session_id for line in await service.sessions()] == ["s"]


async def test_a_look_that_fails_is_told_once_and_takes_nothing_down(settings: Settings, caplog):
    async def broken() -> Service:
        raise ValueError("a defect")

    follower = Follower(broken, ME, str(settings.db))
    for _ in range(3):
        assert await follower.look() is None
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_an_archive_that_cannot_be_opened_is_tried_again_quietly(tmp_path: Path, folder: Path, caplog):
    settings = Settings(db=tmp_path / "archive.db")
    settings.db.write_bytes(b"no database" * 100)
    path = folder / "s.jsonl"
    path.write_text(jsonl(transcript("s", str(tmp_path), 1)))

    async def service() -> Service:
        return await opened.enter_async_context(open_service(settings))

    async with AsyncExitStack() as opened:
        follower = Follower(service, ME, str(settings.db))
        assert await follower.look() is None
        settings.db.unlink()
        conn = operations.connect(settings.db)
        bind(conn, path, tmp_path)
        assert await follower.look() is not None
        assert conn.execute("SELECT message_count FROM session").fetchone() == (4,)
        conn.close()
    assert not caplog.records


async def test_it_may_be_switched_off(settings: Settings, project: Path, folder: Path, conn: ArchiveConnection):
    path = folder / "s.jsonl"
    path.write_text(jsonl(transcript("s", str(project), 1)))
    bind(conn, path, project)
    off = replace(settings, follow=False)
    async with Client(build_server(off, place=local_place(off, project))) as client:
        assert "No session is known" in await refused(client, "get_context_status")


@pytest.mark.e2e
def test_the_real_server_takes_what_came_last_before_it_ends(tmp_path: Path, folder: Path):
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "client"), "MCP_COMPACT_FOLLOW_SECONDS": "3600"}
    path = folder / "s.jsonl"
    records = transcript("s", str(tmp_path), 2)
    path.write_text(jsonl(records[:4]))
    conn = operations.connect(tmp_path / "archive.db")
    bind(conn, path, tmp_path, ancestors.name_of(os.getpid()))
    with Wire(tmp_path, env) as wire:
        wire.handshake()
        assert wire.call("get_context_status")["live_messages"] == 4
        path.write_text(jsonl(records))
        assert wire.leave() == 0
        assert "Traceback" not in wire.stderr
    assert conn.execute("SELECT message_count FROM session").fetchone() == (8,)
    conn.close()
