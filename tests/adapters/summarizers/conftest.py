"""Writers that ask the scripted server, and the waits that they would have made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_compact.adapters.summarizers import ProviderSummarizer
from mcp_compact.compaction.summary import SummaryRequest
from tests.adapters.summarizers.scripted import Scripted
from tests.adapters.summarizers.wires import WIRES, Wire

KEY = "sk-test-0123456789abcdef"
NewWriter = Callable[..., ProviderSummarizer]


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each wire format in turn."""
    return request.param


@pytest.fixture
def waits() -> list[float]:
    """What was waited between tries, in seconds; no time passes."""
    return []


@pytest.fixture
def writer(waits: list[float]) -> NewWriter:
    """Makes a writer for a wire format and a server."""

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    def make(wire: Wire, server: Scripted, **more: Any) -> ProviderSummarizer:
        given: dict[str, Any] = {"base_url": server.address + wire.base, "api_key": KEY, "sleep": wait} | more
        return ProviderSummarizer(f"{wire.name}:{wire.model}", **given)

    return make


@pytest.fixture(scope="session")
def request_of_a_summary() -> SummaryRequest:
    return SummaryRequest("You keep notes.", "Write the notes.", "user: fix app.py\nassistant: done", 9, 12_000, 0)
