from __future__ import annotations

import json

from mcp_compact.library import compact_transcript
from tests.transcripts.foreign import document, pairs, read, records, spoken

COMPACTION = {"source": "system", "message": "Summarised.", "extra": {"context_management": {"type": "compaction"}}}


def trajectory(*steps):
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return document(
        {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "model_name": "m"}, "steps": numbered}
    )


def test_a_step_is_an_answer_with_results_and_what_was_seen_without_a_call():
    step = {
        "source": "agent", "message": "I look.", "metrics": {"prompt_tokens": 9, "completion_tokens": 1},
        "tool_calls": [{"tool_call_id": "c1", "function_name": "ls", "arguments": {"p": 1}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "a.py"}, {"content": "a prompt"}]},
    }  # fmt: skip
    reader, parsed = read("atif", trajectory({"source": "user", "message": "Look."}, step))
    found = [item.record for item in parsed]
    assert pairs(found) == [("ls", {"p": 1}, "a.py", False)]
    assert spoken(found) == [("user", "Look."), ("assistant", "I look."), ("user", "a prompt")]
    assert found[-1].is_meta
    assert (reader.facts().session_id, reader.facts().model, reader.facts().max_context_tokens) == ("s", "m", 9)


def test_a_compaction_is_a_boundary_where_something_follows_it():
    old, new = {"source": "user", "message": "old"}, {"source": "user", "message": "new"}
    followed = compact_transcript([trajectory(old, COMPACTION, new)], output="anthropic")
    at_the_end = compact_transcript([trajectory(old, COMPACTION)], output="anthropic")
    assert [m["content"] for m in followed.messages] == ["new"]
    assert [m["content"] for m in at_the_end.messages] == ["old"]
    assert "Summarised." in json.dumps([r.raw for r in records("atif", trajectory(old, COMPACTION))])


def test_parts_and_unknown_sources():
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}]
    reader, parsed = read(
        "atif", trajectory({"source": "user", "message": parts}, {"source": "narrator", "message": "x"})
    )
    assert parsed[1].record.text == "see\n[Image: a.png]"
    assert reader.report.unknown_types == {"narrator": 1}
