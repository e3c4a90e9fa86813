from __future__ import annotations

import json
import re
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


def test_the_picture_adds_up_to_the_figure_above_it(command, tmp_path):
    """Each share is rounded, their sum is not rounded anew."""
    path = tmp_path / "two.json"
    path.write_text(json.dumps([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]))
    said = command("compact", str(path)).err
    [told] = re.findall(r"nothing to compact, ([0-9]+) tokens", said)
    [total] = re.findall(r"total +([0-9]+) +([0-9]+)", said)
    assert total == (told, told)


def test_compacting_again_changes_nothing_in_the_input(command, transcript):
    before = transcript.read_bytes()
    command("compact", str(transcript), "--target", "8000")
    assert transcript.read_bytes() == before


@pytest.mark.parametrize("way", ["the same path", "another path", "a link", "a hard link"])
def test_the_input_is_never_replaced_by_whatever_way_it_is_named(command, transcript, tmp_path, way):
    before, out = transcript.read_bytes(), transcript
    if way == "another path":
        (tmp_path / "folder").mkdir()
        out = tmp_path / "folder" / ".." / transcript.relative_to(tmp_path)
    elif way != "the same path":
        out = tmp_path / "link.jsonl"
        out.symlink_to(transcript) if way == "a link" else out.hardlink_to(transcript)
    done = command("compact", str(transcript), "--target", "8000", "-o", str(out))
    assert done.code == 2
    assert "is the file that is read" in done.err
    assert "-o" in done.err
    assert transcript.read_bytes() == before


def test_another_file_is_replaced_and_said_to_be(command, transcript, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    done = command("compact", str(transcript), "--target", "8000", "-o", str(out))
    assert done.code == 0
    assert "is replaced" in done.err
    again = command("compact", str(out), "--json", "--target", "8000")
    assert again.json["tokens_before"] <= 8000


LANGCHAIN = [{"type": "human", "data": {"content": "hi there"}}, {"type": "ai", "data": {"content": "hello"}}]
NOT_WRITTEN = ("gemini-cli", "copilot-cli", "cline", "openhands", "atif", "mini-swe-traj", "swe-agent-traj")


def lines_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("kind", [*NOT_WRITTEN, "langchain"])
def test_what_can_only_be_read_comes_out_in_a_form_that_is_named(command, request, tmp_path, kind):
    path = tmp_path / "lc.json"
    path.write_text(json.dumps(LANGCHAIN))
    if kind != "langchain":
        path = min((request.getfixturevalue("shared") / "transcripts" / kind).iterdir())
    done = command("compact", str(path), "--target", "100000")
    assert done.code == 0
    named = re.search(r"these are given back in the format (\w+)", done.err)
    assert named is not None
    assert named[1] in ("anthropic", "openai", "gemini")
    assert len(lines_of(done.out)) > 1
    asked = command("compact", str(path), "--target", "100000", "--format", named[1])
    assert (asked.out, "given back" in asked.err) == (done.out, False)


@pytest.mark.parametrize("kind", ["codex-rollout", "claude-code"])
def test_a_clients_session_file_is_one_entry_a_line_and_stays_the_same_in_and_out(command, shared, tmp_path, kind):
    source = min((shared / "transcripts" / kind).rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    texts = [source]
    for number in range(2):
        out = tmp_path / f"out{number}.jsonl"
        assert command("compact", str(texts[-1]), "--target", "100000000", "-o", str(out)).code == 0
        assert all(isinstance(json.loads(line), dict) for line in out.read_text().splitlines())
        texts.append(out)
    assert texts[1].read_bytes() == texts[2].read_bytes()


@pytest.mark.parametrize("kind", ["codex-rollout", "claude-code"])
@pytest.mark.parametrize("target", ["3000", "100000000"])
@pytest.mark.parametrize("format_name", ["codex", "claude-code"])
def test_a_session_file_tells_what_the_source_tells_of_its_session(command, shared, kind, target, format_name):
    from mcp_compact.transcripts.lines import read_lines
    from mcp_compact.transcripts.registry import reader_for

    source = min((shared / "transcripts" / kind).rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    reader = reader_for("codex" if kind == "codex-rollout" else kind, "x")
    list(reader.read(read_lines([source.read_bytes()])))
    facts = reader.facts(reader.sole_agent)
    done = command("compact", str(source), "--target", target, "--format", format_name)
    assert done.code in (0, 2)
    for entry in lines_of(done.out):
        assert entry["timestamp"][:4] > "1970"
        told = entry["payload"] if entry["type"] == "session_meta" else entry
        for key, fact in (("id", facts.session_id), ("sessionId", facts.session_id), ("cwd", facts.cwd)):
            if told is not entry or (key != "id" and format_name == "claude-code"):
                assert told.get(key, fact) == fact


def test_the_way_that_validate_names_for_a_session_file_works(command, shared, tmp_path):
    source = min((shared / "transcripts" / "codex-rollout").iterdir(), key=lambda path: path.stat().st_size)
    done = command("validate", str(source))
    assert done.code == 2
    assert "mcp-compact compact FILE --format responses -o OUT" in done.err
    out = tmp_path / "out.json"
    assert command("compact", str(source), "--format", "responses", "-o", str(out)).code == 0
    assert command("validate", str(out)).code == 0


def test_messages_of_unknown_roles_and_of_two_apis_are_named_on_stderr(command, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(as_lines([{"role": "user", "content": "a"}, {"role": "critic", "content": "lost?"}]))
    done = command("compact", str(path))
    assert done.code == 0
    assert "entry 2: the role 'critic' is not understood" in done.err
    path.write_text(as_lines([{"role": "user", "content": "a"}, {"role": "user", "parts": [{"text": "gem"}]}]))
    done = command("compact", str(path))
    assert done.code == 2
    assert "is a content of Gemini" in done.err


def test_a_file_of_several_conversations_names_the_command_that_takes_it(command, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(as_lines([{"messages": [{"role": "user", "content": f"hi {at}"}]} for at in range(3)]))
    done = command("compact", str(path))
    assert done.code == 2
    assert f"mcp-compact import {path}" in done.err


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
