"""Every real file of the translated formats: told, read, understood, compacted into a valid list, imported once."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from mcp_compact.cli.import_many import of_file
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.library import compact_transcript
from mcp_compact.service.jobs import CompactCall
from mcp_compact.transcripts.registry import detect_format
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.transcripts.foreign import read

FOLDERS = (
    "anthropic-messages", "atif", "cline", "codex-rollout", "copilot-cli", "gemini-cli", "mini-swe-traj", "openai-chat",
    "openai-chat-log", "openhands", "swe-agent-traj",
)  # fmt: skip
NO_MESSAGES = "cli__ec_"
"""Begins the name of a file that holds a warning only."""


@pytest.fixture(params=FOLDERS)
def files(request: pytest.FixtureRequest, shared: Path) -> list[Path]:
    return sorted((shared / "transcripts" / request.param).iterdir())


def conversations(file: Path) -> list[bytes]:
    """The file, or its lines where each is a conversation of its own."""
    data = file.read_bytes()
    return data.splitlines() if file.parent.name == "openai-chat" else [data]


def test_everything_is_understood_and_every_result_has_its_call(files: list[Path]):
    for file in files:
        for data in conversations(file):
            reader, parsed = read(detect_format(data), data)
            report = reader.report
            assert (report.unknown_types, report.unknown_blocks, report.problem_count) == ({}, {}, 0), file.name
            assert "result_without_call" not in report.warning_counts
            assert report.records == len(parsed)


def test_the_texts_of_a_file_are_in_its_archive(files: list[Path]):
    """Leaves of the file's JSON: what it says is in some record's body."""
    for file in files:
        for data in conversations(file)[:3]:
            kept = b"\n".join(item.record.body for item in read(detect_format(data), data)[1])
            bodies = set(_leaves([json.loads(line) for line in kept.splitlines() if line.strip()]))
            lines = data.splitlines() if file.suffix == ".jsonl" else [data]
            assert set(_leaves([json.loads(line) for line in lines if line.strip()])) <= bodies, file.name


def _leaves(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for item in inner for leaf in _leaves(item)]


def test_its_live_context_is_valid_before_and_after_a_compaction(files: list[Path]):
    for file in files:
        for data in conversations(file):
            if file.name.startswith(NO_MESSAGES):
                with pytest.raises(CallerError, match="no messages"):
                    compact_transcript([data], output="anthropic")
                continue
            for target in (1_000_000, 3_000):
                result = compact_transcript([data], output="anthropic", target_tokens=target)
                assert problems(result.messages) == [], file.name


def test_it_is_imported_once_compacted_in_the_archive_and_stays_valid(files: list[Path], tmp_path: Path):
    async def work(file: Path) -> None:
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / f"{file.stem}.db")})) as service:
            first = (await of_file(service, file, "", "", None)).results
            again = (await of_file(service, file, "", "", None)).results
            assert all(result.stored for result in first)
            assert [(result.stored, result.conflicts) for result in again] == [(0, 0)] * len(first)
            session = first[0].session_id
            await service.compact(session, CompactCall("manual", force=True, target_tokens=3_000))
            page = await service.messages(session)
            assert page.next_cursor or problems([dict(message) for message in page.messages]) == []

    for file in files[:3]:
        if not file.name.startswith(NO_MESSAGES):
            anyio.run(work, file)
