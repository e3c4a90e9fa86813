from __future__ import annotations

import pytest

from mcp_compact.config import SETTINGS


def test_every_setting_is_shown_with_value_default_kind_and_meaning(command):
    done = command("config")
    assert (done.code, done.err) == (0, "")
    for setting in SETTINGS:
        assert f"{setting.name} = " in done.out
        for name in setting.historic:
            assert name in done.out


def test_json_lists_the_value_in_force_of_each(command, monkeypatch):
    monkeypatch.setenv("MCP_COMPACT_AT", "60%")
    monkeypatch.setenv("TENGU_SM_COMPACT_CONFIG", '{"maxTokens": 30000}')
    shown = command("config", "--json").json
    rows = {row["name"]: row for row in shown["settings"]}
    assert list(rows) == [setting.name for setting in SETTINGS]
    assert (rows["MCP_COMPACT_AT"]["value"], rows["MCP_COMPACT_AT"]["is_default"]) == ("60%", False)
    assert rows["MCP_COMPACT_SM_MAX_TOKENS"]["value"] == 30_000
    assert rows["MCP_COMPACT_MICRO_KEEP"]["is_default"] is True
    assert shown["historic"] == ["TENGU_SM_COMPACT_CONFIG"]


def test_a_switch_that_is_set_is_not_shown_as_unset(command, monkeypatch):
    monkeypatch.setenv("DISABLE_CLAUDE_CODE_SM_COMPACT", "yes")
    rows = {row["name"]: row for row in command("config", "--json").json["settings"]}
    assert rows["DISABLE_CLAUDE_CODE_SM_COMPACT"]["shown"] == "yes"
    assert rows["MCP_COMPACT_FLAG_SM_COMPACT"]["value"] is False


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MCP_COMPACT_MICRO_KEP", "3", "MCP_COMPACT_MICRO_KEEP"),
        ("MCP_COMPACT_PAGE_TOKENS", "-1", "MCP_COMPACT_PAGE_TOKENS"),
    ],
)
def test_what_is_ignored_is_warned_of(command, monkeypatch, name, value, said):
    monkeypatch.setenv(name, value)
    assert said in command("config").out.split("warning: ")[1]
    assert command("config", "--json").json["warnings"]


def test_a_value_that_is_ignored_is_not_shown_as_the_one_in_force(command, monkeypatch):
    monkeypatch.setenv("MCP_COMPACT_AT", "lots")
    row = next(row for row in command("config", "--json").json["settings"] if row["name"] == "MCP_COMPACT_AT")
    assert (row["shown"], row["is_default"]) == (row["default"], True)
    assert "MCP_COMPACT_AT = lots" not in command("config").out


@pytest.mark.parametrize(
    "name", [setting.name for setting in SETTINGS if setting.name.endswith(("PRESET", "MODEL", "_DB"))]
)
def test_a_value_that_is_taken_is_shown(command, monkeypatch, name):
    value = {"MCP_COMPACT_PRESET": "codex", "MCP_COMPACT_LLM_MODEL": "openai:gpt-x"}.get(name, "/var/tmp/a.db")
    monkeypatch.setenv(name, value)
    assert f"{name} = {value}" in command("config").out
