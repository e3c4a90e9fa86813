from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mcp_compact import __version__
from mcp_compact.cli import install_claude
from mcp_compact.cli.install_check import client_check, hook_check, server_check
from mcp_compact.cli.install_files import changes_back, changes_for, install, uninstall
from mcp_compact.cli.install_program import Program, manifests, this_program
from mcp_compact.cli.install_record import record_of
from mcp_compact.errors import CallerError

AWKWARD = Program(
    ("/opt/a 'b\" c/mcp-compact",), ("/opt/a 'b\" c/python", "-m", "hook"), {"PYTHONPATH": "/opt/it's here"}
)

ELSEWHERE = Program(("/elsewhere/mcp-compact",), ("/elsewhere/mcp-compact", "hook"))


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A person's home with nothing in it."""
    place = tmp_path / "a 'person\"s home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return place


@pytest.fixture
def settings(home) -> Path:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    return path


def put(program=AWKWARD, statusline=None):
    """Install; what changed."""
    folder = install_claude.folder()
    record = record_of("claude-code", folder)
    wanted = install_claude.wanted(folder, program, record, statusline=statusline)
    changes = changes_for(wanted, record)
    install(changes, wanted, record)
    return [change for change in changes if change.what != "same"]


def take_back():
    """Uninstall; the copies of what had been changed."""
    record = record_of("claude-code", install_claude.folder())
    return uninstall(changes_back(record), record)


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder, its content and mode."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def read(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- what is written


def test_the_plugin_starts_this_very_program_by_its_absolute_path(home):
    put()
    plugin = home / ".claude" / "skills" / "mcp-compact"
    server = read(plugin / ".mcp.json")["mcpServers"]["mcp-compact"]
    assert (server["command"], server["args"]) == (AWKWARD.words[0], ["serve", "--profile", "agent"])
    assert server["env"] == AWKWARD.env
    commands = {
        h["command"]
        for groups in read(plugin / "hooks/hooks.json")["hooks"].values()
        for g in groups
        for h in g["hooks"]
    }
    (command,) = commands
    assert shlex.split(command) == ["PYTHONPATH=/opt/it's here", *AWKWARD.hook]
    assert read(plugin / ".claude-plugin/plugin.json")["version"] == __version__


def test_a_path_with_blanks_and_quotes_is_one_word_for_the_shell(tmp_path, home):
    program = tmp_path / "a 'b\" c $HOME"
    program.write_text('#!/bin/sh\nprintf "%s|" "$GREETING" "$@"\n')
    program.chmod(0o755)
    put(Program((str(program),), (str(program), "hook"), {"GREETING": 'it\'s "me"'}))
    script = home / ".claude/skills/mcp-compact/bin/mcp-compact"
    assert (
        subprocess.run([script, "a b", "c"], capture_output=True, text=True, check=True).stdout == 'it\'s "me"|a b|c|'
    )
    (hook,) = read(home / ".claude/skills/mcp-compact/hooks/hooks.json")["hooks"]["Stop"][0]["hooks"]
    done = subprocess.run(["sh", "-c", hook["command"]], capture_output=True, text=True, check=True)
    assert done.stdout == 'it\'s "me"|hook|'


def test_the_shipped_hooks_are_those_that_the_product_answers():
    hooks = read(manifests("claude-code") / "hooks" / "hooks.json")["hooks"]
    assert set(hooks) == {"SessionStart", "PreCompact", "PostCompact", "UserPromptSubmit", "Stop", "SessionEnd"}
    assert all(
        h["command"].startswith("mcp-compact hook") and h["timeout"] <= 120
        for g in hooks.values()
        for h in g[0]["hooks"]
    )


