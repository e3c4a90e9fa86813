"""Every tool, in both eras, over a real archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp import Client

from mcp_compact.testing import FixedClock
from tests.problems import problems
from tests.server.talk import assistant, call, conversation, jsonl, refused, text_of, transcript, user


async def test_appended_messages_come_back_unchanged_and_the_answer_tells_how_full_the_context_is(client: Client):
    sent = [user("hello"), assistant("hi there")]
    stored = await call(client, "append_messages", session_id="s", messages=sent, model="claude-sonnet-4-5")
    assert (stored["stored"], len(stored["uuids"]), stored["status"]["level"]) == (2, 2, "ok")
    assert stored["status"]["should_compact"] is False
    page = await call(client, "get_messages_after_boundary", session_id="s")
    assert [message["role"] for message in page["messages"]] == ["user", "assistant"]
    assert "hello" in json.dumps(page["messages"][0])


async def test_a_list_given_as_json_text_is_accepted(client: Client):
    stored = await call(client, "append_messages", session_id="s", messages=json.dumps([user("hi")]))
    assert stored["stored"] == 1


async def test_what_is_no_list_of_messages_is_refused_with_an_example_and_nothing_is_stored(client: Client):
    for wrong in ("no json", "12", "null", 7, None, [1], [{"content": "no role"}], {"a": 1}):
        assert "bad_messages: " in await refused(client, "append_messages", session_id="s", messages=wrong)
    assert "unknown_session: " in await refused(client, "get_context_status", session_id="s")


async def test_thousands_of_uuids_do_not_fill_the_answer(client: Client):
    messages = [user(f"message {number}") for number in range(300)]
    stored = await call(client, "append_messages", session_id="s", messages=messages)
    assert (stored["stored"], len(stored["uuids"])) == (300, 100)
    assert any("300" in warning for warning in stored["warnings"])


async def test_the_status_counts_against_the_window_that_was_given(client: Client):
    await call(
        client, "append_messages", session_id="s", messages=conversation(8), context_window=20_000, overhead_tokens=500
    )
    status = await call(client, "get_context_status", session_id="s")
    assert (status["context_window"], status["overhead_tokens"], status["should_compact"]) == (20_000, 500, True)
    assert status["tokens"] == status["message_tokens"] + 500


async def test_a_compaction_shrinks_what_is_sent_and_an_undo_gives_the_same_context_back(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    before = await call(client, "get_context_status", session_id="s")
    planned = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True, dry_run=True)
    assert planned["status"] == "dry_run"
    assert planned["spans"]
    done = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
    assert (done["status"], done["applies_to"]) == ("compacted", "sent_context")
    assert done["tokens_after"] < done["tokens_before"]
    assert "spans" not in done
    page = await call(client, "get_messages_after_boundary", session_id="s")
    assert problems(page["messages"]) == []
    undone = await call(client, "undo_compaction", session_id="s")
    assert (undone["status"], undone["live_hash"]) == ("undone", before["live_hash"])
    assert (await call(client, "undo_compaction", session_id="s"))["status"] == "nothing_to_undo"


async def test_a_compaction_that_is_not_due_says_so_and_what_to_do(client: Client):
    await call(client, "append_messages", session_id="s", messages=[user("hi"), assistant("hello")])
    declined = await call(client, "compact_session", session_id="s")
    assert declined["status"] == "below_threshold"
    assert declined["next"]


async def test_bad_values_of_a_compaction_are_refused_with_what_is_allowed(client: Client):
    await call(client, "append_messages", session_id="s", messages=[user("hi")])
    assert "agent, manual" in await refused(client, "compact_session", session_id="s", trigger="perhaps")
    assert "bad_target: " in await refused(client, "compact_session", session_id="s", target_tokens=-5)
    assert "bad_time: " in await refused(client, "compact_session", session_id="s", now="yesterday")


async def test_old_results_are_cleared_and_each_comes_back_by_its_tool_use_id(client: Client):
    sent = conversation(8)
    await call(client, "append_messages", session_id="s", messages=sent)
    cleared = await call(client, "microcompact_tool_results", session_id="s", older_than_minutes=0, keep=3)
    assert (cleared["status"], cleared["cleared"]) == (
        "compacted",
        [{"tool": "Read", "count": 5, "tokens": cleared["tokens_freed"]}],
    )
    original = await call(client, "get_original", session_id="s", id="toolu_0")
    assert original["text"] == sent[2]["content"][0]["content"]
    again = await call(client, "microcompact_tool_results", session_id="s", older_than_minutes=0, keep=3)
    assert (again["status"], again["reason"]) == ("nothing_to_compact", "nothing_to_clear")
    assert "bad_mode: " in await refused(client, "microcompact_tool_results", session_id="s", mode="some")
    assert "bad_media: " in await refused(client, "microcompact_tool_results", session_id="s", media="some")


async def test_by_tokens_nothing_is_cleared_in_a_context_that_is_not_full_nor_for_a_small_saving(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(8))
    small = await call(client, "microcompact_tool_results", session_id="s", mode="tokens")
    assert (small["status"], small["reason"]) == ("nothing_to_compact", "below_trigger")
    little = await call(client, "microcompact_tool_results", session_id="s", mode="tokens", force=True)
    assert (little["status"], little["reason"]) == ("nothing_to_compact", "saves_too_little")
    assert "20000" in little["detail"]


async def test_results_younger_than_asked_stay(client: Client):
    records = transcript("s", "/somewhere", 8)
    await call(client, "append_messages", session_id="s", messages=records)
    late = await call(
        client, "microcompact_tool_results", session_id="s", older_than_minutes=600, now="2026-01-01T02:00:00Z"
    )
    assert (late["status"], late["reason"]) == ("nothing_to_compact", "nothing_old_enough")
    assert "600 minutes" in late["detail"]
    early = await call(
        client, "microcompact_tool_results", session_id="s", older_than_minutes=30, now="2026-01-01T02:00:00Z"
    )
    assert early["status"] == "compacted"


async def test_all_pages_together_are_the_conversation_in_order_and_each_answer_stays_small(client: Client):
    sent = [message for number in range(40) for message in (user(f"q{number}"), assistant(f"answer{number} " * 400))]
    await call(client, "append_messages", session_id="s", messages=sent)
    pages: list[list[dict[str, Any]]] = []
    cursor = ""
    while not pages or cursor:
        result = await client.call_tool("get_messages_after_boundary", {"session_id": "s", "cursor": cursor})
        assert isinstance(result.structured_content, dict)
        assert len(text_of(result)) < len(json.dumps(result.structured_content)) / 4, "the answer is there twice"
        pages.append(result.structured_content["messages"])
        cursor = result.structured_content["next_cursor"]
    assert len(pages) > 1
    texts = [json.dumps(message) for page in pages for message in page]
    assert [f"answer{number} " in text for number, text in enumerate(texts[1::2])] == [True] * 40
    assert "bad_cursor: " in await refused(client, "get_messages_after_boundary", session_id="s", cursor="nonsense")
    assert "unknown_format: " in await refused(client, "get_messages_after_boundary", session_id="s", format="morse")


async def test_the_memory_is_kept_whole_or_by_section(client: Client):
    await call(client, "append_messages", session_id="s", messages=[user("hi"), assistant("hello")])
    assert (await call(client, "get_session_memory", session_id="s"))["is_empty"] is True
    written = await call(
        client, "update_session_memory", session_id="s", content="# Work\n\n## Task\n\nFix the parser.\n"
    )
    assert (written["version"], written["uncovered_messages"]) == (1, 0)
    assert "content" not in written
    await call(client, "update_session_memory", session_id="s", content="Write tests.", section="Task")
    memory = await call(client, "get_session_memory", session_id="s")
    assert "Write tests." in memory["content"]
    assert "Fix the parser." not in memory["content"]
    unknown = await refused(client, "update_session_memory", session_id="s", content="x", summarized_through="nobody")
    assert "unknown_message: " in unknown


async def test_what_left_the_context_is_found_and_read_again(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
    found = await call(client, "search_messages", query="function_0_119", session_id="s")
    assert found["hits"]
    assert found["hits"][0]["in_context"] is False
    original = await call(client, "get_original", session_id="s", id=found["hits"][0]["uuid"])
    assert "function_0_119" in original["text"]
    assert "not_found: " in await refused(client, "get_original", session_id="s", id="nothing")
    assert "empty_query: " in await refused(client, "search_messages", query="  ", session_id="s")


async def test_a_search_without_a_session_stays_in_the_project(client: Client, tmp_path: Path, project: Path):
    here, elsewhere = transcript("here", str(project), 1), transcript("elsewhere", str(tmp_path / "other"), 1)
    for records in (here, elsewhere):
        await call(client, "import_transcript", content=jsonl(records))
    found = await call(client, "search_messages", query="expected")
    assert {hit["session_id"] for hit in found["hits"]} == {"here"}


async def test_a_transcript_is_imported_by_path_with_progress_and_its_repetition_adds_nothing(
    client: Client, project: Path
):
    file = project / "run.jsonl"
    file.write_text(jsonl(transcript("abc", str(project), 200)), encoding="utf-8")
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    result = await client.call_tool("import_transcript", {"path": "run.jsonl"}, progress_callback=hear)
    assert isinstance(result.structured_content, dict)
    first = result.structured_content
    assert (first["session_id"], first["messages"], first["stored"]) == ("abc", 800, 800)
    assert heard
    assert all(total == file.stat().st_size for _, total in heard)
    again = await call(client, "import_transcript", path=str(file))
    assert again["stored"] == 0
    assert again["status"] == first["status"]


async def test_an_imported_client_session_is_prepared_not_compacted(client: Client, project: Path):
    imported = await call(client, "import_transcript", content=jsonl(transcript("abc", str(project), 12)))
    done = await call(client, "compact_session", session_id=imported["session_id"], target_tokens=6_000, force=True)
    assert (done["status"], done["applies_to"]) == ("prepared", "stored_view")
    assert "/compact" in done["next"]


async def test_transcripts_that_cannot_be_read_are_refused_without_their_content(
    client: Client, project: Path, tmp_path: Path
):
    secret = tmp_path / "secret.jsonl"
    secret.write_text("the secret word", encoding="utf-8")
    (project / "empty.jsonl").write_text("", encoding="utf-8")
    (project / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    (project / "plain.json").write_text('{"secret": "word"}', encoding="utf-8")
    (project / "link.jsonl").symlink_to(secret)
    for path in (str(secret), "../secret.jsonl", "link.jsonl", "/etc/passwd"):
        text = await refused(client, "import_transcript", path=path)
        assert "outside_roots: " in text
        assert "MCP_COMPACT_ROOTS" in text
        assert "secret word" not in text
    for path in ("missing.jsonl", ".", "empty.jsonl", "binary.jsonl", "plain.json", "nul\0byte"):
        text = await refused(client, "import_transcript", path=path)
        assert text.startswith("Error executing tool") is False
        assert "word" not in text
    assert "path_or_content: " in await refused(client, "import_transcript")
    assert "path_or_content: " in await refused(client, "import_transcript", path="a", content="b")
    assert "unknown_format: " in await refused(client, "import_transcript", content="{}", format="morse")


async def test_unknown_sessions_are_refused_by_every_tool_that_reads_one(client: Client):
    calls = {
        "get_context_status": {},
        "compact_session": {},
        "microcompact_tool_results": {},
        "get_messages_after_boundary": {},
        "undo_compaction": {},
        "get_session_memory": {},
        "update_session_memory": {"content": "x"},
        "search_messages": {"query": "x"},
        "get_original": {"id": "x"},
    }
    for tool, arguments in calls.items():
        text = await refused(client, tool, session_id="nobody", **arguments)
        assert "unknown_session: There is no session 'nobody'" in text


async def test_the_clock_of_an_append_is_the_servers(client: Client, clock: FixedClock):
    await call(client, "append_messages", session_id="s", messages=[user("hi")])
    clock.at_ms += 60_000
    assert (await call(client, "get_context_status"))["session_id"] == "s"
