from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mcp_compact.adapters.hooks import Command, CommandHooks, NoHooks, load_hooks, read_hooks_file
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.ports.hooks import HookDetails, HookOutcome

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


def write(folder: Path, content: object) -> Path:
    file = folder / "hooks.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    file.chmod(0o600)
    return file


def refusal(folder: Path, content: object) -> CallerError:
    with pytest.raises(CallerError) as caught:
        read_hooks_file(write(folder, content), 10)
    assert caught.value.code == "bad_hooks_file"
    assert caught.value.hint
    assert str(folder / "hooks.json") in caught.value.message
    return caught.value


def test_a_text_is_for_the_shell_a_list_is_not_and_an_object_has_its_own_limit_and_environment(tmp_path: Path) -> None:
    hook = {"command": ["prog", "arg"], "timeout_s": 0.5, "env": {"A": "1", "B": ""}}
    file = write(tmp_path, {"pre_compact": ["echo a | cat", hook, ["x", "$y"]], "post_compact": []})
    assert read_hooks_file(file, 7) == {
        "pre_compact": (
            Command("echo a | cat", 7),
            Command(("prog", "arg"), 0.5, (("A", "1"), ("B", ""))),
            Command(("x", "$y"), 7),
        ),
        "post_compact": (),
    }


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert read_hooks_file(write(tmp_path, '\ufeff{"pre_compact": ["a"]}'), 1) == {"pre_compact": (Command("a", 1),)}


@pytest.mark.parametrize("content", ["", "{", "hello", '{"pre_compact": [}', "\ud800".encode("utf-8", "surrogatepass")])
def test_what_is_no_json_is_refused(tmp_path: Path, content: str | bytes) -> None:
    file = write(tmp_path, "")
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CallerError, match=r"is no JSON") as caught:
        read_hooks_file(file, 10)
    assert "pre_compact" in caught.value.hint


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    assert "nested too deep" in refusal(tmp_path, "[" * 200_000).message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pre_compct", "Did you mean 'pre_compact'?"),
        ("PreCompact", "Did you mean 'pre_compact'?"),
        ("SessionStart", "Did you mean 'session_start'?"),
        ("post-compact", "Did you mean 'post_compact'?"),
        ("zzz", "Known: pre_compact, session_start, post_compact."),
    ],
)
def test_an_unknown_event_is_refused_with_the_nearest_known(tmp_path: Path, name: str, hint: str) -> None:
    error = refusal(tmp_path, {name: ["x"]})
    assert f'"{name}" is no event' in error.message
    assert error.hint == hint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "the file holds [], no JSON object"),
        ("null", "the file holds null"),
        ({"pre_compact": "x"}, 'pre_compact is "x", no list of hooks'),
        ({"pre_compact": ["ok", 5]}, "pre_compact, hook 2 holds 5"),
        ({"pre_compact": [[["prog"]]]}, 'pre_compact, hook 1: the command is [["prog"]]'),
        ({"pre_compact": [["x" * 100, 5]]}, 'the command is ["' + "x" * 55 + "...."),
        ({"pre_compact": [" "]}, 'pre_compact, hook 1: the command is " "'),
        ({"pre_compact": ["a\0b"]}, r'the command is "a\u0000b"'),
        ({"pre_compact": ["\ud800"]}, r'the command is "\ud800"'),
        ({"pre_compact": [{"timeout_s": 1}]}, "pre_compact, hook 1 has no 'command'"),
        ({"pre_compact": [{"command": []}]}, "the command is []"),
        ({"pre_compact": [{"command": ["a", 1]}]}, 'the command is ["a", 1]'),
        ({"pre_compact": [{"command": ["", "x"]}]}, 'the command is ["", "x"]'),
        ({"post_compact": [{"command": "a", "timeout": 1}]}, '"timeout" is no key of a hook'),
        ({"post_compact": [{"command": "a", "timeout_s": "1"}]}, 'post_compact, hook 1: timeout_s is "1"'),
        ({"post_compact": [{"command": "a", "timeout_s": True}]}, "timeout_s is true"),
        ({"post_compact": [{"command": "a", "timeout_s": 0}]}, "timeout_s is 0"),
        ({"post_compact": [{"command": "a", "timeout_s": 601}]}, "timeout_s is 601"),
        ('{"post_compact": [{"command": "a", "timeout_s": NaN}]}', "timeout_s is NaN"),
        ({"post_compact": [{"command": "a", "env": ["A=1"]}]}, 'env is ["A=1"]'),
        ({"post_compact": [{"command": "a", "env": {"A=": "1"}}]}, '"A=" cannot name a variable'),
        ({"post_compact": [{"command": "a", "env": {"": "1"}}]}, '"" cannot name a variable'),
        ({"post_compact": [{"command": "a", "env": {"A": 1}}]}, "the value of A is no text"),
        ('{"pre_compact": ["a"], "pre_compact": ["b"]}', "'pre_compact' is there twice"),
        (json.dumps({"pre_compact": ["x" * 1024 * 1024]}), "it is larger than 1048576 bytes"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, content: object, said: str) -> None:
    assert said in refusal(tmp_path, content).message


