"""Codex, Gemini CLI, opencode and pi around their own compactions, with our hooks or plugin as `install` puts them.

The scripted summary holds neither the rule nor the fact: both must be in the first request that our text can reach,
and the archive must hold what the compaction took out.
"""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest

from tests.e2e.claude import SECONDS
from tests.e2e.conftest import program_of
from tests.e2e.endpoint import Json, Model, Rule, contents_text, text_of, whole_text
from tests.e2e.others import Box

RULE, FACT = "Never touch the folder vendor/.", "The valve pressure is 47.3 bar."
ASKED = f"Look at the gauge, please. {RULE}"
SUMMARY = "SUMMARY of what was done"
FILLER = "filler line of text\n" * 400
OURS = "mcp-compact: what was said before this compaction"


@pytest.fixture
def box(tmp_path: Path, model: Model, request: pytest.FixtureRequest) -> Box:
    """The client that the test names, in a fresh home, with a file that holds the fact."""
    made = Box(program_of(request.param), tmp_path, model)
    made.home.mkdir()
    made.project.mkdir()
    (made.project / "a.txt").write_text(f"hello gauge. {FACT}\n{FILLER}", encoding="utf-8")
    model.requests.clear()
    return made


def check_archive(box: Box) -> None:
    """What left is found, and no hook had anything to note."""
    assert "47.3" in box.ours("search", "--all", "valve pressure").stdout
    assert not (box.database.parent / "hook-notes.jsonl").exists()


def given_back(texts: list[str]) -> str:
    """The first text of a request that holds ours, with rule and fact."""
    found = next(text for text in texts if OURS in text)
    own = found[found.index(OURS) :]
    assert RULE in own
    assert FACT in own
    assert "search_messages(query=" in own
    return found


def as_text(body: Json) -> str:
    """A Responses request as one text."""
    return "\n".join(text_of(item.get("content")) for item in body["input"])


@pytest.mark.parametrize("box", ["codex"], indirect=True)
def test_codex_gets_back_in_the_same_turn_what_its_summary_left_out(box):
    box.ours("install", "codex")
    config = box.home / ".codex" / "config.toml"
    provider = (
        'model = "scripted"\nmodel_provider = "scripted"\nmodel_auto_compact_token_limit = 50000\n\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{box.model.url}/v1"\nwire_api = "responses"\n'
        'env_key = "SCRIPTED_KEY"\n\n'
    )
    config.write_text(provider + config.read_text(encoding="utf-8"), encoding="utf-8")
    box.env["SCRIPTED_KEY"] = "none"
    box.model.script(
        Rule("CHECKPOINT COMPACTION", text=SUMMARY),
        Rule("gauge, please", tool="exec_command", input={"cmd": "head -1 a.txt"}, times=1, input_tokens=60_000),
    )
    # A person looks at new hooks and trusts them; here the flag for automation stands for that.
    words = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust")
    done = box.run("exec", *words, ASKED)
    assert done.returncode == 0, done.stderr
    after = as_text(box.model.requests[-1])
    assert SUMMARY in after
    assert "What the summary left out" in given_back([after])
    check_archive(box)
    # Without that trust Codex starts none of them.
    box.ours("uninstall", "codex")
    assert not (box.home / ".codex" / "hooks.json").exists()


@pytest.mark.parametrize("box", ["gemini"], indirect=True)
def test_gemini_cli_gets_back_with_the_next_prompt_what_its_summary_left_out(box):
    settings = box.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    theirs = json.dumps(
        {"model": {"compressionThreshold": 0.005}, "security": {"auth": {"selectedType": "gemini-api-key"}}}, indent=2
    )
    settings.write_text(theirs, encoding="utf-8")
    (settings.parent / "trustedFolders.json").write_text(json.dumps({str(box.project): "TRUST_FOLDER"}))
    box.ours("install", "gemini-cli")
    (box.project / "b.txt").write_text(f"another one\n{FILLER}", encoding="utf-8")
    box.env |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": box.model.url}
    box.model.script(
        Rule("state_snapshot", text=f"<state_snapshot>{SUMMARY}</state_snapshot>"),
        Rule("gauge, please", tool="read_file", input={"file_path": "a.txt"}, times=1),
        Rule("hello gauge", tool="read_file", input={"file_path": "b.txt"}, times=1),
    )
    for number, words in enumerate((ASKED, "Go on.", "And now?")):
        more = ("--resume", "latest") if number else ()
        done = box.run("-p", words, "--output-format", "json", "-m", "gemini-2.5-pro", *more)
        assert done.returncode == 0, done.stderr
    compacted, after = (contents_text(body["contents"]) for body in box.model.requests[-2:])
    assert SUMMARY in compacted
    assert FACT not in compacted
    assert "And now?" in given_back([after])
    check_archive(box)
    # What we put into its prompt is not taken for the person's words.
    assert box.ours("rules", "--json").stdout.count("Never touch") == 1
    box.ours("uninstall", "gemini-cli")
    assert settings.read_text(encoding="utf-8") == theirs


