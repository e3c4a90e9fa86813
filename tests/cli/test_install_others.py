from __future__ import annotations

import json
import shlex
import tomllib

import pytest

from mcp_compact.cli.install_files import changes_back, changes_for, install, uninstall
from mcp_compact.cli.install_others import OTHERS
from mcp_compact.cli.install_program import Program
from mcp_compact.cli.install_record import record_of
from mcp_compact.errors import CallerError

AWKWARD = Program(
    ("/opt/a 'b\" \\c\x7f$`/mcp-compact",),
    ("/opt/a 'b\" \\g<0>$`/python", "-m", "hook"),
    {"PYTHONPATH": "/opt/it's here"},
)
ELSEWHERE = Program(("/elsewhere/python", "-m", "mcp_compact"), ("/elsewhere/python", "-m", "hook"))
SETTINGS = ("codex", "gemini-cli", "opencode")
"""Clients whose own file gets an entry of ours."""

FILES = {
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}
OURS = {
    "codex": [".codex/hooks.json"],
    "opencode": [".config/opencode/plugins/mcp-compact.js"],
    "pi": [".pi/agent/extensions/mcp-compact.ts"],
}
"""Further files."""
THEIRS = {
    "codex": '# mine\nmodel = "gpt-5"\n\n[mcp_servers.docs]\ncommand = "docs"',
    "gemini-cli": '{\n\t// mine\n\t"mcpServers": {"docs": {"command": "docs"}},\n}\n',
    "opencode": '{"$schema": "https://opencode.ai/config.json"}',
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def put(client, program=AWKWARD):
    folder = OTHERS[client].folder()
    record = record_of(client, folder)
    wanted = OTHERS[client].wanted(folder, program, record)
    changes = changes_for(wanted, record)
    install(changes, wanted, record)
    (what,) = {change.what for change in changes if str(change.path).endswith(tuple(FILES.values()))} or {""}
    return what


def take_back(client):
    record = record_of(client, OTHERS[client].folder())
    uninstall(changes_back(record), record)


def hook_words(client, home):
    """The words that start the hook, at each place that names them."""
    if client in ("opencode", "pi"):
        text = (home / OURS[client][0]).read_text()
        return [json.loads(line.partition("=")[2]) for line in text.splitlines() if line.startswith("const HOOK =")]
    path = home / (OURS[client][0] if client == "codex" else FILES[client])
    lines = [g["hooks"][0]["command"] for groups in json.loads(path.read_text())["hooks"].values() for g in groups]
    return [[word for word in shlex.split(line) if not word.startswith("PYTHONPATH=")] for line in lines]


def words(client, text):
    """The command that the settings name."""
    if client == "codex":
        server = tomllib.loads(text)["mcp_servers"]["mcp-compact"]
        return [server["command"], *server["args"]]
    lines = "\n".join(line for line in text.splitlines() if "//" not in line or "https" in line).replace(
        "},\n}", "}\n}"
    )
    data = json.loads(lines)
    if client == "opencode":
        return data["mcp"]["mcp-compact"]["command"]
    server = data["mcpServers"]["mcp-compact"]
    return [server["command"], *server["args"]]


@pytest.mark.parametrize("client", OTHERS)
def test_every_hook_names_this_program_whatever_its_path(home, client):
    put(client)
    own = hook_words(client, home)
    assert len(own) == {"codex": 6, "gemini-cli": 4}.get(client, 1)
    assert all(words == [*AWKWARD.hook, "--client", client] for words in own)
    assert put(client) in ("same", "")
    take_back(client)
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_hooks_of_their_own_stay_beside_ours(home):
    path = home / ".codex/hooks.json"
    path.parent.mkdir()
    theirs = '{\n  "hooks": {\n    "Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}] // mine\n  }\n}\n'
    path.write_text(theirs)
    put("codex")
    text = path.read_text().replace(" // mine", "")
    first, second = json.loads(text)["hooks"]["Stop"]
    assert first["hooks"][0]["command"] == "theirs"
    assert second["hooks"][0]["timeout"] == 60
    put("codex", ELSEWHERE)
    assert path.read_text().count("/elsewhere/python") == 6
    assert "/opt/a" not in path.read_text()
    path.write_text(path.read_text().replace("theirs", "changed"))
    take_back("codex")
    assert path.read_text() == theirs.replace("theirs", "changed")


def test_hooks_that_are_no_list_are_refused_and_stay(home):
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{"hooks": {"AfterAgent": {}}}')
    with pytest.raises(CallerError, match=r"hooks\.AfterAgent is no JSON list"):
        put("gemini-cli")
    assert path.read_text() == '{"hooks": {"AfterAgent": {}}}'


@pytest.mark.parametrize("client", SETTINGS)
def test_the_entry_names_the_program_and_its_profile_whatever_its_path(home, client):
    assert put(client) == "made"
    assert words(client, (home / FILES[client]).read_text()) == [AWKWARD.words[0], "serve", "--profile", "agent"]
    assert put(client) == "same"
    take_back(client)
    assert not (home / FILES[client]).parent.exists()


@pytest.mark.parametrize("client", SETTINGS)
def test_their_settings_come_back_byte_for_byte(home, client):
    path = home / FILES[client]
    path.parent.mkdir(parents=True)
    path.write_text(THEIRS[client])
    assert put(client) == "changed"
    assert put(client, ELSEWHERE) == "changed"
    assert words(client, path.read_text())[:3] == list(ELSEWHERE.words)
    assert "/opt/" not in path.read_text()
    take_back(client)
    assert path.read_text() == THEIRS[client]


@pytest.mark.parametrize("client", SETTINGS)
def test_settings_that_changed_meanwhile_lose_our_entry_alone(home, client):
    path = home / FILES[client]
    path.parent.mkdir(parents=True)
    path.write_text(THEIRS[client] + "\n")
    put(client)
    path.write_text(path.read_text().replace("docs", "manual"))
    take_back(client)
    assert path.read_text() == THEIRS[client].replace("docs", "manual") + "\n"


def test_an_entry_that_was_made_by_hand_comes_back(home):
    path = home / FILES["gemini-cli"]
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"mcp-compact": {"command": "mine"}}}')
    put("gemini-cli")
    path.write_text(path.read_text().replace("{", '{"theme": "dark", ', 1))
    take_back("gemini-cli")
    assert json.loads(path.read_text()) == {"theme": "dark", "mcpServers": {"mcp-compact": {"command": "mine"}}}


@pytest.mark.parametrize(
    "text", ['[mcp_servers.mcp-compact]\ncommand = "mine"\n', "mcp_servers = {}\n", "not toml", "a = 1\na = 2\n"]
)
def test_codex_settings_that_cannot_take_the_entry_are_refused_and_stay(home, text):
    path = home / FILES["codex"]
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(CallerError, match=r"config\.toml.*Nothing was changed"):
        put("codex")
    assert path.read_text() == text


def test_opencode_settings_with_comments_are_found_by_their_other_name(home):
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{ // mine\n}\n")
    put("opencode")
    assert "mcp-compact" in path.read_text()
    assert not (home / FILES["opencode"]).exists()
    take_back("opencode")
    assert path.read_text() == "{ // mine\n}\n"


def test_folders_are_where_the_clients_are_told_they_are(home, tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert [OTHERS[client].folder() for client in ("codex", "gemini-cli", "opencode")] == [
        tmp_path / "CODEX_HOME", tmp_path / "GEMINI_CLI_HOME/.gemini", tmp_path / "XDG_CONFIG_HOME/opencode",
    ]  # fmt: skip
