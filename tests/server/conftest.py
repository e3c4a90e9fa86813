"""A server in this process, and a client of each protocol era."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

from mcp_compact.config import Settings
from mcp_compact.server.app import build_server, local_place
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock
from mcp_compact.wiring import open_service


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """The protocol of 2026-07-28, and the handshake before it."""
    return request.param


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db=tmp_path / "archive.db")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The working directory of the server."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def client(settings: Settings, project: Path, clock: FixedClock, era: str) -> AsyncIterator[Client]:
    """A client of the real server over a real archive; only the clock stands still."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with open_service(settings) as service:
            yield replace(service, deps=replace(service.deps, clock=clock))

    server = build_server(settings, place=local_place(settings, project), factory=opened)
    async with Client(server, mode=era) as client:
        yield client
