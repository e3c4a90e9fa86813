from __future__ import annotations

import json
import stat

import pytest

from tests.cli.conftest import as_lines, records


def test_messages_go_to_stdout_and_the_picture_to_stderr(program, transcript):
    done = program("compact", str(transcript), "--target", "8000", "--format", "anthropic")
    assert done.code == 0
    messages = json.loads(done.out)
    assert messages[0]["role"] == "user"
    assert "Never touch the folder vendor/" in done.out
    assert "compacted, " in done.err
    assert "% less" in done.err
    assert "The memory begins:" in done.err


def test_stdin_gives_the_same_as_the_file(command, program, transcript):
    from_file = command("compact", str(transcript), "--target", "8000")
    from_stdin = program("compact", "-", "--target", "8000", stdin=transcript.read_bytes())
    assert from_file.out == from_stdin.out
    assert from_stdin.err.startswith("stdin: compacted")


def test_a_claude_code_session_stays_one_unless_told_otherwise(command, transcript):
    done = command("compact", str(transcript), "--target", "8000")
    entries = [json.loads(line) for line in done.out.splitlines()]
    assert all(entry["type"] in ("user", "assistant", "system", "summary") for entry in entries)
    assert all("uuid" in entry for entry in entries)


def test_a_message_list_comes_back_as_one(command, tmp_path):
    messages = [{"role": item["type"], "content": item["message"]["content"]} for item in records(tmp_path)]
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(messages))
    done = command("compact", str(path), "--target", "8000")
    assert done.code == 0
    assert len(json.loads(done.out)) < len(messages)
    assert json.loads(path.read_text()) == messages


def test_out_is_written_for_its_owner_alone_and_stdout_stays_empty(command, transcript, tmp_path):
    out = tmp_path / "out.jsonl"
    done = command("compact", str(transcript), "--target", "8000", "-o", str(out))
    assert (done.code, done.out) == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert out.read_text().count("\n") > 1
    assert f"Written to {out}." in done.err


def test_json_is_the_report_and_nothing_else(command, transcript, tmp_path):
    out = tmp_path / "out.json"
    done = command("compact", str(transcript), "--target", "8000", "--json", "-o", str(out), "--format", "anthropic")
    report = done.json
    assert report["status"] == "compacted"
    assert report["tokens_after"] <= 8000 < report["tokens_before"]
    assert report["messages"] == len(json.loads(out.read_text()))
    assert report["format"] == "anthropic"
    assert report["read"]["problem_count"] == 0
    assert done.err == ""


def test_what_fits_already_is_given_back_and_said(command, tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]))
    done = command("compact", str(path))
    assert done.code == 0
    assert [message["role"] for message in json.loads(done.out)] == ["user", "assistant"]
    assert "nothing to compact" in done.err


def test_compacting_again_changes_nothing_in_the_input(command, transcript):
    before = transcript.read_bytes()
    command("compact", str(transcript), "--target", "8000")
    assert transcript.read_bytes() == before


def test_the_input_is_replaced_only_where_it_is_named(command, transcript):
    done = command("compact", str(transcript), "--target", "8000", "-o", str(transcript))
    assert done.code == 0
    assert "is replaced" in done.err
    again = command("compact", str(transcript), "--json", "--target", "8000")
    assert again.json["tokens_before"] <= 8000


def test_a_file_beyond_the_limit_names_the_limit(command, tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_COMPACT_MAX_FILE_MB", "1")
    path = tmp_path / "large.jsonl"
    path.write_text(as_lines([{"role": "user", "content": "x" * 1_100_000}]))
    done = command("compact", str(path))
    assert done.code == 2
    assert "1 MB" in done.err
    assert "MCP_COMPACT_MAX_FILE_MB" in done.err


@pytest.mark.parametrize("text", ["a million blanks", "surrogates"])
def test_awkward_text_compacts(command, tmp_path, text):
    content = " " * 1_000_000 if text == "a million blanks" else "\ud800" * 50_000
    path = tmp_path / "awkward.json"
    path.write_text(json.dumps([{"role": "user", "content": content}, {"role": "assistant", "content": "ok"}]))
    assert command("compact", str(path), "--target", "1000").code == 0


def test_real_sessions_shrink_to_their_target(command, recall_files):
    done = command("compact", str(recall_files[1]), "--target", "9000", "--json")
    assert done.code == 0
    assert done.json["status"] == "compacted"
    assert done.json["tokens_after"] <= 9000


def test_a_target_that_holds_nothing_is_the_callers_mistake_and_named(command, transcript, tmp_path):
    done = command("compact", str(transcript), "--target", "10", "-o", str(tmp_path / "out.jsonl"))
    assert done.code == 2
    assert "nothing can be told in 10 tokens: take a larger --target" in done.err
    assert "not_configured" not in done.err


def test_an_unknown_format_is_told_what_there_is_as_a_list(command, transcript):
    done = command("compact", str(transcript), "--format", "nope")
    assert done.code == 2
    assert "There is anthropic, openai, responses, gemini, claude-code, codex." in done.err