@pytest.mark.parametrize("box", ["opencode"], indirect=True)
def test_opencode_is_told_what_must_stay_and_gets_back_what_its_summary_left_out(box):
    box.ours("install", "opencode")
    # It would fetch a package for the plugin's types, and wait.
    (box.home / ".npmrc").write_text("fetch-retries=0\nregistry=http://127.0.0.1:9/\n")
    config = box.home / ".config/opencode/opencode.json"
    data = json.loads(config.read_text(encoding="utf-8"))
    limits = {"claude-sonnet-4-5": {"limit": {"context": 60_000, "output": 4_000}}}
    data["provider"] = {
        "anthropic": {"options": {"baseURL": f"{box.model.url}/v1", "apiKey": "none"}, "models": limits}
    }
    data |= {"model": "anthropic/claude-sonnet-4-5", "compaction": {"tail_turns": 0}}
    config.write_text(json.dumps(data), encoding="utf-8")
    box.env |= {
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "npm_config_fetch_retries": "0",
    }  # fmt: skip
    box.model.script(
        Rule("Keep these lines of the user", text=SUMMARY),
        Rule("gauge, please", tool="read", input={"filePath": str(box.project / "a.txt")}, times=1),
        Rule("hello gauge", text="read it", times=1, input_tokens=59_500),
    )
    for number, words in enumerate((ASKED, "Go on.")):
        done = box.run("run", *(["-c"] if number else []), words)
        assert done.returncode == 0, done.stderr
    texts = [whole_text(body) for body in box.model.requests]
    (asked,) = [text for text in texts if "Keep these lines of the user" in text]
    assert f"- {RULE}" in asked[asked.index("Keep these lines of the user") :]
    assert SUMMARY in given_back(texts)
    check_archive(box)


@pytest.mark.parametrize("box", ["pi"], indirect=True)
def test_pi_gets_back_in_its_summary_what_that_left_out_and_searches(box):
    box.ours("install", "pi")
    agent = box.home / ".pi" / "agent"
    models = {"providers": {"anthropic": {"baseUrl": box.model.url, "apiKey": "none"}}}
    (agent / "models.json").write_text(json.dumps(models), encoding="utf-8")
    # So few that the last prompt is kept whole: of a turn that is cut in two pi asks no summary with instructions.
    (agent / "settings.json").write_text(json.dumps({"compaction": {"keepRecentTokens": 5}}), encoding="utf-8")
    box.env |= {"ANTHROPIC_API_KEY": "none", "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}
    box.model.script(
        Rule("Keep these lines of the user", text=SUMMARY),
        Rule("gauge, please", tool="read", input={"path": "a.txt"}, times=1),
        Rule("Search for it", tool="search_messages", input={"query": "valve"}, times=1),
    )
    told = talk_to_pi(
        box, [{"type": "prompt", "message": ASKED}, {"type": "prompt", "message": "Go on with it, and say so."},
              {"type": "compact"}, {"type": "prompt", "message": "Search for it."}],
    )  # fmt: skip
    assert any(RULE in text and "Keep these lines of the user" in text for text in map(whole_text, box.model.requests))
    after = [whole_text(body) for body in box.model.requests[-2:]]
    assert SUMMARY in given_back(after)
    assert "47.3" in after[-1].partition("Search for it.")[2]
    assert "mcp-compact: recording" in told
    check_archive(box)


def talk_to_pi(box: Box, commands: list[Json]) -> str:
    """Say these commands one after the other, each when the one before is done; all that it wrote."""
    words = ["node", str(box.program), "--mode", "rpc", "--model", "anthropic/claude-sonnet-4-5"]
    said: list[str] = []
    with subprocess.Popen(
        words, env=box.environment(), cwd=box.project, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None
        guard = threading.Timer(SECONDS, process.kill)
        guard.start()
        try:
            for command in commands:
                stdin.write(json.dumps(command) + "\n")
                stdin.flush()
                ends = "agent_end" if command["type"] == "prompt" else "compaction_end"
                for line in stdout:
                    said.append(line)
                    if json.loads(line).get("type") == ends:
                        break
            stdin.close()
            said += stdout
        finally:
            guard.cancel()
    return "".join(said)
