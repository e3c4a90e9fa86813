"""`mcp-compact manifest`: prints a client's entry, or merges it into the client's own file."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_compact.cli.install_check import server_check
from mcp_compact.cli.install_program import Program
from mcp_compact.cli.manifest import merge
from mcp_compact.cli.manifest_clients import CLIENTS, Client, client_keys, client_named
from mcp_compact.cli.manifest_server import server
from tests.manifests.conftest import read_yaml

READ: Mapping[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads, "yaml": read_yaml}


def at(document: Any, client: Client) -> Any:
    for key in client.keys:
        document = document[key]
    return document


@pytest.mark.parametrize("client", CLIENTS, ids=client_keys())
def test_what_is_printed_is_a_whole_file_of_the_client_and_nothing_is_written(client, manifest, home):
    done = manifest(client.key)
    assert done.code == 0
    own = at(READ[client.kind](done.out), client)
    assert own == manifest(client.key, "--json").json["entry"]
    assert [path for path in home.rglob("*") if path.is_file()] == []
    assert str(client.place(project=False)) in done.err


@pytest.mark.parametrize("client", CLIENTS, ids=client_keys())
def test_it_is_written_where_the_client_looks_and_twice_is_once(client, manifest):
    done = manifest(client.key, "--write", "--json")
    assert (done.code, done.json["changed"], done.json["backup"]) == (0, True, None)
    path = Path(done.json["file"])
    assert path == client.place(project=False)
    first = path.read_bytes()
    assert at(READ[client.kind](first.decode()), client) == done.json["entry"]
    again = manifest(client.key, "--write", "--json")
    assert (again.code, again.json["changed"]) == (0, False)
    assert path.read_bytes() == first


@pytest.mark.parametrize("client", [c for c in CLIENTS if c.project], ids=[c.key for c in CLIENTS if c.project])
def test_a_folders_own_file_is_written_on_request(client, manifest, home):
    done = manifest(client.key, "--write", "--project", "--json")
    assert Path(done.json["file"]) == home / "project" / client.project
    assert (home / "project" / client.project).is_file()


def test_a_client_without_such_a_file_is_named(manifest):
    done = manifest("windsurf", "--project")
    assert done.code == 2
    assert "Windsurf has no file for one folder" in done.err


@pytest.mark.process
def test_what_is_written_starts_the_server(manifest):
    client = client_named("codex")
    manifest("codex", "--write")
    own = at(tomllib.loads(client.place(project=False).read_text(encoding="utf-8")), client)
    check = server_check([own["command"], *own["args"]], own.get("env", {}))
    assert check.ok, check.text


# ---------------------------------------------------------------- what is there already


COMMENTED = """\
{
  // mine
  "theme": "dark", /* and so on */
  "mcpServers": {
    "other": {"command": "other", "args": ["-x",],},
  },
}
"""


def test_comments_and_other_servers_of_a_json_file_stay_byte_for_byte_and_it_is_backed_up(manifest, home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    path.chmod(0o600)
    done = manifest("cursor", "--write", "--json")
    assert Path(done.json["backup"]).read_text() == COMMENTED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    for line in COMMENTED.splitlines():
        assert line in text
    assert '"mcp-compact"' in text
    assert manifest("cursor", "--write", "--json").json["changed"] is False
    assert path.read_text() == text


def test_what_a_person_added_to_our_entry_stays(manifest, home):
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    own = {"command": "old", "args": ["serve"], "env": {"MCP_COMPACT_AT": "60%"}, "trust": True, "timeout": 5}
    path.write_text(json.dumps({"mcpServers": {"mcp-compact": own}}))
    done = manifest("gemini-cli", "--write", "--json")
    made = json.loads(path.read_text())["mcpServers"]["mcp-compact"]
    assert made["trust"] is True
    assert made["env"]["MCP_COMPACT_AT"] == "60%"
    assert (made["command"], made["timeout"]) == (done.json["entry"]["command"], 300_000)
    # And what is added later, too.
    made["includeTools"] = ["search_messages"]
    path.write_text(json.dumps({"mcpServers": {"mcp-compact": made}}))
    manifest("gemini-cli", "--write")
    assert json.loads(path.read_text())["mcpServers"]["mcp-compact"] == made


def test_an_entry_that_somebody_put_there_just_so_is_left_alone(manifest, home):
    for key in ("windsurf", "codex"):
        client = client_named(key)
        path = client.place(project=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(manifest(key).out)
        assert manifest(key, "--write", "--json").json["changed"] is False


def test_an_entry_changes_between_a_program_and_an_address_without_leftovers(manifest, home):
    path = home / ".cursor" / "mcp.json"
    manifest("cursor", "--write")
    local = path.read_text()
    manifest("cursor", "--write", "--http", "http://127.0.0.1:8765/mcp", "--token-env", "COMPACT_TOKEN")
    assert json.loads(path.read_text())["mcpServers"]["mcp-compact"] == {
        "url": "http://127.0.0.1:8765/mcp",
        "headers": {"Authorization": "Bearer ${env:COMPACT_TOKEN}"},
    }
    manifest("cursor", "--write")
    assert json.loads(path.read_text()) == json.loads(local)


@pytest.mark.parametrize(
    ("key", "name", "text"),
    [
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"a": }'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": []}'),
        ("cursor", ".cursor/mcp.json", "[1]"),
        ("cursor", ".cursor/mcp.json", "{} {}"),
        ("codex", ".codex/config.toml", 'a = "'),
        ("codex", ".codex/config.toml", '[mcp_servers.mcp-compact]\ncommand = "mine"\n'),
        ("codex", ".codex/config.toml", 'mcp_servers = {a = {command = "b"}}\n'),
        ("goose", ".config/goose/config.yaml", "extensions: {}\n"),
        ("goose", ".config/goose/config.yaml", "{extensions: {}}\n"),
        ("goose", ".config/goose/config.yaml", "extensions:\n  - a\n"),
        ("goose", ".config/goose/config.yaml", "extensions:\n  a:\n    b: 1\n---\nextensions:\n"),
        ("goose", ".config/goose/config.yaml", "extensions:\n  a:\n    b: 1\nextensions:\n  c:\n    b: 1\n"),
        ("goose", ".config/goose/config.yaml", 'extensions:\n  "mcp-compact":\n    cmd: mine\n'),
    ],
)
def test_a_file_that_cannot_be_merged_into_is_left_alone_and_says_what_to_paste(key, name, text, manifest, home):
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    done = manifest(key, "--write")
    assert done.code == 2
    assert path.read_text() == text
    assert done.out == manifest(key).out
    assert name in done.err
    assert "by hand" in done.err


def test_bytes_that_are_no_text_are_refused(manifest, home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(b'{"a": "\xff"}')
    assert manifest("cursor", "--write").code == 2
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_a_settings_file_of_another_name_is_used_where_it_is_there(manifest, home):
    path = home / ".config" / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{ // mine\n}\n")
    assert manifest("opencode", "--write", "--json").json["file"] == str(path)
    assert "// mine" in path.read_text()


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for administrators only")
def test_a_linked_file_stays_a_link(manifest, home):
    real = home / "dotfiles.json"
    real.write_text("{}")
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert manifest("cursor", "--write").code == 0
    assert link.is_symlink()
    assert "mcp-compact" in real.read_text()


GOOSE = """\
# mine
GOOSE_PROVIDER: anthropic

