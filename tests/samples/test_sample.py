"""The sample transcript is what its script makes, is whole, and shows what real transcripts show."""

from __future__ import annotations

import base64
import json
import re
import struct
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import mcp_compact.samples

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = Path(mcp_compact.samples.__file__).parent / "session.jsonl"
MAX_BYTES = 700_000
MIN_TOKENS = 60_000
HOUR = timedelta(minutes=60)


@pytest.fixture(scope="module")
def records():
    return [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def main_records(records):
    return [r for r in records if not r.get("isSidechain")]


def blocks_of(record):
    content = record.get("message", {}).get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def blocks(records, kind):
    return [(r, b) for r in records for b in blocks_of(r) if b["type"] == kind]


def result_text(block):
    content = block["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def visible_characters(records):
    texts = sum(len(b["text"]) for _, b in blocks(records, "text"))
    inputs = sum(len(json.dumps(b["input"], ensure_ascii=False)) for _, b in blocks(records, "tool_use"))
    return texts + inputs + sum(len(result_text(b)) for _, b in blocks(records, "tool_result"))


def prompts(records):
    return [r for r in records if r["type"] == "user" and "permissionMode" in r]


def prompt_text(record):
    return "\n".join(b["text"] for b in blocks_of(record) if b["type"] == "text")


def results_by_tool(records):
    names = {b["id"]: b["name"] for _, b in blocks(records, "tool_use")}
    found = defaultdict(list)
    for _, block in blocks(records, "tool_result"):
        found[names[block["tool_use_id"]]].append(block)
    return found


def context_of(record):
    usage = record["message"]["usage"]
    return usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]


def ancestors(records, record):
    by_uuid = {r["uuid"]: r for r in records if "uuid" in r}
    found = set()
    while record is not None:
        found.add(record["uuid"])
        record = by_uuid.get(record["parentUuid"])
    return found


def test_the_script_makes_the_shipped_file_byte_for_byte(tmp_path):
    target = tmp_path / "session.jsonl"
    command = [sys.executable, str(ROOT / "tools" / "make_sample.py"), "--output", str(target)]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert target.read_bytes() == SAMPLE.read_bytes()


def test_the_file_is_small_enough_to_ship_and_large_enough_to_compact(main_records):
    assert SAMPLE.stat().st_size <= MAX_BYTES
    assert visible_characters(main_records) / 4 >= MIN_TOKENS


def test_it_has_the_length_of_an_afternoon(records):
    assert 350 <= sum(r["type"] in ("user", "assistant") for r in records) <= 500
    assert 12 <= len(prompts(records)) <= 20


def test_every_record_type_of_real_files_of_this_version_occurs(records):
    kinds = {r["type"] for r in records}
    assert kinds == {
        "user",
        "assistant",
        "progress",
        "system",
        "file-history-snapshot",
        "queue-operation",
        "summary",
    }
    assert {r["subtype"] for r in records if r["type"] == "system"} == {"stop_hook_summary", "turn_duration"}
    assert {r["data"]["type"] for r in records if r["type"] == "progress"} >= {"bash_progress", "hook_progress"}


def test_uuids_are_unique_and_every_parent_stands_before_its_child(records):
    seen = set()
    for record in records:
        if "uuid" not in record:
            continue
        assert record["uuid"] not in seen
        assert record["parentUuid"] is None or record["parentUuid"] in seen
        seen.add(record["uuid"])


def test_times_never_go_back(records):
    stamps = [r["timestamp"] for r in records if "timestamp" in r]
    assert stamps == sorted(stamps)


def test_every_call_has_one_result_and_every_result_a_call_before_it(records):
    called, answered = [], []
    for record in records:
        for block in blocks_of(record):
            if block["type"] == "tool_use":
                called.append(block["id"])
            elif block["type"] == "tool_result":
                assert block["tool_use_id"] in called
                answered.append(block["tool_use_id"])
    assert Counter(called) == Counter(answered)
    assert max(Counter(called).values()) == 1


def test_every_tool_of_the_usual_set_is_called(records):
    names = Counter(b["name"] for _, b in blocks(records, "tool_use"))
    rare = {"Task", "WebFetch", "WebSearch", "ExitPlanMode", "Glob"}
    usual = {"Read", "Grep", "Bash", "Edit", "Write", "TodoWrite"}
    assert set(names) == rare | usual
    assert all(names[name] >= 3 for name in usual)
    assert all(len(r["message"]["content"]) == 1 for r in records if r["type"] == "assistant")


def test_messages_span_records_with_results_between_them_and_after_them(records):
    places = defaultdict(list)
    for position, record in enumerate(records):
        if record["type"] == "assistant":
            places[record["message"]["id"]].append(position)
    spans = [p for p in places.values() if len(p) > 1]
    interrupted = [p for p in spans if p[-1] - p[0] + 1 > len(p)]
    assert len(interrupted) >= 10
    assert len(spans) - len(interrupted) >= 10


def test_parallel_calls_and_signed_thinking_occur(records):
    calls = Counter(r["message"]["id"] for r, _ in blocks(records, "tool_use"))
    assert sum(count > 1 for count in calls.values()) >= 10
    thoughts = [b for _, b in blocks(records, "thinking")]
    assert len(thoughts) >= 15
    assert all(b["thinking"] and base64.b64decode(b["signature"], validate=True) for b in thoughts)


def test_files_are_read_again_after_they_were_edited(main_records):
    edited, again = set(), 0
    seen: Counter[str] = Counter()
    for _, block in blocks(main_records, "tool_use"):
        path = block["input"].get("file_path")
        if block["name"] in ("Edit", "Write"):
            edited.add(path)
        elif block["name"] == "Read":
            again += path in edited and seen[path] > 0
            seen[path] += 1
    assert again >= 5
    assert max(seen.values()) >= 3


def test_edits_show_in_the_next_read_of_the_file(main_records):
    found = results_by_tool(main_records)["Read"]
    parser = [result_text(b) for b in found if "class TableParser" in result_text(b)]
    assert "HALF_CYCLE" not in parser[0]
    assert "HALF_CYCLE" in parser[1]
    assert all(re.match(r" *\d+→", line) for line in parser[0].splitlines())


def test_commands_fail_with_an_exit_code_and_later_pass(main_records):
    results = results_by_tool(main_records)
    failed = [result_text(b) for b in results["Bash"] if b["is_error"]]
    assert len(failed) >= 8
    assert all(re.match(r"Exit code \d+\n", text) for text in failed)
    assert any(b.get("is_error") for b in results["Edit"])
    assert "83 passed" in [result_text(b) for b in results["Bash"] if "passed" in result_text(b)][-1]


def test_standing_instructions_a_correction_and_two_more_languages_occur(main_records):
    spoken = "\n".join(prompt_text(r) for r in prompts(main_records))
    for words in ("From now on run", "Never touch", "Always add", "from now on use `make check` instead of"):
        assert words in spoken
    assert "以后" in spoken
    assert "ab jetzt immer" in spoken


def test_early_facts_are_asked_for_again_a_hundred_messages_later(main_records):
    conversation = [r for r in main_records if r["type"] in ("user", "assistant")]
    texts = [json.dumps(blocks_of(r), ensure_ascii=False) for r in conversation]
    for fact in ("2025-44-B", "4ea4c35", "cd2c488", "TW-207", "NRH-0417", "2.173", "TW-208"):
        places = [position for position, text in enumerate(texts) if fact in text]
        assert places[-1] - places[0] >= 100


def test_images_are_real_pictures_in_a_prompt_and_in_a_result(main_records):
    shown = [b for _, b in blocks(main_records, "image")]
    captured = [
        part
        for _, b in blocks(main_records, "tool_result")
        if isinstance(b["content"], list)
        for part in b["content"]
        if part["type"] == "image"
    ]
    assert (len(shown), len(captured)) == (1, 1)
    for image in shown + captured:
        raw = base64.b64decode(image["source"]["data"], validate=True)
        assert raw.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", raw[16:24]) == (640, 400)
        at = raw.index(b"IDAT")
        (size,) = struct.unpack(">I", raw[at - 4 : at])
        assert len(zlib.decompress(raw[at + 4 : at + 4 + size])) == 400 * 321


def test_to_dos_and_a_plan_are_kept(main_records):
    todos = [b["input"]["todos"] for _, b in blocks(main_records, "tool_use") if b["name"] == "TodoWrite"]
    assert len(todos) >= 5
    assert {t["status"] for t in todos[0]} == {"in_progress", "pending"}
    assert [t["content"] for t in todos[-1] if t["status"] != "completed"]
    (plan,) = [b["input"]["plan"] for _, b in blocks(main_records, "tool_use") if b["name"] == "ExitPlanMode"]
    assert plan.startswith("# One engine for all predictions")


def test_hooks_meta_records_reminders_and_a_queued_prompt_occur(main_records):
    meta = [r for r in main_records if r.get("isMeta") and r["type"] == "user"]
    assert len(meta) >= 2
    assert all("hook additional context" in r["message"]["content"] for r in meta)
    assert sum("<system-reminder>" in prompt_text(r) for r in prompts(main_records)) >= 2
    operations = [r for r in main_records if r["type"] == "queue-operation"]
    assert [r["operation"] for r in operations] == ["enqueue", "remove"]
    assert operations[0]["content"] in [prompt_text(r) for r in prompts(main_records)]


def test_one_prompt_was_rewound_and_its_branch_abandoned(main_records):
    siblings = defaultdict(list)
    for record in prompts(main_records):
        siblings[record["parentUuid"]].append(record)
    (pair,) = [found for found in siblings.values() if len(found) > 1]
    tip = ancestors(main_records, [r for r in main_records if "uuid" in r][-1])
    assert [r["uuid"] in tip for r in pair] == [False, True]
    answers = [r for r in main_records if r.get("parentUuid") == pair[0]["uuid"]]
    assert answers
    assert answers[0]["type"] == "assistant"


def test_one_sub_agent_runs_inline(records):
    side = [r for r in records if r.get("isSidechain")]
    assert len({r["agentId"] for r in side}) == 1
    assert side[0]["parentUuid"] is None
    assert len(side) >= 6
    report = next(b["text"] for _, b in reversed(blocks(side, "text")))
    (task,) = results_by_tool([r for r in records if not r.get("isSidechain")])["Task"]
    assert task["content"][0]["text"] == report


def test_usage_grows_with_the_context_and_is_equal_within_a_message(main_records):
    answers = [r for r in main_records if r["type"] == "assistant"]
    sizes = [context_of(r) for r in answers]
    assert 17_000 <= sizes[0] <= 20_000
    assert 120_000 <= sizes[-1] <= 160_000
    falls = [(a, b) for a, b in pairwise(sizes) if b < a]
    assert len(falls) <= 1  # the rewound prompt
    by_id = defaultdict(set)
    for record in answers:
        by_id[record["message"]["id"]].add(context_of(record))
    assert all(len(found) == 1 for found in by_id.values())


def test_most_stop_reasons_are_null_and_some_are_set(main_records):
    reasons = Counter(r["message"]["stop_reason"] for r in main_records if r["type"] == "assistant")
    assert reasons[None] > 0.8 * sum(reasons.values())
    assert reasons["end_turn"] >= 5
    assert reasons["tool_use"] >= 3


def test_a_lunch_break_makes_earlier_results_older_than_an_hour(main_records):
    stamps = [datetime.fromisoformat(r["timestamp"]) for r in main_records if "timestamp" in r]
    gaps = [(b - a, b) for a, b in pairwise(stamps)]
    longest, back = max(gaps)
    assert timedelta(minutes=75) <= longest <= timedelta(minutes=90)
    results = [datetime.fromisoformat(r["timestamp"]) for r, _ in blocks(main_records, "tool_result")]
    assert sum(back - when > HOUR for when in results) >= 40


def test_there_is_one_made_up_key_and_no_compact_boundary(records):
    text = SAMPLE.read_text(encoding="utf-8")
    keys = re.findall(r"\bsk-[A-Za-z0-9]{20,}", text)
    assert keys
    assert all("EXAMPLE" in key for key in keys)
    assert "compact_boundary" not in text
    assert not any(r.get("isCompactSummary") for r in records)


def test_the_envelope_is_that_of_one_session(records):
    enveloped = [r for r in records if "uuid" in r]
    assert len({r["sessionId"] for r in enveloped}) == 1
    assert {r["cwd"] for r in enveloped} == {"/home/sam/tidewise"}
    assert {r["version"] for r in enveloped} == {"2.1.42"}
    assert {r["gitBranch"] for r in enveloped} == {"fix/dst-tables"}
    models = {r["message"]["model"] for r in enveloped if r["type"] == "assistant"}
    assert models == {"claude-sonnet-4-5-20250929"}
