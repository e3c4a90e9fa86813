"""Real sessions of Claude Code, against an independent count."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.messages.message import MESSAGE_TYPES
from tests.conftest import transcripts
from tests.transcripts.samples import read


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a file, read the plain way."""
    decoder = json.JSONDecoder()
    for line in data.decode().split("\n"):
        at = 0
        while at < len(line.strip()):
            value, at = decoder.raw_decode(line, at)
            yield value


@pytest.fixture(scope="module", params=["claude-code", "recall"])
def files(request: pytest.FixtureRequest, shared: Path) -> tuple[Path, ...]:
    return transcripts(shared, request.param)


def test_counts_equal_an_independent_count(files: tuple[Path, ...]):
    for file in files:
        data = file.read_bytes()
        expected = list(objects(data))
        carried = [o["data"] for o in expected if o["type"] == "progress" and o["data"]["type"] == "agent_progress"]
        reader, parsed = read(data)
        report = reader.report
        assert report.problem_count == 0, file.name
        assert report.records == len(parsed) == len(expected) + len(carried)
        assert report.types == Counter(o["type"] for o in expected) + Counter(c["message"]["type"] for c in carried)
        messages = [o for o in expected if o["type"] in MESSAGE_TYPES]
        assert report.messages == len(messages) + len(carried)
        assert not report.unknown_types
        side = [o for o in expected if o.get("isSidechain")]
        assert sum(report.sub_agents.values()) == len(side) + len(carried)
        assert {o["agentId"] for o in side if "agentId" in o} <= set(report.sub_agents)


def test_main_line_holds_each_own_record_once_in_file_order(files: tuple[Path, ...]):
    for file in files:
        data = file.read_bytes()
        own = [o["uuid"] for o in objects(data) if "uuid" in o and not o.get("isSidechain")]
        main = [item.record for item in read(data)[1] if item.agent_id is None]
        assert [record.uuid for record in main if "uuid" in record.raw] == own


def test_bodies_are_the_lines_of_the_file(files: tuple[Path, ...]):
    for file in files:
        data = file.read_bytes()
        pieces = [item.record.body for item in read(data)[1] if item.record.raw.get("type") in ("progress", "user")]
        own = [body for body in pieces if b'"sessionId"' in body]
        assert own
        assert all(body in data for body in own)


def test_calls_and_results_of_each_line_are_found(files: tuple[Path, ...]):
    for file in files:
        data = file.read_bytes()
        blocks = [
            block
            for o in objects(data)
            if o["type"] in MESSAGE_TYPES and isinstance(o["message"]["content"], list)
            for block in o["message"]["content"]
        ]
        kinds = Counter(block["type"] for block in blocks)
        records = [item.record for item in read(data)[1] if "sessionId" in item.record.raw]
        assert sum(len(record.calls) for record in records) == kinds["tool_use"]
        assert sum(len(record.results) for record in records) == kinds["tool_result"]


def test_sub_agents_files_are_that_agent(shared: Path):
    found = {}
    for file in transcripts(shared, "claude-code"):
        if "agent-" in file.name:
            reader, _ = read(file.read_bytes())
            assert reader.sole_agent
            found[reader.sole_agent] = reader.facts(reader.sole_agent)
    assert {"aa84377", "acompact-70d8e7"} < set(found)
    assert found["aa84377"].parent_session_id == found["acompact-70d8e7"].parent_session_id
    assert all(facts.title for facts in found.values())
