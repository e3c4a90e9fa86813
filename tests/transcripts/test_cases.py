"""Faults that people reported, as far as reading a transcript can show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.messages.branch import active_positions, link_of
from mcp_compact.messages.live import live_context
from mcp_compact.transcripts.anthropic import AnthropicReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.native import boundary_marker, native_boundary, summary_of
from mcp_compact.transcripts.registry import detect_format, reader_for
from tests.transcripts.samples import jsonl, read, stored


def expand(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$rep"}:
            return value["$rep"][0] * value["$rep"][1]
        return {key: expand(item) for key, item in value.items()}
    return [expand(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, dict[str, Any]]:
    lines = (shared / "cases" / "cases.jsonl").read_text("utf-8").split("\n")
    return {case["id"]: case["input"] for case in map(json.loads, filter(None, lines))}


def data_of(case: dict[str, Any]) -> bytes:
    if "raw_hex" in case:
        return bytes.fromhex(case["raw_hex"])
    return case["raw"].encode() if "raw" in case else jsonl(expand(case["messages"]))


def test_chain_01_break_is_reported_and_all_messages_are_imported(cases: dict[str, Any]):
    reader, parsed = read(data_of(cases["CHAIN-01"]))
    assert [item.record.uuid for item in parsed] == ["u1", "a1", "u2", "a2"]
    assert [(finding.uuid, finding.line) for finding in reader.report.warnings] == [("u2", 3)]
    assert active_positions([link_of(record) for record in stored(parsed)]) == {0, 1, 2, 3}


def test_chain_02_boundary_with_unknown_logical_parent(cases: dict[str, Any]):
    records = stored(read(data_of(cases["CHAIN-02"]))[1])
    assert len(records) == 5
    found = native_boundary(records[2], summary_of(records[2], records[3:]))
    assert found
    live = live_context(records, [boundary_marker(found, 3, None)])
    assert [record.uuid for record in live.all] == ["s1", "a2"]


def test_chain_04_only_the_active_branch_is_live(cases: dict[str, Any]):
    records = stored(read(data_of(cases["CHAIN-04"]))[1])
    assert len(records) == 4
    assert [record.uuid for record in live_context(records, []).all] == ["u1", "u2", "a2"]


@pytest.mark.parametrize("case", ["DEDUP-01", "DEDUP-02"])
def test_dedup_identity_is_the_uuid(cases: dict[str, Any], case: str):
    data = data_of(cases[case])
    first = [item.record for item in read(data)[1]]
    assert [record.uuid for record in first] == [message["uuid"] for message in cases[case]["messages"]]
    assert first == [item.record for item in read(data)[1]]
    nameless = [{key: value for key, value in m.items() if key != "uuid"} for m in cases[case]["messages"]]
    derived = [item.record.uuid for item in read(jsonl(nameless))[1]]
    assert len(set(derived)) == len(derived)
    assert derived == [item.record.uuid for item in read(jsonl(nameless))[1]]


@pytest.mark.parametrize(
    ("case", "uuids", "problem_lines"),
    [
        ("JSONL-01", ["u1", "a1", "u3"], [2]),
        ("JSONL-03", ["u1", "u2"], []),
        ("JSONL-04", ["u1", "u2"], []),
        ("JSONL-06", ["u1"], [2]),
    ],
)
def test_jsonl_damaged_transcripts(cases: dict[str, Any], case: str, uuids: list[str], problem_lines: list[int]):
    data = data_of(cases[case])
    reader = reader_for(detect_format(data), "file")
    parsed = list(reader.read(read_lines([data])))
    assert [item.record.uuid for item in parsed] == uuids
    assert [problem.line for problem in reader.report.problems] == problem_lines
    assert all(item.record.body in data for item in parsed)


def test_jsonl_03_line_separators_stay_in_the_text(cases: dict[str, Any]):
    texts = [item.record.text for item in read(data_of(cases["JSONL-03"]))[1]]
    assert texts == ["a\u2028b\u0085c", "d\u2029e"]


def test_side_01_sub_agents_records_are_no_part_of_the_main_line(cases: dict[str, Any]):
    _, parsed = read(data_of(cases["SIDE-01"]))
    assert [record.uuid for record in live_context(stored(parsed), []).all] == ["u1", "a1", "u2", "a2"]
    assert [record.uuid for record in stored(parsed, "g1")] == ["x1", "y1", "x2"]


def test_uni_01_halves_of_pairs_are_replaced_in_every_value_but_the_bytes(cases: dict[str, Any]):
    items = cases["UNI-01"]["messages"]
    for data in (jsonl(items), json.dumps(items).encode()):
        parsed = list(AnthropicReader("list").read(read_lines([data])))
        assert parsed[0].record.text == "half \ufffd emoji"
        assert parsed[1].record.calls[0].input == {"command": "echo \ufffd"}
        assert parsed[2].record.results[0].text == "tail \ufffd"
        assert [json.loads(item.record.body) for item in parsed] == items


def test_uni_03_control_characters_come_back_unchanged(cases: dict[str, Any]):
    parsed = list(AnthropicReader("list").read(read_lines([data_of(cases["UNI-03"])])))
    assert [item.record.text for item in parsed] == ["before\0after needle", "\x1b[31mred\x07"]


def test_count_03_usage_of_an_answer_in_several_records_is_its_largest(cases: dict[str, Any]):
    reader, parsed = read(data_of(cases["COUNT-03"]))
    usages = [item.record.message.usage for item in parsed if item.record.message and item.record.message.usage]
    assert {usage.context_tokens for usage in usages} == {50_010}
    assert max(usage.output_tokens for usage in usages) == 420
    assert reader.facts().max_context_tokens == 50_010


def test_count_08_envelope_is_no_content(cases: dict[str, Any]):
    (item,) = read(data_of(cases["COUNT-08"]))[1]
    assert item.record.text == "hi"
    assert [block.raw for block in item.record.blocks] == [{"type": "text", "text": "hi"}]
