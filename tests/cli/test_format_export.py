from __future__ import annotations

import json
import stat

import pytest

from mcp_compact.cli.parser import WRITTEN
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused
from tests.transcripts.exporting import dialogue
from tests.transcripts.foreign import pairs, spoken

SESSION = "5e551011"
SECRET = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def imported(command, transcript):
    """The archive's session, and the transcript that it came from."""
    assert command("import", str(transcript)).code == 0
    return dialogue(transcript.read_bytes())


@pytest.mark.parametrize("name", WRITTEN)
def test_a_session_goes_out_in_every_format_and_reads_back_the_same(command, imported, tmp_path, name):
    out = tmp_path / "out.json"
    done = command("export", SESSION, "--format", name, "-o", str(out))
    assert (done.code, done.err) == (0, "")
    assert f"the live context as {name}" in done.out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    again = dialogue(out.read_bytes())
    assert spoken(again) == spoken(imported)
    assert pairs(again) == pairs(imported)
    if OUTS[name].provider:
        assert refused(findings(OUTS[name].provider, json.loads(out.read_text()))) == []
    else:
        # A session file of a client holds one entry a line.
        assert all(isinstance(json.loads(line), dict) for line in out.read_text().splitlines())


def test_messages_go_to_stdout_and_what_was_done_to_stderr(program, transcript):
    program("import", str(transcript))
    done = program("export", SESSION)
    assert done.code == 0
    assert json.loads(done.out)[0]["role"] == "user"
    assert "the live context as anthropic" in done.err


def test_all_gives_what_a_compaction_took_out(command, imported, tmp_path):
    whole = [tmp_path / "before.json", tmp_path / "after.json"]
    command("export", SESSION, "--all", "-o", str(whole[0]))
    assert command("export", SESSION, "--all", "--json", "-o", str(whole[1])).json["is_whole"] is True
    assert whole[0].read_bytes() == whole[1].read_bytes()
    assert len(json.loads(whole[0].read_text())) == len(imported)


def test_keys_are_masked_and_a_system_prompt_goes_into_the_request(command, tmp_path):
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": f"Use {SECRET} please."},
        {"role": "assistant", "content": "Done."},
    ]
    source = tmp_path / "chat.json"
    source.write_text(
        json.dumps([*messages, {"role": "user", "content": "x", "name": "me"}, {"role": "developer", "content": "y"}])
    )
    assert command("import", str(source), "--session", "chat", "--format", "openai").code == 0
    told = command("export", "chat")
    assert SECRET not in told.out
    assert "masked in 1 text" in told.err
    assert "--request writes both" in told.err
    assert [message["role"] for message in json.loads(told.out)] == ["user", "assistant", "user"]
    request = json.loads(command("export", "chat", "--request").out)
    assert (request["system"], len(request["messages"])) == ("Be kind.", 3)
    gemini = json.loads(command("export", "chat", "--request", "--format", "gemini").out)
    assert gemini["systemInstruction"] == {"parts": [{"text": "Be kind."}]}
    chat = json.loads(command("export", "chat", "--format", "openai").out)
    assert chat[0] == messages[0]
    assert chat[-1] == {"role": "developer", "content": "y"}
    items = json.loads(command("export", "chat", "--request", "--format", "responses").out)["input"]
    assert items[0]["content"][0]["text"] == "Be kind." if isinstance(items[0]["content"], list) else "Be kind."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nobody"], "no session 'nobody'"),
        ([SESSION, "--json"], "--json tells of the file"),
        ([SESSION, "--format", "codex", "--request"], "no request"),
        ([SESSION, "--raw", "--request"], "Leave out --raw"),
        ([SESSION, "--format", "yaml"], "invalid choice"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_what_to_do(command, imported, words, told):
    done = command("export", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
