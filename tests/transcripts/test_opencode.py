from __future__ import annotations

import json

from mcp_compact.library import compact_transcript
from mcp_compact.messages.blocks import CLEARED_RESULT, MediaBlock
from mcp_compact.messages.words import users_words
from tests.transcripts.foreign import document, pairs, read, records, sent, spoken

INFO = {
    "id": "ses_1", "slug": "quiet-moon", "projectID": "p", "directory": "/app", "title": "Gauges", "version": "1.2.0",
    "time": {"created": 1_767_261_600_000, "updated": 1_767_261_700_000},
}  # fmt: skip


def export(*messages, **info):
    return document({"info": {**INFO, **info}, "messages": messages})


def said(role, *parts, number=[0], **info):  # noqa: B006 - numbers the messages of a test run
    number[0] += 1
    return {
        "info": {"id": f"msg_{number[0]}", "role": role, "time": {"created": 1_767_261_600_000}, **info},
        "parts": parts,
    }


def text(words, **more):
    return {"type": "text", "text": words, **more}


def tool(call_id, status="completed", **state):
    return {"type": "tool", "id": f"prt_{call_id}", "callID": call_id, "tool": "bash",
            "state": {"status": status, "input": {"command": "ls"}, **state}}  # fmt: skip


def test_the_session_s_facts_and_its_parent():
    tokens = {"input": 10, "output": 3, "reasoning": 1, "cache": {"read": 100, "write": 5}}
    reader, parsed = read(
        "opencode",
        export(said("user", text("a")), said("assistant", text("b"), tokens=tokens, modelID="m"), parentID="ses_0"),
    )
    facts = reader.facts()
    assert (facts.session_id, facts.parent_session_id, facts.title, facts.cwd, facts.model) == (
        "ses_1", "ses_0", "Gauges", "/app", "m",
    )  # fmt: skip
    assert sent(parsed[-1].record) == 115
    assert parsed[-1].record.at_ms == 1_767_261_600_000


def test_a_tool_s_part_is_a_call_and_a_result():
    found = records(
        "opencode",
        export(
            said("user", text("a")),
            said("assistant", tool("c1", output="x"), tool("c2", "error", error="no"), tool("c3", "running")),
        ),
    )
    assert pairs(found) == [("bash", {"command": "ls"}, "x", False), ("bash", {"command": "ls"}, "no", True)]
    assert [call.id for record in found for call in record.calls] == ["c1", "c2", "c3"]


def test_an_output_that_it_cleared_is_given_as_cleared_and_kept():
    found = records("opencode", export(said("assistant", tool("c1", output="secret", time={"compacted": 5}))))
    assert found[-1].results[0].text == CLEARED_RESULT
    assert b"secret" in found[-1].body


def test_a_compaction_is_a_boundary_once_its_summary_is_there():
    asked = said("user", {"type": "compaction", "auto": True})
    summary = said("assistant", text("They looked."), summary=True, finish="stop", mode="compaction")
    later = said("user", text("Go on."))
    whole = export(said("user", text("old")), asked, summary, later)
    boundary = next(record for record in records("opencode", whole) if record.subtype == "compact_boundary")
    assert boundary.raw["compactMetadata"] == {"trigger": "auto"}
    shown = json.dumps(compact_transcript([whole], output="anthropic").messages)
    assert "They looked." in shown
    assert "old" not in shown
    open_ = compact_transcript([export(said("user", text("old")), asked)], output="anthropic")
    assert "old" in json.dumps(open_.messages)


def test_a_compaction_keeps_from_the_message_that_it_names_to_the_one_that_asked():
    kept = said("user", text("kept"))
    answer = said("assistant", text("looking"), tool("c9", output="x"))
    asked = said("user", {"type": "compaction", "auto": False, "tail_start_id": kept["info"]["id"]})
    summary = said("assistant", text("S"), summary=True, finish="stop")
    whole = export(said("user", text("old")), kept, answer, asked, summary, said("user", text("Go on.")))
    found = records("opencode", whole)
    boundary = next(record for record in found if record.subtype == "compact_boundary")
    assert boundary.raw["compactMetadata"]["trigger"] == "manual"
    messages = compact_transcript([whole], output="anthropic").messages
    shown = json.dumps(messages)
    assert "old" not in shown
    assert (
        shown.index('"S"') < shown.index("kept") < shown.index("looking") < shown.index('"c9"') < shown.index("Go on")
    )


def test_what_it_added_itself_is_nobody_s_words():
    found = records("opencode", export(said("user", text("Called the Read tool", synthetic=True))))
    assert users_words(found[-1]) == ""


def test_files_are_media_or_named_and_unknown_parts_counted():
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"}
    named = {"type": "file", "mime": "text/plain", "url": "file:///app/a.py", "filename": "a.py"}
    reader, parsed = read("opencode", export(said("user", text("see"), image, named, {"type": "novel"})))
    record = parsed[-1].record
    assert [block.data for block in record.blocks if isinstance(block, MediaBlock)] == ["QUJD"]
    assert spoken([record]) == [("user", "see\n[Attached: a.py]")]
    assert reader.report.unknown_types == {"part novel": 1}
