"""Hooks of Codex and Gemini CLI, and what the plugins for opencode and pi ask: each in its client's own form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.compaction.injection import InjectionFacts
from mcp_compact.compaction.rules import Rule
from mcp_compact.errors import CallerError
from mcp_compact.hooking import snapshots
from mcp_compact.hooking.given import MOST_BYTES, MOST_DOCUMENT_BYTES, Given, given, words_given
from mcp_compact.hooking.session_facts import CODEX_BYTES, text_for
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from tests.hooking.client import SESSION, ClientFolder, Said

RULE, FACT = "Never touch the folder vendor/.", "The valve pressure is 47.3 bar."
SUMMARY = "SUMMARY of what was done"
AT = "2026-11-30T20:00:0{}.000Z"


def ask(client: ClientFolder, name: str, event: str, **fields: object) -> Said:
    """A hook as that client starts it."""
    data = client.given(event, **fields)
    return client.raw(json.dumps(data).encode(), "--client", name)


def as_lines(*values: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


# ---------------------------------------------------------------- Codex


def codex_item(number: int, **payload: object) -> dict[str, object]:
    return {"timestamp": AT.format(number), "type": "response_item", "payload": payload}


def codex_words(number: int, role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item(number, type="message", role=role, content=[{"type": kind, "text": text}])


def rollout(client: ClientFolder, words: str) -> Path:
    """A session that gave a rule and read a file."""
    path = client.root / "codex" / "sessions" / "2026" / "11" / "30" / f"rollout-2026-11-30T20-00-00-{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    client.env["CODEX_HOME"] = str(client.root / "codex")
    meta = {"session_id": SESSION, "id": SESSION, "cwd": str(client.project)}
    call = {"name": "exec_command", "arguments": '{"cmd": "cat gauge.txt"}', "call_id": "c1"}
    path.write_bytes(
        as_lines(
            {"timestamp": AT.format(0), "type": "session_meta", "payload": meta},
            codex_words(1, "user", words),
            codex_item(2, type="function_call", **call),
            codex_item(3, type="function_call_output", call_id="c1", output=f"Output:\n{FACT}"),
            codex_words(4, "assistant", "I read it."),
        )
    )
    return path


def compacted_line() -> bytes:
    return as_lines({"timestamp": AT.format(5), "type": "compacted", "payload": {"message": SUMMARY}})


def test_codex_gives_back_what_its_summary_lost_and_says_nothing_to_the_summary_itself(client: ClientFolder):
    path = rollout(client, f"Look at the gauge. {RULE}")
    at = {"transcript_path": str(path)}
    assert ask(client, "codex", "PreCompact", trigger="auto", **at).out == ""
    with path.open("ab") as stream:
        stream.write(compacted_line())
    assert ask(client, "codex", "PostCompact", trigger="auto", **at).out == ""
    said = ask(client, "codex", "SessionStart", source="compact", **at)
    assert RULE in said.context
    assert FACT in said.context
    assert "What the summary left out" in said.context
    # It refuses an answer that holds anything else.
    assert set(json.loads(said.out)) == {"hookSpecificOutput"}
    assert client.notes() == []


def test_a_server_that_was_faster_with_the_boundary_takes_nothing_away(client: ClientFolder):
    path = rollout(client, f"Look at the gauge. {RULE}")
    at = {"transcript_path": str(path)}
    ask(client, "codex", "PreCompact", trigger="auto", **at)
    with path.open("ab") as stream:
        stream.write(compacted_line())
    ask(client, "codex", "Stop", **at)
    ask(client, "codex", "PostCompact", trigger="auto", **at)
    said = ask(client, "codex", "SessionStart", source="compact", **at)
    assert RULE in said.context
    assert FACT in said.context
    assert "What the summary left out" in said.context


def test_codex_gets_it_also_where_no_hook_announced_the_compaction(client: ClientFolder):
    path = rollout(client, f"Look at the gauge. {RULE}")
    with path.open("ab") as stream:
        stream.write(compacted_line())
    said = ask(client, "codex", "SessionStart", source="compact", transcript_path=str(path))
    assert RULE in said.context
    assert FACT in said.context


def test_codex_is_given_no_more_bytes_than_it_shows():
    rules = tuple(Rule(f"请永远不要修改文件夹 vendor{number} 里的任何文件") for number in range(400))
    facts = InjectionFacts("s", rules, open_work=tuple(f"打开的工作 {number}" for number in range(400)))
    texts = {name: text_for(Given({}, "", name), 9_500, lambda _: facts)[1] for name in ("codex", "claude-code")}
    assert CODEX_BYTES / 2 < len(texts["codex"].encode()) <= CODEX_BYTES < len(texts["claude-code"].encode())
    assert f"- {rules[-1].text}" in texts["codex"]


def test_codex_is_held_back_by_a_word_and_not_by_an_exit_code(client: ClientFolder):
    path = rollout(client, RULE)
    client.env["MCP_COMPACT_HOLD_MANUAL"] = "1"
    said = ask(client, "codex", "PreCompact", trigger="manual", transcript_path=str(path))
    assert (said.code, json.loads(said.out)["continue"]) == (0, False)


# ---------------------------------------------------------------- Gemini CLI


def gemini_line(number: int, kind: str, text: str) -> dict[str, object]:
    return {"id": f"m{number}", "timestamp": AT.format(number), "type": kind, "content": [{"text": text}]}


def history(*texts: str) -> dict[str, object]:
    """What the client writes where its history is another one: a snapshot in place of all that was."""
    messages = [gemini_line(7 + at, "user" if at % 2 == 0 else "gemini", text) for at, text in enumerate(texts)]
    return {"$set": {"messages": messages, "lastUpdated": AT.format(8)}}


def chat(client: ClientFolder) -> Path:
    path = client.root / ".gemini" / "tmp" / "project" / "chats" / "session-2026-11-30T20-00-5e551011.jsonl"
    path.parent.mkdir(parents=True)
    head = {"sessionId": SESSION, "projectHash": "x", "startTime": AT.format(0), "lastUpdated": AT.format(0)}
    path.write_bytes(
        as_lines(head, gemini_line(1, "user", f"Look at the gauge. {RULE}"), gemini_line(2, "gemini", FACT))
    )
    return path


def test_gemini_cli_is_given_it_with_the_prompt_after_a_compaction_once(client: ClientFolder):
    path = chat(client)
    at = {"transcript_path": str(path)}
    assert ask(client, "gemini-cli", "BeforeAgent", prompt="go on", **at).out == ""
    assert ask(client, "gemini-cli", "AfterAgent", prompt="go on", **at).out == ""
    snapshot = f"<state_snapshot>{SUMMARY}</state_snapshot>"
    with path.open("ab") as stream:
        stream.write(as_lines(history(snapshot, "Got it."), gemini_line(9, "user", "Go on.")))
    # The end of the turn must not hide it from the next prompt.
    assert ask(client, "gemini-cli", "AfterAgent", prompt="go on", **at).out == ""
    said = ask(client, "gemini-cli", "BeforeAgent", prompt="go on", **at)
    assert json.loads(said.out)["hookSpecificOutput"]["hookEventName"] == "BeforeAgent"
    assert RULE in said.context
    assert FACT in said.context
    with path.open("ab") as stream:
        # A resumed session writes its history again.
        stream.write(as_lines(history(snapshot, "Got it.", "Go on.")))
    assert ask(client, "gemini-cli", "BeforeAgent", prompt="go on", **at).out == ""
    assert client.rows("SELECT cwd FROM session") == [(str(client.project),)]
    assert client.notes() == []


def test_the_folder_is_noted_also_where_somebody_else_was_faster_with_everything(client: ClientFolder):
    at = {"transcript_path": str(chat(client))}
    ask(client, "gemini-cli", "AfterAgent", **at, cwd="")
    assert client.rows("SELECT cwd, message_count FROM session") == [("", 2)]
    ask(client, "gemini-cli", "SessionEnd", **at)
    assert client.rows("SELECT cwd, message_count FROM session") == [(str(client.project), 2)]
    ask(client, "gemini-cli", "SessionEnd", **at, cwd="/elsewhere")
    assert client.rows("SELECT cwd FROM session") == [(str(client.project),)]


@pytest.mark.parametrize("torn", [b'{"$set": {"messages": [{"type": "user", "content": "<state_snapshot>a', b""])
def test_a_line_that_is_still_being_written_is_looked_at_again(tmp_path: Path, torn: bytes):
    conn = operations.connect(tmp_path / "a.db")
    path, given = tmp_path / "chat.jsonl", Given({"session_id": "s"}, "BeforeAgent", "gemini-cli")
    path.write_bytes(as_lines({"sessionId": "s"}) + torn)
    found = snapshots.newest(conn, given, str(path), "local")
    assert (found.text, found.end) == ("", len(as_lines({"sessionId": "s"})) - 1)
    path.write_bytes(as_lines({"sessionId": "s"}, history("<state_snapshot>a</state_snapshot>")))
    assert snapshots.newest(conn, given, str(path), "local").text == "<state_snapshot>a</state_snapshot>"
    conn.close()


@pytest.mark.parametrize(
    "line", ['{"$set": "<state_snapshot>"}', '{"$set": {"messages": [1, {"type": "user", "content": 7}]}, "a": "<state_snapshot>"}',
             '{"id": "a", "type": "user", "content": "say <state_snapshot> in a $set"}', '{"$set": <state_snapshot>'],
)  # fmt: skip
def test_what_only_looks_like_a_compaction_is_none(tmp_path: Path, line: str):
    conn = operations.connect(tmp_path / "a.db")
    (tmp_path / "chat.jsonl").write_text(line + "\n")
    given = Given({"session_id": "s"}, "BeforeAgent", "gemini-cli")
    assert snapshots.newest(conn, given, str(tmp_path / "chat.jsonl"), "local").text == ""
    conn.close()


# ---------------------------------------------------------------- opencode, pi


def exported(client: ClientFolder, *, is_compacted: bool) -> dict[str, Any]:
    def message(number: int, role: str, text: str, **more: object) -> dict[str, object]:
        info = {"id": f"msg_{number}", "sessionID": SESSION, "role": role, "time": {"created": number}, **more}
        return {"info": info, "parts": [{"id": f"prt_{number}", "type": "text", "text": text}]}

    messages = [message(1, "user", f"Look at the gauge. {RULE}"), message(2, "assistant", FACT, finish="stop")]
    if is_compacted:
        asks = message(3, "user", "")
        asks["parts"] = [{"id": "prt_3", "type": "compaction", "auto": True}]
        messages += [asks, message(4, "assistant", SUMMARY, summary=True, finish="stop", parentID="msg_3")]
    return {"info": {"id": SESSION, "directory": str(client.project), "title": "t"}, "messages": messages}


def test_opencode_hands_its_session_over_and_is_given_the_same_again(client: ClientFolder):
    before, after = exported(client, is_compacted=False), exported(client, is_compacted=True)
    none = {"transcript_path": ""}
    lines = ask(client, "opencode", "PreCompact", trigger="auto", document=before, **none).out
    assert f"- {RULE}" in lines
    assert ask(client, "opencode", "PostCompact", compact_summary=SUMMARY, document=after, **none).out == ""
    first = ask(client, "opencode", "SessionStart", source="compact", **none)
    assert RULE in first.context
    assert FACT in first.context
    # The plugin of another process asks anew.
    assert ask(client, "opencode", "SessionStart", source="compact", **none).out == first.out
    assert client.rows("SELECT compactions FROM session") == [(1,)]
    assert len(client.stored()) == len(set(client.stored()))


def test_an_opencode_session_that_is_large_is_picked_up(client: ClientFolder):
    large = exported(client, is_compacted=False)
    large["messages"][1]["parts"][0]["text"] = FACT + "x" * MOST_BYTES
    ask(client, "opencode", "Stop", transcript_path="", document=large)
    assert client.notes() == []
    assert client.rows("SELECT message_count FROM session") == [(2,)]


def test_an_opencode_session_that_is_too_large_is_told_to_the_person_and_how_to_keep_it(client: ClientFolder):
    ask(client, "opencode", "Stop", transcript_path="", document=False)
    [note] = client.notes()
    assert (note["code"], note["off"]) == ("session_too_large", True)
    assert "opencode export" in str(note["text"])
    with pytest.raises(CallerError, match="larger than 256 MB"):
        given(b" " * (MOST_DOCUMENT_BYTES + 1), "Stop", "opencode")
    with pytest.raises(CallerError, match="larger than 32 MB"):
        given(b" " * (MOST_BYTES + 1), "Stop", "codex")


def test_only_opencode_may_hand_a_session_over(client: ClientFolder):
    ask(client, "codex", "Stop", transcript_path="", document=exported(client, is_compacted=False))
    assert client.stored() == []


def test_pi_is_told_of_the_one_tool_that_it_has(client: ClientFolder):
    client.write(client.talk(3))
    ask(client, "pi", "PreCompact", trigger="auto")
    ask(client, "pi", "PostCompact", compact_summary=SUMMARY)
    text = ask(client, "pi", "SessionStart", source="compact").context
    assert "What the summary left out" in text
    assert 'search_messages(query="words")' in text
    assert "get_original" not in text


# ---------------------------------------------------------------- the command line, what is made once


@pytest.mark.parametrize(
    ("words", "found"),
    [([], ("", "claude-code")), (["stop"], ("stop", "claude-code")), (["--client", "pi"], ("", "pi")),
     (["--client=codex", "pre-compact"], ("pre-compact", "codex")), (["stop", "--client", "codex", "x"], ("stop", "codex"))],
)  # fmt: skip
def test_words_name_event_and_client(words: list[str], found: tuple[str, str]):
    assert words_given(words) == found


@pytest.mark.parametrize("words", [["--client"], ["--client", "cursor"], ["--client="]])
def test_a_client_without_hooks_is_refused(words: list[str]):
    with pytest.raises(CallerError, match="No client with hooks"):
        words_given(words)


def test_a_compaction_that_is_announced_again_makes_nothing_again_until_something_is_new(client: ClientFolder):
    records = client.talk(6)
    client.write(records[:12])
    first = client.hook("PreCompact", trigger="auto").out
    marked = "UPDATE hook_state SET injection = 'as it was'"
    conn = hook_rows.open_known(str(client.archive))
    assert conn is not None
    conn.execute(marked)
    assert client.hook("PreCompact", trigger="auto").out == first
    assert client.rows("SELECT injection FROM hook_state") == [("as it was",)]
    client.write(records[12:], more=True)
    client.hook("PreCompact", trigger="auto")
    assert client.rows("SELECT injection FROM hook_state") != [("as it was",)]
    conn.close()


def test_the_records_that_can_hold_a_rule_are_read_and_no_others(client: ClientFolder):
    client.write(client.talk(6))
    client.hook("Stop")
    conn = operations.connect(client.archive)
    key = SessionKey("local", SESSION)
    everything = operations.records(conn, key, after_seq=0, up_to_seq=1000, live_only=False)
    spoken = operations.spoken(conn, key, up_to_seq=1000)
    conn.close()
    assert 0 < len(spoken) < len(everything)
    assert [record.uuid for record in spoken] == [record.uuid for record in everything if holds_words(record)]


def holds_words(record: Record) -> bool:
    return record.message is not None and record.message.role == "user" and bool(record.text)
