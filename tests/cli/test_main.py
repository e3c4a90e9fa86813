from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from mcp_compact import __version__
from mcp_compact.cli import main as cli
from mcp_compact.cli import parser as command_line
from mcp_compact.errors import CallerError, ServerError

HEAVY = ("mcp", "tiktoken", "anyio", "pydantic", "aiosqlite", "sqlite3", "asyncio")
COMMANDS = (
    "demo", "compact", "serve", "import", "status", "sessions", "search", "memory", "undo", "resume", "handoff",
    "now", "watch", "rules", "report", "forget", "export", "validate", "backup", "restore", "rescue",
    "stats", "retention", "vacuum", "install", "uninstall", "manifest", "hook", "statusline", "token", "config", "doctor",
)  # fmt: skip


def in_python(code: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(words):
    done = in_python(f"""
        import sys
        from mcp_compact.cli.main import main
        code = main({words!r})
        heavy = [name for name in {HEAVY!r} if name in sys.modules]
        assert not heavy, heavy
        raise SystemExit(code)
    """)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"mcp-compact" in done.stdout


def test_the_program_can_be_run_as_a_module(program):
    done = program("--version")
    assert (done.code, done.out) == (0, f"mcp-compact {__version__}\n")


@pytest.mark.parametrize("words", [["hook", "-h"], ["hook", "--help"], ["hook", "Stop", "-h"]])
def test_help_of_the_hook_is_told_without_waiting_for_a_client(words):
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_compact", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        try:
            # Its stdin stays open: what reads it never ends.
            assert running.wait(30) == 0
        finally:
            running.kill()
        assert running.stdout
        assert running.stdout.read().startswith(b"usage: mcp-compact hook")


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["demo", "--nonsense"], ["compact"], ["compact", "x", "--target", "0"], ["undo"]]
)
def test_bad_usage_ends_with_2_and_says_how_it_goes(command, words):
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert "usage: mcp-compact" in done.err


def test_every_command_has_a_line_of_help_and_a_module_that_exists():
    parser = command_line.build_parser()
    group = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    assert tuple(group.choices) == COMMANDS
    assert all(action.help for action in group._choices_actions)
    for sub in group.choices.values():
        module, function = sub.get_default("run").split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_numbers_may_be_written_with_separators():
    assert command_line._positive("20,000") == command_line._positive("20_000") == 20_000


def ending(error: BaseException) -> int:
    def fail() -> int:
        raise error

    return cli._guarded(fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallerError("x", "That was wrong.", "Do this."), 2),
        (ServerError("x", "We failed.", "Do that."), 1),
        (OSError(28, "No space left on device"), 1),
        (BaseExceptionGroup("tasks", [BaseExceptionGroup("more", [CallerError("x", "Deep down.", "Up.")])]), 2),
    ],
)
def test_expected_failures_are_one_message_on_stderr(capsys, error, code):
    assert ending(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mcp-compact: ")
    assert len(err.splitlines()) == 2


def test_an_interrupt_is_quiet(capsys):
    assert ending(KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "")


def test_a_defect_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        ending(ZeroDivisionError())


def test_two_errors_at_once_are_a_defect():
    with pytest.raises(BaseExceptionGroup):
        ending(BaseExceptionGroup("tasks", [CallerError("x", "a"), CallerError("x", "b")]))


def test_a_message_cannot_steer_the_terminal(capsys):
    ending(CallerError("x", "no file '\x1b[2J'"))
    assert "\x1b" not in capsys.readouterr().err


def test_a_reader_that_has_gone_is_no_error(archive):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "mcp_compact", "config"], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_command_that_reads_stdin_quietly():
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_compact", "compact", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    # More than a pipe holds: once it is written, the program has begun to read.
    process.stdin.write(b'{"role": "user", "content": "' + b"x" * 300_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_output_is_utf8_whatever_the_locale_and_drawn_in_ascii_where_blocks_cannot_be_shown(program):
    messages = [{"role": "user", "content": "Größe 可以"}, {"role": "assistant", "content": "ok"}]
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = program("compact", "-", stdin=json.dumps(messages).encode(), env=ascii_only)
    assert done.code == 0
    assert "Größe 可以" in done.out
    assert done.err.isascii()
    assert "WWW" in done.err
