"""Codex, Gemini CLI and opencode, each as far as its own interface goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import program_of
from tests.e2e.endpoint import Model, Rule, last_input_text, last_user_text, tool_names
from tests.e2e.others import Box

FACT = "calibration offset of gauge GX-4471-B is 0.8317"


def box(client: str, model: Model, base: Path) -> Box:
    """A client in a fresh home."""
    made = Box(program_of(client), base, model)
    made.home.mkdir()
    made.project.mkdir()
    return made


@pytest.fixture
def codex(model: Model, tmp_path: Path) -> Box:
    """Codex with our server and the scripted model as its provider."""
    made = box("codex", model, tmp_path)
    made.ours("install", "codex")
    config = made.home / ".codex" / "config.toml"
    provider = (
        'model = "scripted"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{model.url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n\n'
    )
    config.write_text(provider + config.read_text(encoding="utf-8"), encoding="utf-8")
    made.env["SCRIPTED_KEY"] = "none"
    return made


def test_codex_connects_calls_a_tool_and_its_session_is_picked_up(codex):
    exec_words = ("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox")
    codex.model.script(Rule("gauge", text=f"Noted: the {FACT}."))
    assert codex.run(*exec_words, "Remember the gauge.").returncode == 0
    codex.ours("watch", "codex", "--once")
    # The client does not wait for servers before its first request: commands give ours the time that it takes.
    pause = {"cmd": "sleep 12", "yield_time_ms": 20_000}
    codex.model.script(
        Rule("where", tool="exec_command", input=pause, times=1),
        Rule("Process exited", tool="search_messages", input={"query": "GX-4471-B"}, times=1),
        Rule("Process exited", tool="exec_command", input=pause, times=8),
    )
    before = len(codex.model.requests)
    done = codex.run(*exec_words, "Say where it was.")
    calls = [json.loads(line).get("item", {}) for line in done.stdout.splitlines() if line.startswith("{")]
    assert any(item.get("type") == "mcp_tool_call" and item.get("tool") == "search_messages" for item in calls)
    last = codex.model.requests[before:][-1]
    assert "mcp__mcp_compact.search_messages" in tool_names(last)
    assert "0.8317" in last_input_text(last)


def test_opencode_connects_the_answer_of_our_tool_reaches_its_model_and_its_session_is_picked_up(model, tmp_path):
    opencode = box("opencode", model, tmp_path)
    opencode.ours("install", "opencode")
    # It would fetch a package for the plugin's types, and wait.
    (opencode.home / ".npmrc").write_text("fetch-retries=0\nregistry=http://127.0.0.1:9/\n")
    config = opencode.home / ".config/opencode/opencode.json"
    data = json.loads(config.read_text(encoding="utf-8"))
    data["provider"] = {"anthropic": {"options": {"baseURL": f"{model.url}/v1", "apiKey": "none"}}}
    data["model"] = "anthropic/claude-sonnet-4-5"
    config.write_text(json.dumps(data), encoding="utf-8")
    opencode.env |= {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "npm_config_fetch_retries": "0",
    }
    assert "mcp-compact" in (listed := opencode.run("mcp", "list").stdout)
    assert "connected" in listed
    model.script(Rule("how full", tool="get_context_status", times=1))
    before = len(model.requests)
    assert opencode.run("run", "Say how full it is.").returncode == 0
    bodies = [body for body in model.requests[before:] if "mcp-compact_get_context_status" in tool_names(body)]
    # The session is new: the archive does not know it before the end of its first turn.
    assert "session" in last_user_text(bodies[-1])
    (kept,) = json.loads(opencode.ours("sessions", "--json").stdout)["sessions"]
    assert kept["session_id"].startswith("ses_")
    assert kept["messages"] >= 3


def test_gemini_cli_connects_within_its_limit(model, tmp_path):
    gemini = box("gemini", model, tmp_path)
    gemini.ours("install", "gemini-cli")
    trusted = gemini.home / ".gemini" / "trustedFolders.json"
    trusted.write_text(json.dumps({str(gemini.project): "TRUST_FOLDER"}), encoding="utf-8")
    listed = gemini.run("mcp", "list")
    (line,) = [line for line in (listed.stdout + listed.stderr).splitlines() if "serve --profile agent" in line]
    assert line.rstrip().endswith("Connected")
