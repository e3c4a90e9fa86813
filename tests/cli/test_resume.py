from __future__ import annotations

import json
import stat
from pathlib import Path

import anyio
import pytest

from mcp_compact.cli.resume import write_new
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.deps import session_key
from mcp_compact.service.reading import live_messages
from mcp_compact.wiring import open_service
from tests.cli.conftest import as_lines, records

SESSION = "5e551011-0000-4000-8000-000000000001"


@pytest.fixture
def user_home(tmp_path, monkeypatch):
    """A home directory of its own, in which the clients keep their sessions."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return home


def lines_of(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def live(session_id):
    """The live context of a session, as it is given out."""

    async def work():
        async with open_service(load_settings()) as service:
            return await live_messages(service.deps, session_key("local", session_id))

    return anyio.run(work)


def pinned(text):
    async def work():
        async with open_service(load_settings()) as service:
            await service.pin(SESSION, text)

    anyio.run(work)


def pins(session_id):
    async def work():
        async with open_service(load_settings()) as service:
            return await service.deps.store.registered(session_key("local", session_id))

    return [item.text for item in anyio.run(work)]


def test_a_new_session_holds_the_compacted_context_and_the_old_one_stays(command, user_home, transcript):
    before = transcript.read_bytes()
    done = command("resume", str(transcript), "--target", "8000", "--json")
    assert done.code == 0, done.err
    answer = done.json
    assert answer["status"] == "compacted"
    assert answer["tokens_after"] <= 8000 < answer["tokens_before"]
    path = Path(answer["path"])
    slug = str(transcript.parent.resolve()).replace("/", "-").replace("_", "-")
    assert path == user_home / ".claude" / "projects" / slug / f"{answer['new_session_id']}.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert answer["command"] == f"cd {transcript.parent.resolve()} && claude --resume {answer['new_session_id']}"
    assert transcript.read_bytes() == before
    assert "Never touch the folder vendor/." in json.dumps(live(answer["new_session_id"]))
    assert len(live(SESSION)) == 62


def test_what_the_archive_holds_of_the_new_session_is_what_its_file_says(command, user_home, transcript):
    answer = command("resume", str(transcript), "--target", "8000", "--json").json
    said = [line["message"] for line in lines_of(answer["path"]) if line["type"] in ("user", "assistant")]
    assert [message["content"] for message in said if message["role"] == "assistant"] == [
        message["content"] for message in live(answer["new_session_id"]) if message["role"] == "assistant"
    ]


def test_every_resume_makes_another_session(command, user_home, transcript):
    first, second = (command("resume", str(transcript), "--json").json["new_session_id"] for _ in range(2))
    assert first != second


def test_a_resumed_session_can_be_resumed_again(command, user_home, transcript):
    first = command("resume", str(transcript), "--target", "8000", "--json").json
    again = command("resume", first["new_session_id"][:8], "--target", "5000", "--json").json
    assert again["session_id"] == first["new_session_id"]
    assert again["tokens_after"] <= 5000
    assert "Never touch the folder vendor/." in json.dumps(live(again["new_session_id"]))


def test_pins_go_along(command, user_home, transcript):
    command("import", str(transcript))
    pinned("Answer in Welsh.")
    answer = command("resume", SESSION[:6], "--json").json
    assert answer["pins"] == 1
    assert pins(answer["new_session_id"]) == ["Answer in Welsh."]


def test_rules_of_the_old_session_are_rules_of_the_new_one(command, user_home, transcript):
    items = records(transcript.parent)
    ends = {**items[0], "uuid": "late", "parentUuid": items[-1]["uuid"]}
    late = {**ends, "message": {"role": "user", "content": "Always answer in Welsh."}}
    transcript.write_text(as_lines([*items, late]), encoding="utf-8")
    answer = command("resume", str(transcript), "--target", "6000", "--json").json
    rules = [rule["text"] for rule in command("handoff", answer["new_session_id"], "--json").json["rules"]]
    assert rules == ["Never touch the folder vendor/.", "Always answer in Welsh."]
    said = json.dumps(live(answer["new_session_id"]))
    assert said.count("Please rename the tide gauges everywhere.") <= 1
    again = command("resume", answer["new_session_id"], "--target", "3000", "--json").json
    rules = [rule["text"] for rule in command("handoff", again["new_session_id"], "--json").json["rules"]]
    assert rules == ["Never touch the folder vendor/.", "Always answer in Welsh."]


def test_a_file_that_cannot_be_archived_is_written_and_told_all_the_same(command, user_home, transcript, monkeypatch):
    from mcp_compact.errors import ServerError
    from mcp_compact.service.service import Service

    async def refuse(self, context, new_session_id):
        raise ServerError("store_locked", "The archive is locked.", "Wait.")

    monkeypatch.setattr(Service, "hand_on", refuse)
    done = command("resume", str(transcript), "--target", "8000", "--json")
    assert done.code == 0
    assert Path(done.json["path"]).is_file()
    assert done.json["warnings"][-1] == "the new session is not in the archive yet: The archive is locked."


def test_what_the_client_wrote_since_the_import_is_taken_along(command, user_home, transcript):
    command("import", str(transcript))
    cwd = transcript.parent.resolve()
    own = user_home / ".claude" / "projects" / str(cwd).replace("/", "-").replace("_", "-") / f"{SESSION}.jsonl"
    own.parent.mkdir(parents=True)
    items = records(transcript.parent)
    late = {
        **items[0],
        "uuid": "late",
        "parentUuid": items[-1]["uuid"],
        "message": {"role": "user", "content": "One more thing: mind the moon."},
    }
    own.write_text(as_lines([*items, late]), encoding="utf-8")
    answer = command("resume", SESSION, "--json").json
    assert live(answer["new_session_id"])[-1]["content"] == "One more thing: mind the moon."


def test_a_session_that_the_archive_does_not_know_is_found_in_the_client_s_folder(
    command, user_home, transcript, monkeypatch
):
    cwd = transcript.parent.resolve()
    own = user_home / ".claude" / "projects" / str(cwd).replace("/", "-").replace("_", "-") / f"{SESSION}.jsonl"
    own.parent.mkdir(parents=True)
    own.write_bytes(transcript.read_bytes())
    monkeypatch.chdir(cwd)
    assert command("resume", SESSION[:8], "--json").json["session_id"] == SESSION


def test_broken_pairs_and_huge_images_are_mended(command, user_home, transcript):
    items = records(transcript.parent, rounds=3)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 6_000_000}}
    orphan = {"type": "tool_result", "tool_use_id": "toolu_gone", "content": "left alone"}
    open_call = {"type": "tool_use", "id": "toolu_open", "name": "Bash", "input": {"command": "make"}}
    extra = [("user", [image]), ("user", [orphan]), ("assistant", [open_call])]
    for number, (role, content) in enumerate(extra):
        items.append({
            **items[-1], "type": role, "uuid": f"x{number}", "parentUuid": items[-1]["uuid"],
            "message": {"role": role, "content": content, "id": f"msg_x{number}"},
        })  # fmt: skip
    transcript.write_text(as_lines(items), encoding="utf-8")
    answer = command("resume", str(transcript), "--json").json
    blocks = [
        block for message in live(answer["new_session_id"]) if not isinstance(message["content"], str) for block in message["content"]
    ]  # fmt: skip
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert calls == results
    assert "toolu_open" in results
    assert not [block for block in blocks if block["type"] == "image"]
    assert any("image left out" in warning for warning in answer["warnings"])


def test_a_session_over_its_window_fits_again(command, user_home, transcript):
    items = records(transcript.parent, rounds=420)
    transcript.write_text(as_lines(items), encoding="utf-8")
    answer = command("resume", str(transcript), "--json").json
    assert answer["tokens_before"] > 200_000
    assert answer["tokens_after"] < 60_000
    assert not [warning for warning in answer["warnings"] if "do not fit" in warning]


def test_codex_gets_a_rollout_of_its_own(command, user_home, transcript):
    (user_home / ".codex").mkdir()
    (user_home / ".codex" / "config.toml").write_text('model_provider = "mine"\n')
    answer = command("resume", str(transcript), "--format", "codex", "--target", "8000", "--json").json
    path = Path(answer["path"])
    assert path.is_relative_to(user_home / ".codex" / "sessions")
    assert path.name.endswith(f"-{answer['new_session_id']}.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lines_of(path)[0]["payload"]["model_provider"] == "mine"
    items = [line["payload"] for line in lines_of(path) if line["type"] == "response_item"]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert calls == [item["call_id"] for item in items if item["type"] == "function_call_output"] != []
    assert answer["command"].endswith(f"codex resume {answer['new_session_id']}")


def rollout(cwd, session_id="019f03e0-321f-7eb2-83cc-b54ecd71be23"):
    """A session of Codex: a request, then rounds of reading a file."""

    def line(kind, **payload):
        return {"timestamp": "2026-01-01T10:00:00.000Z", "type": kind, "payload": payload}

    def item(type, **fields):
        return line("response_item", type=type, **fields)

    made = [line("session_meta", id=session_id, cwd=str(cwd), cli_version="0.142.2")]
    asked = [{"type": "input_text", "text": "Rename the gauges. Never touch vendor/."}]
    made.append(item("message", role="user", content=asked))
    for at in range(40):
        call = {
            "name": "exec_command",
            "call_id": f"call_{at}",
            "arguments": json.dumps({"cmd": f"cat src/gauge_{at}.py"}),
        }
        made.append(item("function_call", **call))
        made.append(
            item("function_call_output", call_id=f"call_{at}", output=f"def gauge_{at}(level): return level\n" * 60)
        )
    return made


def test_a_session_of_codex_goes_on_in_codex(command, user_home, tmp_path):
    folder = user_home / ".codex" / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    old = folder / "rollout-2026-01-01T10-00-00-019f03e0-321f-7eb2-83cc-b54ecd71be23.jsonl"
    old.write_text(as_lines(rollout(tmp_path)), encoding="utf-8")
    before = old.read_bytes()
    answer = command("resume", "019f03e0-321f-7eb2-83cc-b54ecd71be23", "--target", "6000", "--json").json
    assert (answer["format"], answer["status"]) == ("codex", "compacted")
    assert answer["tokens_after"] <= 6000
    new = lines_of(answer["path"])
    assert new[0]["payload"]["id"] == answer["new_session_id"]
    assert "Never touch vendor/." in json.dumps(new)
    assert old.read_bytes() == before
    again = command("resume", answer["new_session_id"][:8], "--json").json
    assert (again["session_id"], again["format"]) == (answer["new_session_id"], "codex")


def test_a_session_of_codex_can_go_on_in_claude_code(command, user_home, tmp_path):
    path = tmp_path / "rollout-x.jsonl"
    path.write_text(as_lines(rollout(tmp_path)), encoding="utf-8")
    answer = command("resume", str(path), "--format", "claude-code", "--target", "6000", "--json").json
    lines = [line for line in lines_of(answer["path"]) if "uuid" in line]
    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines[:-1])]
    blocks = [
        block
        for message in live(answer["new_session_id"])
        if not isinstance(message["content"], str)
        for block in message["content"]
    ]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert calls == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] != []


def test_a_file_that_is_there_is_not_touched(tmp_path):
    path = tmp_path / "there.jsonl"
    path.write_text("mine")
    with pytest.raises(CallerError) as raised:
        write_new(path, [{}])
    assert raised.value.code == "file_exists"
    assert path.read_text() == "mine"


def test_a_file_that_could_not_be_written_whole_is_removed(tmp_path):
    path = tmp_path / "half.jsonl"
    with pytest.raises(TypeError):
        write_new(path, [{"a": 1}, {"b": object()}])
    assert not path.exists()


def test_a_folder_that_is_not_here_is_said_and_another_one_can_be_named(command, user_home, transcript, tmp_path):
    transcript.write_text(as_lines(records(tmp_path / "gone")), encoding="utf-8")
    done = command("resume", str(transcript))
    assert done.code == 2
    assert "is not here" in done.err
    assert "--cwd" in done.err
    (tmp_path / "elsewhere").mkdir()
    answer = command("resume", str(transcript), "--cwd", str(tmp_path / "elsewhere"), "--json").json
    assert answer["cwd"] == str((tmp_path / "elsewhere").resolve())


@pytest.mark.parametrize("name", ["nothing-like-it", "missing.jsonl"])
def test_a_session_that_is_nowhere_is_said(command, user_home, transcript, name):
    command("import", str(transcript))
    done = command("resume", name)
    assert done.code == 2
    assert name in done.err


def test_people_are_told_how_to_open_it(command, user_home, transcript):
    done = command("resume", str(transcript), "--target", "8000")
    assert "Open it with:\n  cd " in done.out
    assert "the old session's file is as it was" in done.out