def test_the_value_of_a_variable_is_not_shown_since_it_may_be_a_secret(tmp_path: Path) -> None:
    error = refusal(tmp_path, {"pre_compact": [{"command": "a", "env": {"TOKEN": ["secret-word"]}}]})
    assert "secret-word" not in str(error)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="does not exist") as caught:
        read_hooks_file(tmp_path / "none.json", 10)
    assert "MCP_COMPACT_HOOKS" in caught.value.hint
    with pytest.raises(CallerError, match="no regular file"):
        read_hooks_file(tmp_path, 10)
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CallerError, match="no regular file"):
            read_hooks_file(tmp_path / "pipe", 10)


@posix
def test_a_name_that_the_system_cannot_read_is_the_servers_error(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="cannot be read"):
        read_hooks_file(tmp_path / ("x" * 300), 10)


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_change_is_refused(tmp_path: Path, mode: int) -> None:
    file = write(tmp_path, {"pre_compact": ["x"]})
    file.chmod(mode)
    with pytest.raises(CallerError, match="may be changed by other users") as caught:
        read_hooks_file(file, 10)
    assert "chmod go-w" in caught.value.hint


@posix
def test_a_file_that_others_may_only_read_is_taken(tmp_path: Path) -> None:
    file = write(tmp_path, {"pre_compact": ["x"]})
    file.chmod(0o644)
    assert read_hooks_file(file, 10)


@posix
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, {"pre_compact": ["x"]})
    os.chown(file, 12345, 12345)
    with pytest.raises(CallerError, match="belongs to another user"):
        read_hooks_file(file, 10)


# --- load_hooks


async def test_without_a_file_and_without_entry_points_nothing_is_run() -> None:
    hooks = load_hooks(" ", entry_points=False, timeout_s=10)
    assert isinstance(hooks, NoHooks)
    assert await hooks.run(HookDetails("pre_compact", "s", "agent")) == HookOutcome()


def test_the_commands_run_in_the_folder_of_the_file_within_the_limit_that_is_given(tmp_path: Path) -> None:
    file = write(tmp_path, {"pre_compact": ["x"]})
    hooks = load_hooks(str(file), entry_points=False, timeout_s=3)
    assert isinstance(hooks, CommandHooks)
    assert hooks.folder == tmp_path
    assert hooks.commands == {"pre_compact": (Command("x", 3),)}


def test_a_relative_path_is_refused_since_a_client_chooses_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"pre_compact": ["x"]})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CallerError, match="is relative"):
        load_hooks("hooks.json", entry_points=False)


def test_the_path_may_name_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"pre_compact": ["x"]})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert isinstance(load_hooks("~/hooks.json", entry_points=False), CommandHooks)
    with pytest.raises(CallerError, match="home directory"):
        load_hooks("~no-such-user-here/hooks.json", entry_points=False)
