"""The limits of a provider that tokens do not tell: bytes of a request, and how many images stand in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.config import load_settings
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.results import Status
from mcp_compact.wiring import open_service

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 100}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


async def status_of(tmp_path: Path, blocks: list[dict[str, Any]], owner: str = "", **limits: int) -> Status:
    settings = replace(load_settings({}), db=tmp_path / "a.db", **limits)  # type: ignore[arg-type]
    message = {"role": "user", "content": [{"type": "text", "text": "look"}, *blocks]}
    async with open_service(settings) as service:
        done = await service.append_messages([message], "s", SessionFacts(owner=owner) if owner else None)
        assert await service.status("s") == done.status
        return done.status


@pytest.mark.parametrize(("number", "offered"), [(3, False), (4, True), (9, True)])
async def test_from_four_fifths_of_the_bytes_on_clearing_is_offered(tmp_path: Path, number: int, offered: bool) -> None:
    status = await status_of(tmp_path, [PICTURE] * number, request_bytes=4_000)
    assert status.media_bytes == 800 * number
    assert ("microcompact_tool_results" in status.next) is offered


@pytest.mark.parametrize(("number", "offered"), [(7, False), (8, True)])
async def test_from_four_fifths_of_the_number_on_too_whatever_they_take(
    tmp_path: Path, number: int, offered: bool
) -> None:
    status = await status_of(tmp_path, [LINKED] * number, request_media=10)
    assert (status.media_count, status.media_bytes) == (number, 0)
    assert bool(status.next) is offered


async def test_one_image_alone_is_left_by_clearing_and_nothing_is_offered(tmp_path: Path) -> None:
    status = await status_of(tmp_path, [PICTURE], request_bytes=1, request_media=1)
    assert (status.media_count, status.next) == (1, "")


async def test_a_client_with_its_own_history_is_told_what_shrinks_it(tmp_path: Path) -> None:
    status = await status_of(tmp_path, [PICTURE] * 5, owner="client", request_bytes=4_000)
    assert "/compact" in status.next
    assert "microcompact" not in status.next


async def test_text_alone_weighs_about_four_bytes_a_token_and_offers_nothing(tmp_path: Path) -> None:
    status = await status_of(tmp_path, [{"type": "text", "text": "word " * 10_000}], request_bytes=1_000)
    assert 30_000 < status.bytes < 60_000
    assert (status.media_count, status.next) == (0, "")