@pytest.mark.parametrize("verb", ["status", "rules", "handoff", "report"])
def test_each_command_runs_its_verb_and_nothing_else(verb):
    text = (manifests("claude-code") / "commands" / f"{verb}.md").read_text(encoding="utf-8")
    assert f"!`mcp-compact-client {verb} ${{CLAUDE_SESSION_ID}}`" in text
    assert "allowed-tools: Bash(mcp-compact-client:*)" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["status", "abc"], "status|abc|"), (["", "abc"], "status|abc|"), (["rules"], "rules|"),
        (["report", "abc"], "report|abc|"), (["handoff", "abc"], "handoff|abc|--after-clear|"), (["forget", "abc"], "There is /mcp-compact status, rules, handoff and report.\n"),
        (["status; touch x", "abc"], "There is /mcp-compact status, rules, handoff and report.\n"),
    ],
)  # fmt: skip
def test_the_client_command_passes_known_verbs_on_and_never_fails(tmp_path, home, words, expected):
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 2\n')
    program.chmod(0o755)
    put(Program((str(program),), (str(program),)))
    script = home / ".claude/skills/mcp-compact/bin/mcp-compact-client"
    done = subprocess.run([script, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, expected)


NAMES = ["plain", "a b", "it's", 'a "b"', "$HOME", "`date`", 'it\'s "all" $x `y` \\ ; & z']


@pytest.mark.parametrize("by_variable", [False, True], ids=["home", "CLAUDE_CONFIG_DIR"])
@pytest.mark.parametrize("name", NAMES)
def test_commands_hooks_and_server_run_from_a_home_of_any_name(tmp_path, monkeypatch, name, by_variable):
    own = tmp_path / name
    monkeypatch.setenv("HOME", str(tmp_path if by_variable else own))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    folder = own / ".claude"
    if by_variable:
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    else:
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    program = own / "bin" / "mcp-compact"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o755)
    put(Program((str(program),), (str(program), "hook")))
    plugin = folder / "skills" / "mcp-compact"
    lines = [h["command"] for g in read(plugin / "hooks/hooks.json")["hooks"].values() for h in g[0]["hooks"]]
    lines.append(read(folder / "settings.json")["statusLine"]["command"])
    said = [subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout for line in lines]
    assert said == ["hook|"] * 6 + ["statusline|"]
    server = read(plugin / ".mcp.json")["mcpServers"]["mcp-compact"]
    done = subprocess.run([server["command"], *server["args"]], capture_output=True, text=True, check=True)
    assert done.stdout == "serve|--profile|agent|"
    # As the client sets it: quotes that some names end.
    path = f"{plugin / 'bin'}:/usr/bin:/bin" if name in ("plain", "a b") else "/usr/bin:/bin"
    for verb in ("status", "rules", "report"):
        text = (plugin / "commands" / f"{verb}.md").read_text(encoding="utf-8")
        (line,) = re.findall(r"^!`([^`]+)`$", text, re.MULTILINE)
        assert f"allowed-tools: Bash({line.split(' ' + verb)[0]}:*)" in text
        line = line.replace("${CLAUDE_SESSION_ID}", "abc")
        env = {**os.environ, "PATH": path}
        assert subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, env=env).stdout == (
            f"{verb}|abc|"
        )


# ---------------------------------------------------------------- once, twice, never


def test_installing_twice_is_installing_once(home):
    assert put()
    before = everything(home)
    assert put() == []
    assert everything(home) == before


def test_uninstalling_leaves_nothing_where_nothing_was(home):
    put()
    assert take_back() == []
    assert list(home.rglob("*")) == [home / ".local", home / ".local/share", home / ".local/share/mcp-compact"]


ODD = '{\n\t// mine\n\t"model": "opus", "env": {"A": "1",},\n}'


@pytest.mark.parametrize("text", ["{}", "", ODD, '{"model":"opus"}', '\ufeff{"a": 1}'])
def test_uninstalling_leaves_settings_byte_for_byte_as_they_were(home, settings, text):
    settings.write_text(text, encoding="utf-8")
    settings.chmod(0o640)
    other = settings.parent / "skills" / "other" / "SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text("theirs")
    before = everything(settings.parent)
    put()
    assert "statusLine" in settings.read_text(encoding="utf-8")
    assert settings.stat().st_mode & 0o777 == 0o640
    take_back()
    assert everything(settings.parent) == before


def test_settings_that_were_changed_meanwhile_lose_our_entry_alone(home, settings):
    settings.write_text('{\n  "model": "opus"\n}\n')
    put()
    settings.write_text(settings.read_text().replace('"opus"', '"sonnet", // faster\n  "theme": "dark"'))
    take_back()
    assert settings.read_text() == '{\n  "model": "sonnet", // faster\n  "theme": "dark"\n}\n'


def test_an_entry_that_somebody_made_their_own_stays(home, settings):
    put()
    settings.write_text('{"statusLine": {"type": "command", "command": "mine"}}')
    take_back()
    assert read(settings)["statusLine"]["command"] == "mine"


def test_another_installation_changes_our_entries_and_keeps_the_first_backup(home, settings):
    settings.write_text(ODD)
    put()
    changed = {change.path.name for change in put(ELSEWHERE)}
    assert changed == {"settings.json", ".mcp.json", "hooks.json", "mcp-compact"}
    assert "/elsewhere/mcp-compact" in settings.read_text()
    take_back()
    assert settings.read_text() == ODD


def test_another_installation_after_a_change_of_theirs_leaves_one_entry_of_ours(home, settings):
    settings.write_text('{"model": "opus"}')
    put()
    settings.write_text(settings.read_text().replace("opus", "sonnet"))
    put(ELSEWHERE)
    assert settings.read_text().count("statusLine") == 1
    take_back()
    assert settings.read_text() == '{"model": "sonnet"}'


def test_files_that_a_new_version_no_longer_has_go(home):
    put()
    record = record_of("claude-code", install_claude.folder())
    old = home / ".claude/skills/mcp-compact/commands/old.md"
    old.write_text("of an earlier version")
    record.files[old] = next(kept for kept in record.files.values() if kept.own)
    record.save()
    assert [(change.path.name, change.what) for change in put()] == [("old.md", "removed")]
    assert not old.exists()


