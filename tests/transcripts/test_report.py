"""What a reading met is counted whole, and told within limits, whatever a file holds."""

from __future__ import annotations

import pytest

from mcp_compact.transcripts.report import KIND_CHARS, KINDS, LISTED, OTHER_KINDS, PART
from tests.transcripts.foreign import jsonl, read

MANY = 3 * KINDS
LINES: dict[str, list[object]] = {
    "claude-code": [{"type": f"novel {at}", "uuid": f"u{at}", "sessionId": "s"} for at in range(MANY)],
    "pi": [
        {"type": "session", "id": "s", "cwd": "/"},
        *({"type": f"novel {at}", "id": f"e{at}"} for at in range(MANY)),
    ],
    "codex": [{"type": f"novel {at}", "payload": {}} for at in range(MANY)],
}


@pytest.mark.parametrize("name", LINES)
def test_kinds_without_end_are_counted_by_name_up_to_a_limit_and_then_together(name: str):
    report = read(name, jsonl(LINES[name]))[0].report
    assert sum(report.not_understood.values()) == MANY
    assert sum(report.types.values()) == report.records == len(LINES[name])
    assert len(report.not_understood) == KINDS + 1
    assert len(report.types) <= KINDS + 1
    assert report.not_understood[OTHER_KINDS] == MANY - KINDS
    first = 2 if name == "pi" else 1
    assert len(report.unknown_places) == LISTED
    assert report.unknown_places[0] == (first, "novel 0")
    assert report.as_json()["unknown_places"][0] == {"line": first, "kind": "novel 0"}


def test_a_long_name_of_a_kind_is_cut_and_blocks_are_told_as_parts():
    lines = [
        {"type": "x" * 5_000, "uuid": "u1", "sessionId": "s"},
        {"type": "user", "uuid": "u2", "message": {"role": "user", "content": [{"type": "hologram"}, {"type": ""}]}},
    ]
    report = read("claude-code", jsonl(lines))[0].report
    assert report.not_understood == {"x" * KIND_CHARS: 1, f"{PART}hologram": 1, f"{PART}(none)": 1}
    assert [place.line for place in report.unknown_places] == [1, 2, 2]
