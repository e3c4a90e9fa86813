from __future__ import annotations

import pytest

from mcp_compact.library import compact_transcript
from mcp_compact.messages.blocks import ThinkingBlock
from mcp_compact.messages.words import users_words
from mcp_compact.transcripts import pi
from mcp_compact.transcripts.lines import Line, read_lines
from mcp_compact.transcripts.registry import reader_for
from tests.transcripts.foreign import AT, jsonl, read, records, spoken

HEAD = {"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/app"}


def entry(entry_id, parent, kind="message", **more):
    return {"type": kind, "id": entry_id, "parentId": parent, "timestamp": AT, **more}


def said(entry_id, parent, words, role="user", **more):
    return entry(entry_id, parent, message={"role": role, "content": words, **more})


def shown(*lines):
    messages = compact_transcript([jsonl(lines)], output="anthropic").messages
    return [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in messages]


def test_facts_usage_and_changes_of_the_model():
    parts = [{"type": "text", "text": "b"}]
    used = {"input": 5, "output": 2, "cacheRead": 90, "cacheWrite": 5}
    reader, parsed = read("pi", jsonl([
        HEAD, said("a", None, "a"), entry("m", "a", "model_change", provider="x", modelId="m2"),
        said("b", "m", parts, "assistant", usage=used), entry("t", "b", "session_info", name="A name"),
    ]))  # fmt: skip
    facts = reader.facts()
    assert (facts.session_id, facts.cwd, facts.model, facts.title) == ("s", "/app", "m2", "A name")
    assert [i.record.message.usage.context_tokens for i in parsed if i.record.message and i.record.message.usage] == [
        100
    ]
    assert not reader.report.unknown_types


def test_only_the_branch_of_the_last_entry_is_live():
    lines = [HEAD, said("a", None, "first"), said("b", "a", "wrong way"), said("c", "a", "right way")]
    assert shown(*lines) == ["first", "right way"]


def test_a_compaction_keeps_from_the_first_kept_entry_on():
    lines = [
        HEAD, said("a", None, "old"), said("b", "a", "kept"),
        entry("k", "b", "compaction", summary="S", firstKeptEntryId="b", tokensBefore=175_004), said("d", "k", "new"),
    ]  # fmt: skip
    assert shown(*lines) == ["S", "kept", "new"]
    boundary = next(r for r in records("pi", jsonl(lines)) if r.subtype == "compact_boundary")
    assert boundary.raw["compactMetadata"]["preTokens"] == 175_004


def test_a_compaction_may_keep_more_entries_than_are_kept_in_mind(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pi, "IN_MIND", 8)
    entries = [said(f"e{at}", f"e{at - 1}" if at else None, f"word {at}") for at in range(30)]
    entries[20] = entry("e20", "e19", "model_change", modelId="m")
    kept = entry("k", "e29", "compaction", summary="S", firstKeptEntryId="e5", tokensBefore=5)

    assert shown(HEAD, *entries, kept, said("d", "k", "new")) == [
        "S", *(f"word {at}" for at in range(5, 30) if at != 20), "new",
    ]  # fmt: skip
    reader = reader_for("pi", "source")
    assert reader.goes_on(Line(1, 0, 0, jsonl([HEAD]).strip()))
    assert list(reader.read(read_lines([jsonl([HEAD, *entries])])))
    assert [uuid for uuid, _, _ in reader.state()["own"]["entries"]] == [f"e{at}" for at in range(24, 30)]


def test_older_files_have_no_ids_and_count_places():
    def plain(words):
        return {"type": "message", "timestamp": AT, "message": {"role": "user", "content": words}}

    compaction = {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 5}
    lines = [{"type": "session", "id": "s", "cwd": "/app"}, plain("old"), plain("kept"), compaction, plain("new")]
    assert shown(*lines) == ["S", "kept", "new"]


def test_a_compaction_whose_first_kept_entry_is_unknown_keeps_nothing():
    lines = [HEAD, said("a", None, "old"), entry("k", "a", "compaction", summary="S", firstKeptEntryId="zz")]
    assert shown(*lines, said("d", "k", "new")) == ["S", "new"]


def test_thinking_is_sent_back_only_where_its_provider_signed_it():
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    found = records("pi", jsonl([
        HEAD, said("a", None, [thought, {"type": "text", "text": "x"}], "assistant", provider="anthropic"),
        said("b", "a", [thought, {"type": "text", "text": "y"}], "assistant", provider="openai"),
    ]))  # fmt: skip
    assert [[isinstance(block, ThinkingBlock) for block in record.blocks] for record in found[1:]] == [
        [True, False],
        [False],
    ]


def test_a_command_that_the_user_ran_is_told_and_is_nobody_s_words():
    ran = entry("a", None, message={"role": "bashExecution", "command": "make", "output": "failed", "exitCode": 2})
    found = records("pi", jsonl([HEAD, ran]))
    assert spoken(found) == [("user", "[Ran: make]\nfailed\n[exit code 2]")]
    assert users_words(found[-1]) == ""


def test_a_command_that_was_kept_from_the_model_stays_in_the_archive_alone():
    ran = {"role": "bashExecution", "command": "env", "output": "x", "exitCode": 0, "excludeFromContext": True}
    reader, parsed = read("pi", jsonl([HEAD, entry("a", None, message=ran)]))
    assert [item.record.is_message for item in parsed] == [False, False]
    assert not reader.report.unknown_types


def test_who_goes_back_to_before_the_first_entry_begins_anew():
    lines = [HEAD, said("a", None, "first"), said("b", "a", "second"), said("c", None, "anew"), said("d", "c", "more")]
    assert shown(*lines) == ["anew", "more"]


def test_unknown_entries_roles_and_parts_are_counted():
    lines = [
        HEAD,
        entry("a", None, "novel"),
        said("b", "a", [{"type": "video"}, {"type": []}]),
        said("c", "b", "x", "narrator"),
    ]
    reader, parsed = read("pi", jsonl(lines))
    assert len(parsed) == 4
    assert reader.report.unknown_types == {"novel": 1, "part video": 1, "part (none)": 1, "role narrator": 1}