def test_a_changed_file_of_ours_is_copied_before_it_goes(home):
    put()
    skill = home / ".claude/skills/mcp-compact/SKILL.md"
    skill.write_text("my own words")
    (copy,) = take_back()
    assert copy.read_text() == "my own words"
    assert not skill.exists()


# ---------------------------------------------------------------- the status line


def test_a_status_line_of_their_own_stays_unless_ours_is_asked_for(home, settings):
    settings.write_text('{"statusLine": {"type": "command", "command": "mine"}}')
    put()
    assert read(settings)["statusLine"]["command"] == "mine"
    put(statusline=True)
    assert shlex.split(read(settings)["statusLine"]["command"])[1:] == [AWKWARD.words[0], "statusline"]
    settings.write_text(settings.read_text().replace("{", '{"theme": "dark", ', 1))
    take_back()
    assert read(settings) == {"theme": "dark", "statusLine": {"type": "command", "command": "mine"}}


def test_without_a_status_line_the_settings_are_not_even_read(home, settings):
    settings.write_text("{ broken")
    put(statusline=False)
    assert settings.read_text() == "{ broken"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("content", [b'{"a": 1', b"[]", b"\xff\xfe", b"{'a': 1}"])
def test_settings_that_cannot_be_read_are_refused_and_nothing_changes(home, settings, content):
    settings.write_bytes(content)
    before = everything(home)
    with pytest.raises(CallerError, match=r"settings\.json.*Nothing was changed"):
        put()
    assert everything(home) == before


def test_read_only_settings_are_refused_and_nothing_changes(home, settings):
    settings.write_text("{}")
    settings.chmod(0o444)
    before = everything(home)
    with pytest.raises(CallerError, match=r"may not be written to\. Nothing was changed"):
        put()
    assert everything(home) == before


def test_a_read_only_folder_is_refused_and_nothing_changes(home, settings):
    settings.write_text("{}")
    settings.parent.chmod(0o555)
    try:
        with pytest.raises(CallerError, match="may not be written to"):
            put()
        assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]
    finally:
        settings.parent.chmod(0o755)


def test_linked_settings_stay_a_link_and_what_they_point_to_is_changed(home, settings):
    real = home / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text('{"model": "opus"}')
    settings.symlink_to(real)
    put()
    assert settings.is_symlink()
    assert "statusLine" in real.read_text()
    take_back()
    assert settings.is_symlink()
    assert real.read_text() == '{"model": "opus"}'


def test_a_folder_of_somebody_else_with_our_name_is_refused(home):
    other = home / ".claude/skills/mcp-compact/SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text("theirs")
    with pytest.raises(CallerError, match="not put there by this command"):
        put()
    assert everything(home) == {".claude/skills/mcp-compact/SKILL.md": (b"theirs", other.stat().st_mode)}


def test_a_linked_plugin_folder_is_refused(home):
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/mcp-compact").symlink_to(home)
    with pytest.raises(CallerError, match="is a link"):
        put()


def test_a_server_that_was_added_by_hand_is_told_of(home):
    (home / ".claude.json").write_text('{"mcpServers": {"mcp-compact": {"command": "x"}}}')
    assert any("claude mcp remove" in note for note in install_claude.notes(home / ".claude", [], statusline=False))
    (home / ".claude.json").write_text("broken")
    assert list(install_claude.notes(home / ".claude", [], statusline=False)) == []


def test_another_folder_of_settings_has_its_own_record(home, tmp_path, monkeypatch):
    put()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "work"))
    assert put()
    take_back()
    assert not (tmp_path / "work").exists()
    assert (home / ".claude/skills/mcp-compact/SKILL.md").exists()


# ---------------------------------------------------------------- it tests itself


def test_a_client_that_is_too_old_fails_and_one_that_is_not_there_does_not(tmp_path, monkeypatch):
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '2.1.156 (Claude Code)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert client_check("claude", (2, 1, 157)).ok is False
    program.write_text("#!/bin/sh\necho '2.2.0 (Claude Code)'\n")
    assert client_check("claude", (2, 1, 157)).ok is True
    assert client_check("no-such-client", (1, 0, 0)).ok is None


def test_a_server_or_hook_that_cannot_start_is_said_with_its_last_words(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no module named x' >&2\nexit 3\n")
    broken.chmod(0o755)
    check = server_check([str(broken), "serve"], {})
    assert check.ok is False
    assert "ended with 3" in check.text
    assert "no module named x" in check.text
    assert server_check([str(tmp_path / "missing")], {}).ok is False
    assert hook_check(shlex.quote(str(broken)), {}).ok is False


def test_this_program_is_named_by_absolute_paths_and_reads_nothing_of_the_working_directory(tmp_path):
    (tmp_path / "mcp_compact").mkdir()
    (tmp_path / "mcp_compact" / "__init__.py").write_text("raise SystemExit('not this one')")
    program = this_program()
    assert Path(program.words[0]).is_absolute()
    for line in (program.line("--version"), program.hook_line()):
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
