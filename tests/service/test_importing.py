"""Importing in batches: nothing depends on where a batch ends, and the collector is back afterwards."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service import import_batches, importing
from mcp_compact.service.prepare import prepare
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service


def line(at: int, parent: int | None, **fields: Any) -> bytes:
    """A user's or assistant's record as a client writes it."""
    role = "user" if at % 2 else "assistant"
    named = {"uuid": f"r{at}", "parentUuid": None if parent is None else f"r{parent}", "sessionId": "talk"}
    message = {"role": role, "content": f"text number {at}"}
    return json.dumps({"type": role, **named, "message": message, **fields}).encode() + b"\n"


def talk(number: int, first: int = 1) -> bytes:
    return b"".join(line(at, at - 1 if at > 1 else None) for at in range(first, first + number))


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(replace(load_settings({}), db=tmp_path / "archive.db")) as opened:
        yield opened


async def texts(service: Service, session_id: str) -> list[str]:
    page = await service.messages(session_id, format_name="anthropic", cursor="")
    return [json.dumps(message["content"]) for message in page.messages]


@pytest.mark.parametrize("lines", [1, 2, 7, 1000])
async def test_the_size_of_batches_changes_nothing(
    lines: int, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH_LINES", lines)
    path = tmp_path / "talk.jsonl"
    # A new root in the middle takes everything before it off the branch; a sub-agent's records come in between.
    other = line(90, None, isSidechain=True, agentId="helper")
    path.write_bytes(talk(10) + other + line(11, None) + talk(9, 12))
    done = await service.import_file(path)
    assert (done.stored, done.messages, done.conflicts, done.problem_count) == (21, 21, 0, 0)
    assert done.children == ("talk/agent-helper",)
    shown = await texts(service, "talk")
    assert len(shown) == 10
    assert all(f"number {at}" in text for at, text in enumerate(shown, 11))
    assert (await service.status("talk")).live_messages == 10


async def test_a_batch_ends_at_its_bytes_too(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_batches, "BATCH_BYTES", 1)
    path = tmp_path / "talk.jsonl"
    path.write_bytes(talk(5))
    seen: list[int] = []
    await service.import_file(path, progress=lambda done, _total, _what: seen.append(done))
    assert seen == [len(talk(at)) for at in range(1, 6)]


async def test_a_boundary_and_its_summary_come_in_one_batch(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH_LINES", 5)
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "logicalParentUuid": "r4"}
    path = tmp_path / "talk.jsonl"
    hooks = b"".join(line(at, None, type="progress", message=None) for at in range(50, 53))
    summary = line(61, None, parentUuid="b", isCompactSummary=True)
    path.write_bytes(talk(4) + json.dumps(boundary).encode() + b"\n" + hooks + summary + line(62, 61))
    done = await service.import_file(path)
    assert done.stored == 10
    assert [text.count("number 6") for text in await texts(service, done.session_id)] == [1, 1]


async def test_an_unfinished_last_line_is_read_again_when_it_is_complete(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(talk(3) + line(4, 3)[:-20])
    first = await service.import_file(path)
    assert (first.stored, first.problem_count) == (3, 1)
    path.write_bytes(talk(6))
    then = await service.import_file(path)
    assert (then.stored, then.known, then.problem_count) == (3, 0, 0)


async def test_the_collector_waits_while_a_batch_lives_and_is_back_afterwards(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def noting(*args: Any, **named: Any) -> Any:
        seen.append(gc.isenabled())
        return prepare(*args, **named)

    monkeypatch.setattr(importing, "prepare", noting)
    path = tmp_path / "talk.jsonl"
    path.write_bytes(talk(3))
    await service.import_file(path)
    assert (seen, gc.isenabled()) == ([False], True)
    path.write_bytes(b"{torn\n")
    with pytest.raises(CallerError, match="holds no messages"):
        await service.import_file(path, format_name="claude-code", session_id="empty")
    assert gc.isenabled()


async def test_a_collector_that_was_off_stays_off(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(talk(3))
    gc.disable()
    try:
        await service.import_file(path)
        assert not gc.isenabled()
    finally:
        gc.enable()


async def test_a_file_without_a_message_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "titles.jsonl"
    lines = [{"type": "summary", "summary": f"title {n}", "leafUuid": f"u{n}"} for n in range(2_500)]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    async with open_service(replace(load_settings({}), db=tmp_path / "a.db")) as service:
        with pytest.raises(CallerError, match="no messages"):
            await service.import_file(path)
        assert await service.sessions() == []
