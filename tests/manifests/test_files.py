"""The files in manifests/: made from one description, and right for those who read them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from mcp_compact import __version__
from mcp_compact.cli.manifest_clients import CLIENTS, Client, client_keys
from mcp_compact.cli.manifest_server import CALL_S, DESCRIPTION, OFFERED, START_S
from mcp_compact.cli.manifest_text import as_toml
from mcp_compact.cli.parser import MANIFESTS, build_parser
from mcp_compact.config import SETTINGS
from tests.manifests.conftest import read_yaml
from tests.server.web import web
from tools import manifests

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "manifests"
READ: Mapping[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads, "yaml": read_yaml}
SETTING_NAMES = {setting.name for setting in SETTINGS}


def document(client: Client) -> Any:
    text = (FOLDER / client.key / client.file).read_text(encoding="utf-8")
    return READ[client.kind](text)


def entry(client: Client) -> dict[str, Any]:
    found = document(client)
    for key in client.keys:
        found = found[key]
    assert isinstance(found, dict)
    return found


def words(found: dict[str, Any]) -> list[str]:
    command = found.get("command", found.get("cmd"))
    return [*command] if isinstance(command, list) else [str(command), *found["args"]]


def test_every_file_is_as_the_description_makes_it():
    assert list(manifests.check(ROOT)) == []


def test_a_file_that_was_changed_is_missing_or_comes_from_nowhere_is_found(tmp_path):
    (tmp_path / "manifests" / "claude-code").mkdir(parents=True)
    (tmp_path / "manifests" / "claude-code" / ".mcp.json").write_text('{"mcpServers": {}}')
    list(manifests.write(tmp_path))
    assert [line.partition(":")[0] for line in manifests.check(tmp_path)] == ["manifests/claude-code/.mcp.json"]
    (tmp_path / "manifests" / "claude-code" / ".mcp.json").write_bytes(
        (FOLDER / "claude-code" / ".mcp.json").read_bytes()
    )
    assert list(manifests.check(tmp_path)) == []
    (tmp_path / "manifests" / "zed" / "settings.json").unlink()
    (tmp_path / "manifests" / "stray.json").write_text("{}")
    with (tmp_path / "manifests" / "cursor" / "mcp.json").open("a") as stream:
        stream.write("\n")
    found = [line.partition(": ")[::2] for line in manifests.check(tmp_path)]
    assert sorted(found) == [
        ("manifests/cursor/mcp.json", "is out of date; run python tools/manifests.py"),
        ("manifests/stray.json", "is made from nothing"),
        ("manifests/zed/settings.json", "is missing; run python tools/manifests.py"),
    ]


def test_the_parser_knows_the_clients_that_there_are():
    assert client_keys() == MANIFESTS


@pytest.mark.parametrize("client", CLIENTS, ids=client_keys())
def test_a_clients_file_starts_a_command_line_that_there_is(client):
    program, *rest = words(entry(client))
    assert program == "mcp-compact"
    given = build_parser().parse_args(rest)
    assert (given.command, given.transport, given.profile) == ("serve", "stdio", client.profile)


@pytest.mark.parametrize("client", CLIENTS, ids=client_keys())
def test_no_file_names_a_path_of_one_machine(client):
    text = (FOLDER / client.key / client.file).read_text(encoding="utf-8")
    assert not re.search(r'"/(?!/)', text)


def test_limits_are_stated_in_the_unit_and_under_the_name_that_each_client_reads():
    own = {client.key: entry(client) for client in CLIENTS}
    assert (own["codex"]["startup_timeout_sec"], own["codex"]["tool_timeout_sec"]) == (START_S, CALL_S)
    assert own["goose"]["timeout"] == CALL_S
    assert own["gemini-cli"]["timeout"] == own["opencode"]["timeout"] == CALL_S * 1000


def test_each_clients_entry_lies_under_the_key_that_it_reads():
    assert {client.key: client.keys[0] for client in CLIENTS} == {
        "claude-desktop": "mcpServers",
        "claude-code": "mcpServers",
        "vscode": "servers",
        "cursor": "mcpServers",
        "codex": "mcp_servers",
        "gemini-cli": "mcpServers",
        "opencode": "mcp",
        "goose": "extensions",
        "zed": "context_servers",
        "windsurf": "mcpServers",
    }


def test_tables_of_every_shape_are_written_as_toml():
    value = {
        "a": {
            "b-c": {"x": 'quote " back \\ line\n del \x7f', "n": 3, "on": True, "list": ["ä", ""], "env": {"A B": "1"}}
        }
    }
    assert tomllib.loads(as_toml(value)) == value


# ---------------------------------------------------------------- packages


def test_the_registry_takes_its_file(shared):
    schema = json.loads((shared / "schemas" / "mcp-registry-server.schema.json").read_text(encoding="utf-8"))
    made = json.loads((FOLDER / "registry" / "server.json").read_text(encoding="utf-8"))
    assert made["$schema"] == schema["$id"]
    jsonschema.Draft7Validator(schema).validate(made)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(made | {"description": "x" * 101})


def test_what_is_offered_to_be_set_are_settings_that_there_are():
    assert set(OFFERED) <= SETTING_NAMES
    assert len(DESCRIPTION) <= 100


def test_one_version_stands_everywhere():
    mcpb = json.loads((FOLDER / "claude-desktop" / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
    gemini = json.loads((FOLDER / "gemini-cli" / "extension" / "gemini-extension.json").read_text(encoding="utf-8"))
    registry = json.loads((FOLDER / "registry" / "server.json").read_text(encoding="utf-8"))
    compose = (FOLDER / "docker" / "compose.yaml").read_text(encoding="utf-8")
    assert {mcpb["version"], gemini["version"], registry["version"], registry["packages"][0]["version"]} == {
        __version__
    }
    assert f"image: mcp-compact:{__version__}\n" in compose


def test_the_bundle_holds_what_an_installation_from_source_needs(tmp_path):
    folder = tmp_path / "bundle"
    assert manifests.main(["--bundle", str(folder)]) == 0
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (folder / manifest["server"]["entry_point"]).is_file()
    for name in ("pyproject.toml", "README.md", "LICENSE", "manifests/claude-code/.mcp.json"):
        assert (folder / name).is_file(), name
    assert not (folder / "tests").exists()
    assert not list(folder.rglob("__pycache__"))
    # By these words uv starts the command of the project that lies in the folder.
    start = manifest["server"]["mcp_config"]["args"]
    assert start[:4] == ["run", "--directory", "${__dirname}", "mcp-compact"]
    assert build_parser().parse_args(start[4:]).command == "serve"


# ---------------------------------------------------------------- containers


def dockerfile() -> list[tuple[str, str]]:
    """Instructions and their words, continued lines joined."""
    text = (FOLDER / "docker" / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], " ".join(line.split(maxsplit=1)[1].split())) for line in lines]


def one(name: str) -> str:
    found = [rest for instruction, rest in dockerfile() if instruction == name]
    return found[-1]


def test_the_image_is_built_from_files_that_there_are_and_that_are_sent_to_the_builder():
    ignore = (FOLDER / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [rest.split()[:-1] for name, rest in dockerfile() if name == "COPY" and not rest.startswith("--from")]
    sources = [source for group in copied for source in group]
    assert {"pyproject.toml", "mcp_compact", "manifests"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignore


def test_the_image_runs_a_command_line_that_there_is_as_nobody_in_particular():
    assert json.loads(one("ENTRYPOINT")) == ["mcp-compact"]
    given = build_parser().parse_args(json.loads(one("CMD")))
    assert (given.command, given.transport, given.host, given.port) == ("serve", "http", manifests.EVERYWHERE, None)
    assert one("USER") == "10001:10001"
    assert one("EXPOSE") == "8765"
    names = re.findall(r"(MCP_COMPACT_\w+)[=:]", one("ENV") + (FOLDER / "docker" / "compose.yaml").read_text("utf-8"))
    assert set(names) <= SETTING_NAMES
    assert f"MCP_COMPACT_DB={one('VOLUME')}/archive.db" in one("ENV")


def test_the_composed_service_has_the_images_health_check_and_keeps_its_archive():
    compose = (FOLDER / "docker" / "compose.yaml").read_text(encoding="utf-8")
    command = json.loads(one("HEALTHCHECK").partition(" CMD ")[2])
    assert f"test: {json.dumps(['CMD', *command])}\n" in compose
    assert f'volumes: ["archive:{one("VOLUME")}"]' in compose
    assert 'ports: ["127.0.0.1:' in compose


@pytest.mark.process
def test_the_health_check_tells_a_server_that_answers_from_none(tmp_path):
    program, *rest = json.loads(one("HEALTHCHECK").partition(" CMD ")[2])
    assert program == "python"

    def healthy(port: int) -> bool:
        own = [word.replace(":8765/", f":{port}/") for word in rest]
        assert own != rest
        done = subprocess.run([sys.executable, *own], capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    with web(tmp_path, "--transport", "http") as server:
        assert healthy(server.port)
        port = server.port
    assert not healthy(port)