extensions:   # what it may use
    developer:
        enabled: true   # always
        prompt: |
          mcp-compact: not a key
    memory:
        enabled: false
GOOSE_MODEL: x
"""


@pytest.mark.parametrize("text", [GOOSE, GOOSE.removesuffix("\n"), "GOOSE_MODEL: x", "# nothing\n", "extensions:\n"])
def test_every_line_of_a_yaml_file_stays_and_twice_is_once(text, manifest, home):
    path = home / ".config" / "goose" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    done = manifest("goose", "--write", "--json")
    assert done.code == 0, done.err
    made = path.read_text()
    rest = iter(made.splitlines())
    assert all(line in rest for line in text.splitlines()), "the old lines are there in their order"
    own = made[made.index("mcp-compact:\n") :]
    assert '"stdio"' in own
    assert manifest("goose", "--write", "--json").json["changed"] is False
    assert path.read_text() == made


def test_a_yaml_entry_is_as_deep_as_its_neighbours(manifest, home):
    path = home / ".config" / "goose" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("extensions:\n    developer:\n        enabled: true\n")
    manifest("goose", "--write")
    found = read_yaml(path.read_text())
    assert list(found["extensions"]) == ["mcp-compact", "developer"]
    assert found["extensions"]["developer"] == {"enabled": True}


def test_tables_and_comments_of_a_toml_file_stay(manifest, home):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    text = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "other" # so\n'
    path.write_text(text)
    manifest("codex", "--write")
    made = path.read_text()
    assert made.startswith(text)
    assert set(tomllib.loads(made)["mcp_servers"]) == {"other", "mcp-compact"}
    manifest("codex", "--write", "--http", "http://127.0.0.1:8765/mcp")
    assert tomllib.loads(path.read_text())["mcp_servers"]["mcp-compact"]["url"] == "http://127.0.0.1:8765/mcp"
    assert path.read_text().startswith(text)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.dictionaries(NAMES, VALUES, max_size=4), servers=st.dictionaries(NAMES, VALUES, max_size=3))
def test_whatever_else_a_json_file_says_it_still_says(before, servers, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("any")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    document = before | {"mcpServers": servers}
    path = folder / "mcp.json"
    path.write_text(json.dumps(document, indent=len(before)), encoding="utf-8")
    client = client_named("cursor")
    merge(client, client.entry(server()), path)
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made.pop("mcpServers") == servers | {"mcp-compact": {"command": "mcp-compact", "args": ["serve"]}}
    assert made == {key: value for key, value in document.items() if key != "mcpServers"}


# ---------------------------------------------------------------- servers on a network


@pytest.mark.parametrize("key", [key for key in client_keys() if key != "claude-desktop"])
def test_a_server_on_a_network_is_named_by_its_address_and_started_by_nobody(key, manifest):
    done = manifest(key, "--http", "https://compact.example/mcp")
    assert done.code == 0, done.err
    assert "https://compact.example/mcp" in done.out
    assert '"serve"' not in done.out
    assert "uthorization" not in done.out


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("claude-code", "Bearer ${COMPACT_TOKEN}"),
        ("vscode", "Bearer ${env:COMPACT_TOKEN}"),
        ("cursor", "Bearer ${env:COMPACT_TOKEN}"),
        ("codex", 'bearer_token_env_var = "COMPACT_TOKEN"'),
        ("gemini-cli", "Bearer ${COMPACT_TOKEN}"),
        ("opencode", "Bearer {env:COMPACT_TOKEN}"),
        ("windsurf", "Bearer ${env:COMPACT_TOKEN}"),
    ],
)
def test_a_token_stays_in_its_variable(key, said, manifest):
    assert said in manifest(key, "--http", "https://compact.example/mcp", "--token-env", "COMPACT_TOKEN").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("claude-desktop", "--http", "https://compact.example/mcp"), "Connectors"),
        (("zed", "--http", "https://compact.example/mcp", "--token-env", "T"), "by hand"),
        (("cursor", "--token-env", "T"), "belongs to --http"),
        (("cursor", "--http", "https://compact.example/mcp", "--token-env", "mcpc_secret"), "never the token itself"),
        (("cursor", "--http", "compact.example"), "no address"),
        (("cursor", "--http", "file:///etc/passwd"), "no address"),
        (("cursor", "--http", "https://me:secret@compact.example/mcp"), "no address"),
        (("cursor", "--http", "http://[::1"), "no address"),
        (("cursor", "--http", "https://a.example/\n"), "no address"),
    ],
)
def test_what_cannot_be_said_is_refused_with_what_to_do(words, said, manifest, home):
    done = manifest(*words, "--write")
    assert done.code == 2
    assert said in done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_password_in_an_address_is_not_repeated(manifest):
    assert "secret" not in manifest("cursor", "--http", "https://me:secret@compact.example/mcp").err


def test_a_profile_can_be_chosen(manifest):
    args = manifest("cursor", "--profile", "full", "--json").json["entry"]["args"]
    assert args[-3:] == ["serve", "--profile", "full"]
    assert manifest("claude-code", "--json").json["entry"]["args"][-2:] == ["--profile", "agent"]
    assert "--profile" not in manifest("claude-code", "--profile", "core", "--json").json["entry"]["args"]


@pytest.mark.parametrize("client", CLIENTS, ids=client_keys())
def test_every_form_says_the_same_words_and_environment(client):
    described = server(program=Program(("/opt/a b/mcp-compact",), (), {"NAME": "a value"}))
    own = client.entry(described)
    command = own.get("command", own.get("cmd"))
    assert (command if isinstance(command, list) else [command, *own["args"]]) == ["/opt/a b/mcp-compact", "serve"]
    assert own.get("env", own.get("envs", own.get("environment"))) == {"NAME": "a value"}
